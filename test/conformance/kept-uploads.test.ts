import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Id } from '../../src/format/id.js'
import { isRefusal, refuse } from '../../src/format/refusal.js'
import type { ObjectStore } from '../../src/source/objects/object-store.js'
import { S3Objects } from '../../src/source/objects/s3-objects.js'
import { systemDisk } from '../../src/store/segments/disk.js'
import { DurableLog, durableLogDefaults } from '../../src/store/segments/durable-log.js'
import type { LogPlace } from '../../src/store/segments/log-file.js'
import type { LoggedUpload } from '../../src/upload/records/uploads.js'
import { MemoryObjects } from '../engines/memory-objects.js'
import { bucketAt, type Radosgw, radosgwAbsent, startRadosgw } from '../engines/radosgw.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { bytesAt, storingMachine } from '../upload/stored-rig.js'
import { conformKeptUploads, type KeptUploads } from './kept-uploads.js'

type Found = Map<Id, { readonly bytes: Buffer; readonly logged: LoggedUpload }>

/** The log on this machine's disk. */
async function localUploads(t: Test): Promise<KeptUploads> {
  const folder = join(scratch('kept'), 'log')
  let isFailing = false
  const disk = {
    ...systemDisk,
    sync: (file: Parameters<typeof systemDisk.sync>[0]) =>
      isFailing ? Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' })) : systemDisk.sync(file),
  }
  const places = new Map<Id, LogPlace>()
  const open = (found: Found): Promise<DurableLog> =>
    DurableLog.open(
      folder,
      durableLogDefaults,
      ({ place, meta }) => {
        const logged = JSON.parse(Buffer.from(meta).toString()) as LoggedUpload
        places.set(logged.id, place)
        found.set(logged.id, { bytes: bytesAt(folder, place), logged })
      },
      disk,
    )
  let log = await open(new Map())
  t.teardown(() => log.close())
  return {
    async keep({ id, bytes, digest, logged }) {
      const draft = log.draft()
      for (let at = 0; at < bytes.length; at += 65_536)
        if ((await draft.write(bytes.subarray(at, at + 65_536))) !== undefined) return false
      const place = await draft.finish(digest, Buffer.from(JSON.stringify(logged)))
      if (isRefusal(place)) return false
      places.set(id, place)
      return true
    },
    async next() {
      await log.close()
      const found: Found = new Map()
      log = await open(found)
      return found
    },
    async release(ids) {
      for (const id of ids) {
        const place = places.get(id)
        if (place !== undefined) log.release(place)
      }
    },
    setFailing(isNow) {
      isFailing = isNow
    },
  }
}

/** An object store, by a machine whose disk is lost each time. `objects`: a view of one bucket, which can be made to fail. */
async function sharedUploads(
  t: Test,
  objects: ObjectStore,
  setFailing: (isFailing: boolean) => void,
): Promise<KeptUploads> {
  let machine = await storingMachine(objects)
  t.teardown(() => machine.end())
  return {
    keep: (item) => machine.accept(item),
    async next() {
      // A disk that is lost before that leaves to the next one what the store may have all the same.
      await eventually('nothing is in doubt', () => machine.uploads.stored.ended(1).length === 0)
      await machine.end(true)
      machine = await storingMachine(objects)
      const { uploads } = machine
      const found: Found = new Map()
      for (const id of uploads.oldest(100_000)) {
        const item = uploads.find(id)
        if (item !== undefined) found.set(id, { bytes: machine.bytesAt(item.place), logged: item })
      }
      return found
    },
    async release(ids) {
      const { uploads } = machine
      uploads.environment.write(() => {
        for (const id of ids) {
          const item = uploads.find(id)
          if (item !== undefined) uploads.release(item)
        }
      })
      await eventually('groups are removed', () => uploads.stored.ended(1).length === 0)
    },
    setFailing,
  }
}

t.test('on the disk of this machine', async (t) => {
  await conformKeptUploads(t, localUploads)
})

t.test('in an object store in memory', async (t) => {
  await conformKeptUploads(t, (t) => {
    const objects = new MemoryObjects()
    const failure = refuse('late', 'upstream', 'it does not answer')
    return sharedUploads(t, unclosed(objects), (isFailing) => {
      objects.fails = (operation) => (isFailing && operation === 'put' ? failure : undefined)
    })
  })
})

t.test('in radosgw', radosgwAbsent, async (t) => {
  const server = await startRadosgw()
  t.teardown(() => server.stop())
  await conformKeptUploads(t, async (t) => {
    const objects = clientOf(server, await bucketAt(server))
    t.teardown(() => objects.close())
    return sharedUploads(t, unclosed(objects), (isFailing) => {
      server.gateway.kill(isFailing ? 'SIGSTOP' : 'SIGCONT')
    })
  })
})

/** The same store for one machine after the other. */
function unclosed(objects: ObjectStore): ObjectStore {
  return new Proxy(objects, {
    get(target, name) {
      if (name === 'close') return async () => undefined
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function clientOf({ endpoint, region, credentials }: Radosgw, bucket: string): S3Objects {
  const patience = { headMs: 5000, stallMs: 5000, connectionsMax: 32, sentBytesPerSecondMin: 2 ** 20 }
  return new S3Objects({ endpoint, region, bucket, credentials, ...patience }, systemClock)
}
