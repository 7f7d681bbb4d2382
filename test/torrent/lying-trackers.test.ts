/** Trackers that name peers which are none, and peers that are of no use: others get their turn all the same. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { PeerAddress } from '../../src/torrent/compact-peers.js'
import { Download, type DownloadOptions, downloadDefaults } from '../../src/torrent/download.js'
import { KnownPeers, knownPeersDefaults } from '../../src/torrent/known-peers.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import type { Torrent } from '../../src/torrent/torrent.js'
import { decodeHandshake, encode, encodeHandshake, handshakeBytes } from '../../src/torrent/wire.js'
import { eventually } from '../eventually.js'
import { HandClock } from '../names/hand-clock.js'
import { plantBand, sameFiles, startSeeder } from './swarm-rig.js'

/** As many addresses of this machine as a tracker may name: all reach the same listener. */
const addresses = (port: number, count: number): PeerAddress[] =>
  Array.from({ length: count }, (_, at) => ({ host: `127.1.${at >> 8}.${(at & 255) + 1}`, port }))

/** A listener that everybody reaches under many addresses; `meet` does what its peers do. */
async function crowd(t: Test, meet: (socket: Socket) => void): Promise<{ port: number; met(): number }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    meet(socket)
  })
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, met: () => sockets.size }
}

function download(torrent: Torrent, folder: string, more: Partial<DownloadOptions> = {}): Download {
  const base = { ...downloadDefaults, line: connectionDefaults, webAfterMs: 600_000, isNear: true }
  return new Download(torrent, folder, { ...base, ...more }, systemClock, randomBytes(20))
}

t.test('500 peers of one tracker that never answer do not keep others from being tried', async (t) => {
  const { port: silent, met } = await crowd(t, () => undefined)
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(300_000) })
  const { port } = await startSeeder(t, [band])
  const got = download(band.torrent, join(outer, 'got'), { connectMs: 600_000 })
  got.addPeers(addresses(silent, 500), 'http://liar.example/announce')
  got.addPeers([{ host: '127.0.0.1', port }], 'http://honest.example/announce')
  t.ok(await got.run())
  sameFiles(t, band.files, join(outer, 'got'))
  t.ok(met() <= downloadDefaults.peersMax)
})

t.test('peers that complete the handshake and send nothing are replaced by others', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(300_000) })
  const { port } = await startSeeder(t, [band])
  const { port: idle } = await crowd(t, (socket) => {
    let heard = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      if (heard.length >= handshakeBytes) return
      heard = Buffer.concat([heard, chunk])
      if (heard.length < handshakeBytes || decodeHandshake(heard) === undefined) return
      socket.write(encodeHandshake(band.torrent.infohashV1, randomBytes(20)))
      // It has everything, and chokes for ever.
      socket.write(encode.plain('have-all'))
    })
  })
  const got = download(band.torrent, join(outer, 'got'), { peersMax: 4, uselessMs: 300 })
  got.addPeers(addresses(idle, 100), 'http://liar.example/announce')
  const running = got.run()
  await eventually('four peers are announced', () => got.peers === 4)
  got.addPeers([{ host: '127.0.0.1', port }], 'http://honest.example/announce')
  t.ok(await running)
})

t.test('a download below the lowest rate is given up', async (t) => {
  const clock = new HandClock()
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(40 << 20) })
  const options = { ...downloadDefaults, line: connectionDefaults, webAfterMs: 1e9, isNear: true }
  const got = new Download(band.torrent, join(outer, 'got'), options, clock, randomBytes(20))
  const running = got.run()
  let isOver = false
  void running.then(() => {
    isOver = true
  })
  await eventually('a timer waits', () => clock.waiting > 0)
  // One right piece every nine minutes: each would have been enough for ten more.
  for (let minutes = 0; minutes < 90 && !isOver; minutes += 9) {
    const intake = got.store.start(() => true, clock.monotonic(), 1)
    if (intake === undefined) throw new Error('no piece is wanted')
    const { firstPiece = 0 } = band.torrent.files[0] ?? {}
    const start = (intake.piece - firstPiece) * band.torrent.pieceBytes
    const piece = band.files.a?.subarray(start, start + intake.bytes.length) ?? Buffer.alloc(0)
    for (let at = 0; at < piece.length; at += 16_384)
      got.store.take(intake, at, piece.subarray(at, at + 16_384))
    await got.store.finish(intake)
    got.moved()
    await clock.turn(540_000)
  }
  t.ok(isOver)
  t.equal(await running, false)
})

t.test('sources take turns, and one that names too many peers loses some to others', async (t) => {
  const clock = new HandClock()
  const known = new KnownPeers({ ...knownPeersDefaults, max: 10, eachMax: 8 }, clock)
  const far = (at: number): PeerAddress => ({ host: `8.8.${at}.1`, port: 1 })
  for (let at = 0; at < 50; at += 1) known.add('liar', far(at), false)
  t.equal(known.size, 8, 'a share')
  for (let at = 100; at < 105; at += 1) known.add('honest', far(at), false)
  t.equal(known.size, 10)
  const taken = new Set<string>()
  const order = Array.from({ length: 10 }, () => {
    const peer = known.next(taken)
    if (peer !== undefined) taken.add(`${peer.host} ${peer.port}`)
    return peer?.source
  })
  t.same(order.slice(0, 8), ['liar', 'honest', 'liar', 'honest', 'liar', 'honest', 'liar', 'honest'])
  t.equal(order.filter((source) => source === 'honest').length, 5, 'half of the places, though it came later')
})

t.test('peers that do not answer are removed, and not added again at once', async (t) => {
  const clock = new HandClock()
  const known = new KnownPeers({ ...knownPeersDefaults, max: 10, eachMax: 3 }, clock)
  const far = (at: number): PeerAddress => ({ host: `8.8.${at}.1`, port: 1 })
  for (let at = 0; at < 3; at += 1) known.add('tracker', far(at), false)
  const first = known.find(far(0))
  if (first === undefined) throw new Error('it is not known')
  for (let time = 0; time < 2; time += 1) known.failed(first, 15_000)
  t.equal(known.find(far(0)), first, 'as long as nobody wants its place it is tried again')
  t.ok(first.retryMs - clock.monotonic() > 15_000, 'less often')
  known.add('tracker', far(3), false)
  t.equal(known.find(far(0)), undefined)
  t.ok(known.find(far(3)))
  known.add('other', far(0), false)
  t.equal(known.find(far(0)), undefined, 'whoever names it')
  await clock.turn(knownPeersDefaults.silentMs)
  known.add('other', far(0), false)
  t.ok(known.find(far(0)))
  for (let port = 2; port < 100; port += 1) known.add('attacker', { host: '9.9.9.9', port }, false)
  t.ok(known.size <= 4 + knownPeersDefaults.portsMax, 'one machine is not named as many')
})
