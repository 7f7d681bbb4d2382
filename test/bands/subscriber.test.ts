/** Following a publisher: what is listed comes, what is wrong does not, what is replaced goes. */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Agent, type Dispatcher } from 'undici'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import type { Meters } from '../../src/actor/meter.js'
import { BandStore } from '../../src/bands/band-store.js'
import { signPublication } from '../../src/bands/document.js'
import { PinnedKeys, type PublisherKeys } from '../../src/bands/publisher-keys.js'
import { RegisteredKeys } from '../../src/bands/registered-keys.js'
import { Subscriber, type SubscriberOptions } from '../../src/bands/subscriber.js'
import { downloadDefaults } from '../../src/torrent/download.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { Swarm } from '../../src/torrent/swarm.js'
import { trackerDefaults } from '../../src/torrent/tracker.js'
import { announceTo } from '../../src/torrent/tracker-client.js'
import { udpTimeouts } from '../../src/torrent/udp-announce.js'
import { plantBand, sameFiles, seederOptions, startSeeder, testMeters } from '../torrent/swarm-rig.js'
import { UdpTrackerRig } from '../torrent/udp-tracker.js'
import { newKey, plainKind, TestPublisher } from './publisher-rig.js'

async function stage(
  t: Test,
  options: Partial<SubscriberOptions> = {},
  trackers: readonly string[] = [],
  webAfterMs = 1000,
) {
  const outer = t.testdir()
  const publisher = new TestPublisher()
  const url = await publisher.listen()
  const bandStore = new BandStore(join(outer, 'bands'))
  await bandStore.prepare()
  const dispatcher = new Agent()
  t.teardown(async () => {
    publisher.close()
    await dispatcher.destroy()
  })
  const open = async ({
    place = bandStore,
    keys = new PinnedKeys(),
    options: more = {},
  }: {
    place?: BandStore
    keys?: PublisherKeys
    options?: Partial<SubscriberOptions>
  } = {}): Promise<Subscriber> => {
    const subscriber = await Subscriber.open(
      {
        subscriptions: [{ url, keyId: publisher.signing.keyId }],
        domains: ['gateway-index-publication/v1'],
        pollMs: 1000,
        graceMs: 0,
        bytesMax: 2 ** 30,
        bandsAtOnce: 2,
        ...options,
        ...more,
      },
      {
        http: { dispatcher, timeoutMs: 30_000, userAgent: 'test' },
        clock: systemClock,
        peerId: randomBytes(20),
        download: { ...downloadDefaults, webAfterMs, line: connectionDefaults },
        trackers,
        bandStore: place,
        kinds: [plainKind],
        keys,
        log: silentLog,
      },
    )
    t.teardown(() => subscriber.stop())
    return subscriber
  }
  const installed = async (): Promise<string[]> => (await bandStore.list('installed')).map(({ id }) => id)
  const folder = (id: string): string => join(outer, 'bands', 'installed', 'plain-index', id)
  return { outer, publisher, url, bandStore, open, installed, folder, dispatcher }
}

async function turn(subscriber: Subscriber): Promise<void> {
  await subscriber.poll()
  await subscriber.settled()
}

t.test('bands come by torrent from the seeder, over HTTP from the web seed, and plainly', async (t) => {
  const { outer, publisher, open, installed, folder } = await stage(t)
  const one = await plantBand(join(outer, 'one'), { a: randomBytes(700_000), b: randomBytes(20) })
  const two = await plantBand(join(outer, 'two'), { a: randomBytes(300_000) })
  const three = { a: randomBytes(100_000), c: new Uint8Array(0) }
  const { port, meters } = await startSeeder(t, [one])
  publisher.seederPort = port
  for (const name of ['a', 'b']) publisher.lies.set(`/webseed/${one.torrent.name}/${name}`, Buffer.alloc(1))
  publisher.publish([
    { id: 'one', files: one.files, torrent: one.torrent },
    { id: 'two', files: two.files, torrent: two.torrent },
    { id: 'three', files: three },
  ])
  await turn(await open())
  t.same((await installed()).sort(), ['one', 'three', 'two'])
  sameFiles(t, one.files, folder('one'))
  sameFiles(t, two.files, folder('two'))
  sameFiles(t, three, folder('three'))
  t.ok(meters.total('torrent_sent_bytes_total') > 0)
  t.same(readdirSync(join(outer, 'bands', 'fetching', 'plain-index')), [], 'nothing is left behind')
})

