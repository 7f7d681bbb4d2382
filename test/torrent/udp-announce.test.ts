/** Trackers over UDP: a strict one, a silent one, a lying one, and libtorrent that asks the same. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { Agent } from 'undici'
import { readConfig } from '../../config/read.js'
import { systemClock } from '../../src/actor/clock.js'
import { createLog } from '../../src/actor/log.js'
import type { AnnounceRequest } from '../../src/torrent/announce.js'
import { Swarm } from '../../src/torrent/swarm.js'
import { torrentBytes } from '../../src/torrent/torrent.js'
import { trackerDefaults } from '../../src/torrent/tracker.js'
import { announceTo } from '../../src/torrent/tracker-client.js'
import { decodeUdpAnswer } from '../../src/torrent/udp-announce.js'
import { withoutLibtorrent } from './libtorrent.js'
import { leech, plantBand, sameFiles, seederOptions, testMeters } from './swarm-rig.js'
import { UdpTrackerRig } from './udp-tracker.js'

const dispatcher = new Agent()
t.teardown(() => dispatcher.destroy())

const parts = {
  dispatcher,
  timeoutMs: 5000,
  timeouts: { firstMs: 5000, doublings: 3 },
  clock: systemClock,
}
/** For trackers that are known to say nothing. */
const hasty = { ...parts, timeouts: { firstMs: 150, doublings: 3 } }
const infohashes = [randomBytes(20), randomBytes(20)]
const never = new AbortController().signal

function telling(url: string, port = 7001): AnnounceRequest {
  return { url, infohashes, peerId: randomBytes(20), port, left: 12, event: 'started' }
}

t.test('a torrent is announced under both hashes over one connection id, and peers come back', async (t) => {
  const rig = await UdpTrackerRig.start(t)
  const url = `udp://127.0.0.1:${rig.port}/announce?key=${'k'.repeat(300)}`
  t.same(await announceTo(telling(url), parts, never), { intervalSeconds: 1800, peers: [] })
  t.equal(rig.connects, 1)
  t.same(
    rig.heard,
    infohashes.map((infohash) => {
      const path = `/announce?key=${'k'.repeat(300)}`
      return {
        infohash: infohash.toString('hex'),
        port: 7001,
        left: 12,
        event: 2,
        url: path,
        host: '127.0.0.1',
      }
    }),
  )
  const second = await announceTo(telling(`udp://localhost:${rig.port}`, 7002), parts, never)
  t.same(second?.peers, [
    { host: '127.0.0.1', port: 7001 },
    { host: '127.0.0.1', port: 7001 },
  ])
  t.equal(rig.heard.at(-1)?.url, '')
})

const hasV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ family }) => family === 'IPv6'))

t.test('over IPv6 peers have its addresses', async (t) => {
  if (!hasV6) return t.comment('no IPv6 here')
  const rig = await UdpTrackerRig.start(t, true)
  await announceTo(telling(`udp://[::1]:${rig.port}`), parts, never)
  const announced = await announceTo(telling(`udp://[::1]:${rig.port}`, 7002), parts, never)
  t.same(announced?.peers[0], { host: '0:0:0:0:0:0:0:1', port: 7001 })
})

t.test('a lost request is repeated after a doubled timeout each time, and then given up', async (t) => {
  const rig = await UdpTrackerRig.start(t)
  const url = `udp://127.0.0.1:${rig.port}`
  rig.losing = 2
  t.ok(await announceTo(telling(url), hasty, never), 'the third connect is heard')
  rig.losing = 1_000_000
  const before = rig.losing
  const startedMs = systemClock.monotonic()
  t.equal(await announceTo(telling(url), hasty, never), undefined)
  t.equal(before - rig.losing, 4)
  t.ok(systemClock.monotonic() - startedMs >= 150 + 300 + 600 + 1200 - 10)
})

t.test('a connection id that the tracker has forgotten is replaced', async (t) => {
  const rig = await UdpTrackerRig.start(t)
  let isFirst = false
  const { heard } = rig
  rig.lie = (transaction, request) => {
    rig.lie = undefined
    const bytes = Buffer.alloc(16)
    bytes.writeUInt32BE(transaction, 4)
    isFirst = request.readUInt32BE(8) === 0
    return [bytes]
  }
  t.ok(await announceTo(telling(`udp://127.0.0.1:${rig.port}`), hasty, never))
  t.ok(isFirst)
  t.equal(new Set(heard.map(({ infohash }) => infohash)).size, 2)
})

