/** Publishers that drip, stall or give up half-way: what they cost is theirs, and no other publisher's. */
import { randomBytes } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Agent } from 'undici'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { BandStore } from '../../src/bands/band-store.js'
import { PinnedKeys } from '../../src/bands/publisher-keys.js'
import { Subscriber, type SubscriberOptions } from '../../src/bands/subscriber.js'
import { downloadDefaults } from '../../src/torrent/download.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { eventually } from '../eventually.js'
import { plainKind, TestPublisher } from './publisher-rig.js'

interface Stage {
  readonly publishers: readonly [TestPublisher, TestPublisher]
  readonly subscriber: Subscriber
  /** Ids of the bands in place. */
  installed(): Promise<string[]>
  /** Bytes on disk below `DATA_PATH/bands`, of files of bands. */
  diskBytes(): number
  /** Names in the folder of bands that are being fetched. */
  fetching(): string[]
}

/** Two publishers that one gateway follows, in this order; `timeoutMs`: its timeouts with them. */
async function stage(t: Test, timeoutMs: number, options: Partial<SubscriberOptions> = {}): Promise<Stage> {
  const outer = t.testdir()
  const publishers = [new TestPublisher(), new TestPublisher()] as const
  const subscriptions = await Promise.all(
    publishers.map(async (one) => ({ url: await one.listen(), keyId: one.signing.keyId })),
  )
  const bandStore = new BandStore(join(outer, 'bands'))
  await bandStore.prepare()
  const dispatcher = new Agent()
  const subscriber = await Subscriber.open(
    {
      subscriptions,
      domains: ['gateway-index-publication/v1'],
      pollMs: 50,
      graceMs: 0,
      bytesMax: 2 ** 30,
      bandsAtOnce: 1,
      ...options,
    },
    {
      http: { dispatcher, timeoutMs, userAgent: 'test' },
      clock: systemClock,
      peerId: randomBytes(20),
      trackers: [],
      bandStore,
      log: silentLog,
      download: { ...downloadDefaults, line: connectionDefaults },
      kinds: [plainKind],
      keys: new PinnedKeys(),
    },
  )
  t.teardown(async () => {
    await subscriber.stop()
    for (const one of publishers) one.close()
    await dispatcher.destroy()
  })
  const below = (path: string): number =>
    readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
      const inner = join(path, entry.name)
      return sum + (entry.isDirectory() ? below(inner) : statSync(inner).size)
    }, 0)
  const folder = (name: string): string => join(outer, 'bands', name)
  return {
    publishers,
    subscriber,
    installed: async () => (await bandStore.list('installed')).map(({ id }) => id).sort(),
    diskBytes: () => ['installed', 'fetching'].reduce((sum, name) => sum + below(folder(name)), 0),
    fetching: () => readdirSync(join(folder('fetching'), plainKind.index)),
  }
}

/** Writes one byte every tenth of a second, for as long as somebody listens. */
function drip(response: ServerResponse): true {
  const timer = systemClock.every(100, () => response.write('x'))
  response.on('close', () => timer.cancel())
  return true
}

/**
 * Sends the head and the first bytes of what a range asks for, and hangs up when some of them are on the disk: what a client has
 * not read by then is lost with the connection.
 */
function half(response: ServerResponse, bytes: Uint8Array, diskBytes: () => number): true {
  const before = diskBytes()
  response.writeHead(206, { 'content-length': bytes.length * 2 })
  response.write(bytes, () => {
    void eventually('some bytes are kept', () => bytes.length === 0 || diskBytes() > before)
      .catch((error: Error) => t.fail(error.message))
      .finally(() => response.destroy())
  })
  return true
}

t.test('a very slow publisher delays no other one', async (t) => {
  const { publishers, subscriber, installed } = await stage(t, 600_000)
  const [slow, good] = publishers
  slow.special = (_, response) => drip(response.writeHead(200))
  good.publish([{ id: 'one', files: { a: randomBytes(1000) } }])
  subscriber.start((error) => t.fail('the disk refused', { error }))
  await eventually('the first band is installed', async () => (await installed()).includes('one'))
  good.publish([{ id: 'two', files: { a: randomBytes(1000) } }])
  await eventually('the second band is installed', async () => (await installed()).includes('two'))
  t.equal(slow.requested.length, 1, 'one look at a time')
  await subscriber.stop()
})

t.test('a very slow band is given up, and another publisher is served meanwhile', async (t) => {
  const { publishers, subscriber, installed } = await stage(t, 1500)
  const [slow, good] = publishers
  slow.publish(['x', 'y'].map((id) => ({ id, files: { a: randomBytes(100_000) } })))
  slow.special = (path, response) =>
    path.endsWith('/a') && drip(response.writeHead(206, { 'content-length': 100_000 }))
  good.publish([{ id: 'one', files: { a: randomBytes(1000) } }])
  const ended = subscriber.poll().then(() => subscriber.settled())
  await eventually('the first band is installed', async () => (await installed()).includes('one'))
  await eventually(
    'the slow file is requested again',
    () => slow.requested.filter((path) => path.endsWith('/a')).length > 1,
  )
  t.pass('the first was given up, the next one begun')
  await subscriber.stop()
  await ended
})

t.test('where one publisher fails, another one that lists the same band is asked', async (t) => {
  const { publishers, subscriber, installed, diskBytes } = await stage(t, 60_000, { pollMs: 600_000 })
  const files = { a: randomBytes(1000) }
  for (const one of publishers) one.publish([{ id: 'one', files }])
  publishers[0].special = (path, response) =>
    path.endsWith('/a') && half(response, files.a.subarray(0, 10), diskBytes)
  await subscriber.poll()
  await subscriber.settled()
  t.same(await installed(), ['one'])
})

t.test('partial bands count against the limit, and are removed to make room', async (t) => {
  const bytesMax = 1_000_000
  const { publishers, subscriber, installed, diskBytes, fetching } = await stage(t, 60_000, {
    bytesMax,
    pollMs: 600_000,
  })
  const [broken, good] = publishers
  const large = randomBytes(900_000)
  broken.publish([{ id: 'large', files: { a: large } }])
  broken.special = (path, response) =>
    path.endsWith('/a') && half(response, large.subarray(0, 700_000), diskBytes)
  await subscriber.poll()
  await subscriber.settled()
  t.same(fetching(), ['large'], 'it stays for the next attempt')
  good.publish([{ id: 'one', files: { a: randomBytes(500_000) } }])
  await subscriber.poll()
  await subscriber.settled()
  t.same(await installed(), ['one'])
  t.ok(diskBytes() <= bytesMax, `${diskBytes()} bytes lie on the disk`)
  t.same(fetching(), [])
})

t.test('a partial band is removed after attempts without new bytes, and not before', async (t) => {
  const { publishers, subscriber, fetching, diskBytes } = await stage(t, 60_000, { pollMs: 20 })
  const [broken] = publishers
  const bytes = randomBytes(900_000)
  broken.publish([{ id: 'large', files: { a: bytes } }])
  let sent = 0
  let isBarren = false
  broken.special = (path, response) => {
    if (!path.endsWith('/a')) return false
    sent += 1
    return half(response, bytes.subarray(0, isBarren ? 0 : 100_000), diskBytes)
  }
  const attempt = async (): Promise<void> => {
    await subscriber.poll()
    await subscriber.settled()
  }
  await eventually('five attempts bring a part each', async () => {
    await attempt()
    return sent >= 5
  })
  t.same(fetching(), ['large'], 'each attempt brought something')
  isBarren = true
  await eventually('nothing is being fetched', async () => {
    await attempt()
    return fetching().length === 0
  })
})