t.test(
  'a publisher of the other vocabulary is followed under its own path, and after a restart',
  async (t) => {
    const { publisher, url, open, installed, folder } = await stage(t)
    const origin = url.replace(/\/gateway$/, '')
    const [wrong, nowhere] = [`${origin}/ar-io`, `${origin}/elsewhere`]
    const { keyId } = publisher.signing
    const named = { options: { subscriptions: [{ url: wrong, others: [nowhere, url], keyId }] } }
    const one = { a: randomBytes(1000) }
    publisher.publish([{ id: 'one', files: one }])
    const subscriber = await open(named)
    await turn(subscriber)
    t.same(subscriber.faults, [])
    t.same(await installed(), ['one'])
    sameFiles(t, one, folder('one'))
    await subscriber.stop()
    publisher.publish([
      { id: 'one', files: one },
      { id: 'two', files: { a: randomBytes(10) } },
    ])
    publisher.requested.length = 0
    const again = await open(named)
    await turn(again)
    t.same((await installed()).sort(), ['one', 'two'])
    t.equal(publisher.requested[0], '', 'the address that answered is asked first')
    await again.stop()

    publisher.lies.set('', Buffer.from('<html>'))
    const last = await open(named)
    await turn(last)
    t.equal(last.faults.length, 1)
    const [fault = ''] = last.faults
    for (const reason of [`${wrong}/indexes: status 404`, `${url}/indexes: publication: not JSON`]) {
      t.ok(fault.includes(reason), `${fault} says ${reason}`)
    }
  },
)

t.test('trackers that the operator names are asked too', async (t) => {
  const rig = await UdpTrackerRig.start(t)
  const url = `udp://127.0.0.1:${rig.port}`
  const { outer, publisher, open, installed } = await stage(t, {}, [url], 60_000)
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(700_000) })
  const { port, meters } = await startSeeder(t, [band])
  const infohashes = [band.torrent.infohashV1]
  const seeder = { url, infohashes, peerId: randomBytes(20), port, left: 0 }
  const dispatcher = new Agent()
  const parts = { dispatcher, timeoutMs: 30_000, timeouts: udpTimeouts, clock: systemClock }
  await announceTo(seeder, parts, new AbortController().signal)
  await dispatcher.destroy()
  publisher.publish([{ id: 'band', files: band.files, torrent: band.torrent }])
  await turn(await open())
  t.same(await installed(), ['band'])
  t.equal(meters.total('torrent_sent_bytes_total'), 700_000, 'all from the peer that the tracker named')
})

t.test('an old band is removed only after its replacement is installed', async (t) => {
  const { publisher, open, installed } = await stage(t)
  publisher.publish([{ id: 'old', files: { a: randomBytes(1000) } }])
  const subscriber = await open()
  await turn(subscriber)
  t.same(await installed(), ['old'])
  const next = { id: 'new', files: { a: randomBytes(1000) }, metadata: { supersedes: ['old'] } }
  publisher.publish([next])
  publisher.lies.set('/plain-index/new/a', Buffer.from('gone for the moment'))
  await turn(subscriber)
  t.same(await installed(), ['old'], 'kept while the new one cannot be had')
  publisher.lies.clear()
  await subscriber.stop()
  const again = await open()
  await turn(again)
  await turn(again)
  await turn(again)
  t.same(await installed(), ['new'])
})

t.test('forged, older and other documents change nothing', async (t) => {
  const { publisher, open, installed } = await stage(t)
  const band = { id: 'one', files: { a: randomBytes(1000) } }
  const first = publisher.publish([band])
  const subscriber = await open()
  publisher.publish([band])
  await turn(subscriber)
  t.same(await installed(), ['one'])
  const good = JSON.parse(publisher.publish([{ id: 'evil', files: { a: randomBytes(10) } }]).toString())
  const { signature: _signature, ...unsigned } = good
  for (const [why, bytes] of [
    ['an older one', first],
    ['another key', signPublication(unsigned, newKey().key)],
    ['a changed one', Buffer.from(JSON.stringify({ ...good, sequence: good.sequence + 1 }))],
    ['another domain', signPublication(unsigned, publisher.signing.key, 'other/v1')],
    ['the same sequence', signPublication({ ...unsigned, sequence: 2 }, publisher.signing.key)],
    ['garbage', randomBytes(100)],
    ['too much', Buffer.alloc(5 << 20, 0x20)],
    ['nothing', Buffer.alloc(0)],
  ] as const) {
    publisher.lies.set('', bytes)
    await turn(subscriber)
    t.same(await installed(), ['one'], why)
  }
  await subscriber.stop()
  publisher.lies.set('', first)
  await turn(await open())
  t.same(await installed(), ['one'], 'and the highest sequence outlives a restart')
})