t.test('malformed answers are ignored, and waiting ends on abort', async (t) => {
  const rig = await UdpTrackerRig.start(t)
  const url = `udp://127.0.0.1:${rig.port}`
  const word = (action: number, transaction: number, length: number): Buffer => {
    const bytes = Buffer.alloc(length, 0xff)
    bytes.writeUInt32BE(action, 0)
    bytes.writeUInt32BE(transaction, 4)
    return bytes
  }
  rig.lie = (transaction) => [
    Buffer.alloc(0),
    word(0, transaction, 15),
    word(0, (transaction + 1) >>> 0, 16),
    word(1, transaction, 20 + 6 * 100),
    word(7, transaction, 16),
    randomBytes(60_000),
  ]
  t.equal(await announceTo(telling(url), hasty, never), undefined)
  rig.lie = (transaction) => [Buffer.concat([word(3, transaction, 8), randomBytes(5000)])]
  t.equal(await announceTo(telling(url), hasty, never), undefined, 'an error is an answer')
  rig.lie = () => []
  const end = new AbortController()
  const running = announceTo(
    telling(url),
    { ...parts, timeouts: { firstMs: 60_000, doublings: 8 } },
    end.signal,
  )
  setTimeout(() => end.abort(), 50)
  t.equal(await running, undefined)
  t.equal(await announceTo(telling('udp://nowhere.invalid:1'), hasty, never), undefined)
  t.equal(await announceTo(telling('udp://127.0.0.1:1'), hasty, never), undefined, 'nobody is there')
  const many = Buffer.concat([word(1, 5, 20), Buffer.alloc(6 * 5000, 9)])
  const answer = decodeUdpAnswer(many, 5, false)
  t.ok(answer?.kind === 'announced' && answer.peers.length === 200 && answer.intervalSeconds === 3600)
})

t.test(
  'libtorrent finds our seeder through a tracker that we announced to',
  { skip: withoutLibtorrent() },
  async (t) => {
    const outer = t.testdir()
    const band = await plantBand(join(outer, 'band'), { a: randomBytes(1_000_000), b: randomBytes(10) })
    const file = join(outer, 'band.torrent')
    writeFileSync(file, torrentBytes(band.torrent))
    const rig = await UdpTrackerRig.start(t)
    const url = `udp://127.0.0.1:${rig.port}/announce`
    const infohashV1 = band.torrent.infohashV1.toString('hex')
    const meters = testMeters()
    const swarm = new Swarm(
      {
        seeder: seederOptions,
        tracker: trackerDefaults,
        addresses: [],
        trackers: [url],
        timeouts: parts.timeouts,
      },
      () => [{ infohashV1, torrentPath: file, path: band.path }],
      systemClock,
      meters,
      createLog('silent', 'swarm'),
      dispatcher,
    )
    const port = await swarm.start()
    t.teardown(() => swarm.close())
    while (rig.heard.length < 2) await new Promise((resolve) => setTimeout(resolve, 50))
    t.same(
      rig.heard.map((one) => [one.infohash, one.port, one.left]),
      [band.torrent.infohashV1, band.torrent.infohashV2].map((hash) => [
        hash.toString('hex', 0, 20),
        port,
        0,
      ]),
    )
    const folder = join(outer, 'got')
    mkdirSync(folder)
    t.match(await leech(file, folder, '--tracker', url), /done/)
    sameFiles(t, band.files, join(folder, band.torrent.name))
    t.equal(meters.total('torrent_announces_total'), 1)
  },
)

t.test('only addresses of trackers are taken as such', async (t) => {
  const read = (text: string): readonly string[] | string => {
    const config = readConfig({}, { INDEX_TRACKERS: text })
    return 'swarm' in config ? config.swarm.trackers : 'refused'
  }
  const good = [
    'udp://tracker.example:6969/announce',
    'https://tracker.example/announce',
    'udp://[2001:db8::1]:80',
  ]
  t.same(read(good.join(', ')), good)
  for (const bad of [
    'udp://tracker.example',
    'udp://:80',
    'udp://a:70000',
    'udp://u@a:1',
    'udp:a:1',
    'wss://a',
  ]) {
    t.equal(read(bad), 'refused', bad)
  }
})
