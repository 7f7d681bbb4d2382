import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import { GuardedObjects, guardDefaults } from '../../src/source/objects/guarded-objects.js'
import { faultOf, type ObjectBody } from '../../src/source/objects/object-store.js'
import { CredentialsFile } from '../../src/source/objects/s3-credentials.js'
import { S3Objects, type S3Options } from '../../src/source/objects/s3-objects.js'
import { MemoryObjects } from '../engines/memory-objects.js'
import { bucketAt, type Radosgw, radosgwAbsent, startRadosgw } from '../engines/radosgw.js'
import { eventually } from '../eventually.js'
import { HandClock } from '../names/hand-clock.js'
import { suspend } from '../suspend.js'
import { bytesOf, conformObjects, contentOf } from './object-store.js'

const { signal } = new AbortController()
/** For what never comes: on a busy machine a store is not away because it is slow. */
const patience = { headMs: 60_000, stallMs: 60_000, connectionsMax: 32 }
/** As many at once as the tests put. */
const wide = { ...guardDefaults, writesMax: 32 }
const unmetered = { ended: () => undefined, received: () => undefined, sent: () => undefined }

function clientOf(server: Radosgw, bucket: string, more: Partial<S3Options> = {}): S3Objects {
  const { endpoint, region, credentials } = server
  return new S3Objects({ endpoint, region, bucket, credentials, ...patience, ...more }, systemClock)
}

t.test('objects in memory', async (t) => {
  await conformObjects(t, async () => new MemoryObjects())
})

t.test('objects in memory, behind bounds', async (t) => {
  await conformObjects(t, async () => new GuardedObjects(new MemoryObjects(), wide, unmetered, systemClock))
})

t.test('objects in radosgw', radosgwAbsent, async (t) => {
  const server = await startRadosgw()
  t.teardown(() => server.stop())
  const stores: S3Objects[] = []
  t.teardown(() => Promise.all(stores.map((store) => store.close())))
  const opened = (bucket: string, more: Partial<S3Options> = {}): S3Objects => {
    const store = clientOf(server, bucket, more)
    stores.push(store)
    return store
  }
  const bucket = await bucketAt(server)
  await conformObjects(t, async () => opened(await bucketAt(server)))

  await t.test('what is wrong with the store is said, and no secret', async (t) => {
    const fault = async (name: string, more: Partial<S3Options>): Promise<string | undefined> => {
      const refusal = await opened(name, more).put('key', contentOf(Buffer.from('x')), { signal })
      if (!isRefusal(refusal)) return 'none'
      t.notMatch(JSON.stringify(refusal), /secret/i)
      return faultOf(refusal)
    }
    const { accessKeyId, secretAccessKey } = server.credentials
    t.equal(await fault(bucket, {}), 'none')
    t.equal(await fault(bucket, { credentials: { accessKeyId, secretAccessKey: 'other' } }), 'credentials')
    t.equal(await fault(bucket, { credentials: { accessKeyId: 'other', secretAccessKey } }), 'credentials')
    t.equal(await fault(`none-${randomUUID()}`, {}), 'bucket')
    const missing = await opened(`none-${randomUUID()}`).get('key', undefined, { signal })
    t.equal(
      isRefusal(missing) && missing.refused,
      'upstream',
      'a bucket that is not there is no missing object',
    )
    t.equal(await fault(bucket, { endpoint: 'http://127.0.0.1:1' }), 'away')
  })

  await t.test('credentials that were replaced in their file are used', async (t) => {
    const path = `${t.testdir()}/credentials`
    const write = (secret: string): void => {
      const { accessKeyId } = server.credentials
      writeFileSync(path, `[default]\naws_access_key_id=${accessKeyId}\naws_secret_access_key=${secret}\n`)
    }
    write('expired')
    const store = opened(bucket, { credentials: new CredentialsFile(path) })
    t.match(await store.put('rotated', contentOf(Buffer.from('x')), { signal }), {
      storeFault: 'credentials',
    })
    write(server.credentials.secretAccessKey)
    t.equal(await store.put('rotated', contentOf(Buffer.from('x')), { signal }), 'put')
  })

  await t.test('a clock that is off by ten minutes, and by an hour', async (t) => {
    for (const offMs of [-600_000, 600_000, 3_600_000]) {
      const clock = { ...systemClock, now: () => Date.now() + offMs }
      const { endpoint, region, credentials } = server
      const store = new S3Objects({ endpoint, region, bucket, credentials, ...patience }, clock)
      stores.push(store)
      t.equal(await store.put(`clock${offMs}`, contentOf(Buffer.from('x')), { signal }), 'put')
    }
  })

  await t.test('the time of the store holds also when the clock here is set', async (t) => {
    let offMs = 0
    const clock = { ...systemClock, now: () => Date.now() + offMs }
    const { endpoint, region, credentials } = server
    const store = new S3Objects({ endpoint, region, bucket, credentials, ...patience }, clock)
    stores.push(store)
    for (const setMs of [-600_000, 600_000, 3_600_000, 0]) {
      t.equal(await store.put(`set${setMs}`, contentOf(Buffer.from('x')), { signal }), 'put')
      offMs = setMs
      const theirs = clock.now() + store.aheadMs
      // Less than the clock was set by: their time is that of a date line, which was underway for some time.
      t.ok(Math.abs(theirs - Date.now()) < 300_000, `off by ${theirs - Date.now()} ms`)
    }
  })

  await t.test('a store that hangs ends every request in its time, and is left alone then', async (t) => {
    const clock = new HandClock()
    clock.setMs = Date.now() - clock.now()
    const { endpoint, region, credentials } = server
    const inner = new S3Objects({ endpoint, region, bucket, credentials, ...patience }, clock)
    stores.push(inner)
    const restMs = 10 * patience.headMs
    const store = new GuardedObjects(inner, { ...guardDefaults, restMs, restMaxMs: restMs }, unmetered, clock)
    await store.put('kept', contentOf(Buffer.from('kept')), { signal })
    await suspend(server.gateway)
    const answers: (ObjectBody | Refusal)[] = []
    for (let index = 0; index < 3; index += 1)
      void store.get('kept', undefined, { signal }).then((answer) => answers.push(answer))
    await clock.turn(patience.headMs)
    await eventually('each is answered', () => answers.length === 3)
    t.ok(answers.every((answer) => isRefusal(answer) && answer.refused === 'late'))
    t.equal(store.fault('read'), 'away')
    t.match(await store.get('kept', undefined, { signal }), { refused: 'busy' }, 'time stands still: at once')
    server.gateway.kill('SIGCONT')
    await clock.turn(restMs)
    const found = await store.get('kept', undefined, { signal })
    t.equal(isRefusal(found) ? found.message : (await bytesOf(found)).toString(), 'kept')
    t.equal(store.fault('read'), undefined, 'it is asked again')
  })
})