t.test('bands whose bytes or insides are wrong are not installed', async (t) => {
  const { outer, publisher, open, installed } = await stage(t)
  const wrong = await plantBand(join(outer, 'x'), { a: randomBytes(10_000) })
  const other = await plantBand(join(outer, 'y'), { a: randomBytes(10_000) })
  publisher.publish([
    { id: 'bad-inside', files: { a: Buffer.from('bad, says its kind') } },
    { id: 'bad-bytes', files: { a: randomBytes(50) } },
    { id: 'bad-torrent', files: wrong.files, torrent: other.torrent },
    { id: 'good', files: { a: randomBytes(60) } },
  ])
  publisher.lies.set('/plain-index/bad-bytes/a', randomBytes(50))
  publisher.lies.set('/plain-index/bad-torrent/a', randomBytes(10_000))
  const subscriber = await open()
  await turn(subscriber)
  t.same(await installed(), ['good'])
  t.notOk(existsSync(join(outer, 'bands', 'installed', 'plain-index', 'bad-inside')))
})

t.test('no address of the publisher is followed, only its own paths', async (t) => {
  const { publisher, open, installed } = await stage(t)
  const files = { a: randomBytes(100) }
  publisher.publish([{ id: 'one', files }])
  const document = JSON.parse(publisher.publish([{ id: 'one', files }]).toString())
  const { signature: _signature, ...unsigned } = document
  unsigned.indexes[0].bands[0].http = { baseUrl: 'http://127.0.0.1:1/elsewhere/' }
  publisher.lies.set('', signPublication(unsigned, publisher.signing.key))
  await turn(await open())
  t.same(await installed(), ['one'])
  t.notOk(publisher.requested.some((path) => path.includes('elsewhere')))
})

t.test('no more is fetched than may lie on the disk', async (t) => {
  const { publisher, open, installed } = await stage(t, { bytesMax: 2500 })
  publisher.publish(['one', 'two', 'three'].map((id) => ({ id, files: { a: randomBytes(1000) } })))
  await turn(await open())
  t.equal((await installed()).length, 2)
})

t.test('an empty list removes no bands', async (t) => {
  const { publisher, open, installed } = await stage(t)
  publisher.publish([{ id: 'one', files: { a: randomBytes(10) } }])
  const subscriber = await open()
  await turn(subscriber)
  publisher.publish([])
  for (let times = 0; times < 3; times += 1) await turn(subscriber)
  t.same(await installed(), ['one'])
})

/** Seeds what a subscriber offers, until the end of the test. */
async function seededOn(
  t: Test,
  follower: Subscriber,
  dispatcher: Dispatcher,
): Promise<{ port: number; meters: Meters }> {
  const meters = testMeters()
  const swarm = new Swarm(
    { seeder: seederOptions, tracker: trackerDefaults, addresses: [], trackers: [], timeouts: udpTimeouts },
    () => follower.offerings,
    systemClock,
    meters,
    silentLog,
    dispatcher,
  )
  const port = await swarm.start()
  t.teardown(() => swarm.close())
  return { port, meters }
}

t.test(
  'fetched bands are seeded until no publisher lists them, and announced to the publishers',
  async (t) => {
    const { outer, publisher, url, open, dispatcher, bandStore } = await stage(t)
    const one = await plantBand(join(outer, 'one'), { a: randomBytes(700_000), b: randomBytes(20) })
    const listed = { id: 'one', files: one.files, torrent: one.torrent }
    publisher.publish([listed, { id: 'plain', files: { a: randomBytes(10) } }])
    const first = await open()
    await turn(first)
    await first.stop()
    const follower = await open()
    t.equal(follower.offerings.length, 1, 'known again after a restart, without asking anybody')
    const { port, meters } = await seededOn(t, follower, dispatcher)
    t.same(follower.offerings[0]?.trackers, [`${url}/indexes/announce`])
    while (!publisher.ports.includes(port)) await new Promise((resolve) => setTimeout(resolve, 50))
    for (const name of ['a', 'b']) publisher.lies.set(`/webseed/${one.torrent.name}/${name}`, Buffer.alloc(1))
    const other = new BandStore(join(outer, 'other'))
    await other.prepare()
    await turn(await open({ place: other }))
    sameFiles(t, one.files, join(outer, 'other', 'installed', 'plain-index', 'one'))
    t.ok(meters.total('torrent_sent_bytes_total') >= 700_020, 'all of it came from the follower')
    publisher.lies.clear()
    publisher.publish([{ id: 'two', files: { a: randomBytes(10) } }])
    await turn(follower)
    t.same(follower.offerings, [])
    await turn(follower)
    await turn(follower)
    t.same(
      (await bandStore.list('installed')).map(({ id }) => id),
      ['two'],
    )
    t.same(readdirSync(join(outer, 'bands', 'subscribed', 'torrents')), [])
  },
)

t.test('pieces of a band are seeded while the rest is being fetched', async (t) => {
  const { outer, publisher, open, dispatcher } = await stage(t)
  const band = await plantBand(join(outer, 'one'), { a: randomBytes(600_000), b: randomBytes(600_000) })
  const listed = { id: 'one', files: band.files, torrent: band.torrent }
  const webSeed = (name: string): string => `/webseed/${band.torrent.name}/${name}`
  publisher.publish([listed])
  publisher.lies.set(webSeed('b'), Buffer.alloc(1))
  const follower = await open()
  await follower.poll()
  const { port, meters } = await seededOn(t, follower, dispatcher)
  const other = new TestPublisher(undefined, publisher.signing)
  const url = await other.listen()
  t.teardown(() => other.close())
  other.seederPort = port
  other.publish([listed])
  for (const name of ['a', 'b']) other.lies.set(webSeed(name), Buffer.alloc(1))
  const place = new BandStore(join(outer, 'other'))
  await place.prepare()
  const subscriptions = [{ url, keyId: publisher.signing.keyId }]
  const late = await open({ place, options: { subscriptions } })
  await late.poll()
  const sent = (): number => meters.total('torrent_sent_bytes_total')
  while (sent() < 600_000) await new Promise((resolve) => setTimeout(resolve, 50))
  t.same(await place.list('installed'), [], 'half of it')
  publisher.lies.clear()
  await follower.settled()
  await late.settled()
  sameFiles(t, band.files, join(outer, 'other', 'installed', 'plain-index', 'one'))
  t.ok(sent() >= 1_200_000, 'the other half came when the follower had it, and from nowhere else')
})

t.test('a wallet is followed by the key that its registry has, and by the next one after that', async (t) => {
  const wallet = newKey().keyId
  const registry = join(t.testdir(), 'registry.json')
  const { publisher, url, open, installed } = await stage(t)
  const register = (observerAddress: string): void =>
    writeFileSync(registry, JSON.stringify({ gateways: { a: { wallet, observerAddress } } }))
  const asking = { dispatcher: new Agent(), timeoutMs: 30_000, userAgent: 'test' }
  const keys = new RegisteredKeys({ source: registry, believeMs: 0 }, new PinnedKeys(), asking, systemClock)
  const subscriber = await open({ options: { subscriptions: [{ url, publisher: wallet }] }, keys })
  register(newKey().keyId)
  publisher.publish([{ id: 'one', files: { a: randomBytes(10) } }], { publisher: wallet })
  await turn(subscriber)
  t.same(await installed(), [], 'signed by another key than the registered one')
  register(publisher.signing.keyId)
  await turn(subscriber)
  t.same(await installed(), ['one'])
  publisher.publish([{ id: 'two', files: { a: randomBytes(10) } }])
  await turn(subscriber)
  t.same(await installed(), ['one'], 'the right key in the name of another wallet')
  rmSync(registry)
  publisher.publish([{ id: 'three', files: { a: randomBytes(10) } }], { publisher: wallet })
  await turn(subscriber)
  t.same(await installed(), ['one'], 'without its registry nothing changes')
})
