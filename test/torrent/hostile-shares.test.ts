/** Peers that want what belongs to all: the places, the bytes of the limit, the time of the thread. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Clock, pause, systemClock } from '../../src/actor/clock.js'
import { Download, downloadDefaults } from '../../src/torrent/download.js'
import { type DownloadParts, LeecherPeer } from '../../src/torrent/leecher-peer.js'
import { connectionDefaults, type PeerConnection } from '../../src/torrent/peer-connection.js'
import { PieceStore } from '../../src/torrent/piece-store.js'
import { encode, encodeHandshake } from '../../src/torrent/wire.js'
import { eventually } from '../eventually.js'
import { HandClock } from '../http/hand-clock.js'
import { plantBand, sameFiles, type seederOptions, startSeeder } from './swarm-rig.js'

type Band = Awaited<ReturnType<typeof plantBand>>

const downloading = { ...downloadDefaults, webAfterMs: 60_000, line: connectionDefaults, isNear: true }

async function stage(t: Test, options: Partial<typeof seederOptions>, clock: Clock = systemClock) {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(300_000) })
  const { port, meters } = await startSeeder(t, [band], options, clock)
  const open = async (localAddress = '127.0.0.1'): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port, localAddress })
    socket.on('error', () => 'the seeder hung up')
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    socket.write(encodeHandshake(band.torrent.infohashV1, randomBytes(20)))
    await once(socket, 'readable')
    return socket
  }
  return { outer, band, port, meters, open }
}

t.test('who asks and leaves uses up nothing of the limit', async (t) => {
  const { outer, band, port, open } = await stage(t, {
    upload: { bytesPerSecond: 200_000, bytesPerDay: 2_000_000 },
  })
  const requests = Array.from({ length: 16 }, (_, at) =>
    encode.request({ piece: 0, begin: at * 16384, length: 16384 }),
  )
  for (let times = 0; times < 20; times += 1) {
    const socket = await open()
    socket.write(Buffer.concat([encode.plain('interested'), ...requests]))
    await pause(5)
    socket.destroy()
  }
  // Behind 5 MB that nobody waits for: with these the bytes of the day would not be enough.
  const got = new Download(band.torrent, join(outer, 'got'), downloading, systemClock, randomBytes(20))
  got.addPeers([{ host: '127.0.0.1', port }])
  await got.run()
  sameFiles(t, band.files, join(outer, 'got'))
})

t.test('parts of the info dictionary count for the limit', async (t) => {
  const { open, meters } = await stage(t, { upload: { bytesPerSecond: 0, bytesPerDay: 20_000 } })
  const socket = await open()
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  const greeting = encode.extended(0, Buffer.from('d1:md11:ut_metadatai3eee'))
  const wanted = encode.extended(1, Buffer.from('d8:msg_typei0e5:piecei0ee'))
  socket.write(Buffer.concat([greeting, ...new Array<Buffer>(2000).fill(wanted)]))
  await eventually('many bytes came', () => bytes > 60_000)
  const sent = meters.total('torrent_sent_bytes_total')
  t.ok(sent >= 20_000 && sent < 22_000, `${sent} of 20,000 bytes a day`)
  t.ok(bytes < 150_000, `the others are refused in few bytes: ${bytes}`)
})

t.test('where all places are taken, the network that has most of them makes room', async (t) => {
  const { open, meters } = await stage(t, { peersMax: 8, peersPerAddressMax: 2 })
  const crowd = await Promise.all(
    [2, 3, 4, 5].flatMap((last) => [last, last]).map((last) => open(`127.0.0.${last}`)),
  )
  for (const last of [1, 1, 2, 2]) t.ok((await open(`127.0.1.${last}`)).bytesRead > 0, 'another network')
  t.equal(meters.total('torrent_peers'), 8)
  for (const socket of crowd) socket.resume()
  await eventually(
    'four of the crowd are disconnected',
    () => crowd.filter(({ destroyed }) => destroyed).length === 4,
  )
  const more = await open('127.0.1.3').catch(() => undefined)
  t.equal(more?.bytesRead ?? 0, 0, 'both have their half')
})

t.test('requests that are refused, and tiny ones, keep no place', async (t) => {
  const clock = new HandClock()
  const { open, meters } = await stage(t, { peersMax: 4, slotsMax: 2 }, clock)
  const tiny = encode.request({ piece: 0, begin: 0, length: 1 })
  const refused = await Promise.all([1, 2].map((from) => open(`127.${from}.0.1`)))
  const taking = await Promise.all([3, 4].map((from) => open(`127.${from}.0.1`)))
  for (const socket of [...refused, ...taking]) socket.resume()
  const large = encode.request({ piece: 0, begin: 0, length: 16384 })
  for (const socket of taking) socket.write(Buffer.concat([encode.plain('interested'), large]))
  await eventually('two blocks were sent', () => meters.total('torrent_sent_bytes_total') === 2 * 16384)
  clock.jump(5000)
  // Nobody has unchoked these, and that costs them nothing.
  for (const socket of refused) socket.write(tiny)
  taking[0]?.write(tiny)
  await eventually('one more byte was sent', () => meters.total('torrent_sent_bytes_total') === 2 * 16384 + 1)
  clock.jump(5000)
  for (const from of [5, 6]) t.ok((await open(`127.${from}.0.1`)).bytesRead > 0, 'a newcomer')
  t.ok(await eventually('every one of them is refused', () => refused.every(({ destroyed }) => destroyed)))
  for (const socket of taking) t.notOk(socket.destroyed)
  // Who waits for the first slot has had no turn; of the others, who took least goes.
  clock.jump(10_000)
  const waiting = await Promise.all([7, 8].map((from) => open(`127.${from}.0.1`)))
  for (const socket of waiting) socket.resume().write(encode.plain('interested'))
  clock.jump(10_000)
  await eventually('four peers are connected', () => meters.total('torrent_peers') === 4)
  taking[0]?.write(large)
  await eventually('a third block was sent', () => meters.total('torrent_sent_bytes_total') === 3 * 16384 + 1)
  t.ok((await open('127.9.0.1')).bytesRead > 0)
  t.ok(
    await eventually('the slowest peer is disconnected', () => taking[1]?.destroyed === true),
    'it took the fewest bytes',
  )
  for (const socket of waiting) t.notOk(socket.destroyed)
})

t.test('where nobody has more places than others, who asks for nothing makes room', async (t) => {
  const clock = new HandClock()
  const { open, meters } = await stage(t, { peersMax: 4 }, clock)
  const crowd: Socket[] = []
  for (const from of [1, 2, 3, 4]) crowd.push(await open(`127.${from}.0.1`))
  t.equal((await open('127.9.0.1').catch(() => undefined))?.bytesRead ?? 0, 0, 'they have just come')
  clock.jump(10_000)
  const [asking] = crowd
  const request = encode.request({ piece: 0, begin: 0, length: 16384 })
  asking?.write(Buffer.concat([encode.plain('interested'), request]))
  await eventually('a block was sent', () => meters.total('torrent_sent_bytes_total') > 0)
  for (const from of [5, 6, 7]) t.ok((await open(`127.${from}.0.1`)).bytesRead > 0, 'a newcomer')
  t.equal(meters.total('torrent_peers'), 4)
  for (const socket of crowd) socket.resume()
  t.ok(
    await eventually(
      'three of the crowd are disconnected',
      () => crowd.filter(({ destroyed }) => destroyed).length === 3,
    ),
  )
  t.notOk(asking?.destroyed)
})

/** A server that sends `words` behind its handshake. */
async function hostile(t: Test, band: Band, words: readonly Buffer[]): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => 'the leecher hung up')
    socket.once('data', () => {
      socket.write(Buffer.concat([encodeHandshake(band.torrent.infohashV1, randomBytes(20)), ...words]))
    })
    socket.resume()
    t.teardown(() => socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

t.test('a flood of messages makes a leecher look for pieces no more often', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(300_000) })
  const flood = [encode.plain('unchoke'), encode.have(0), encode.plain('have-none'), encode.plain('unchoke')]
  const port = await hostile(t, band, new Array<Buffer[]>(3000).fill(flood).flat())
  const got = new Download(band.torrent, join(outer, 'got'), downloading, systemClock, randomBytes(20))
  let looks = 0
  const start = got.store.start.bind(got.store)
  got.store.start = (...about) => {
    looks += 1
    return start(...about)
  }
  got.addPeers([{ host: '127.0.0.1', port }])
  const running = got.run().catch(() => 'stopped')
  await eventually('the secret was looked up', () => looks > 0)
  await pause(300)
  t.ok(looks < 40, `12,000 messages set off ${looks} looks`)
  got.stop()
  await running
})

t.test('a peer that sends a block now and then does not keep its pieces', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(300_000) })
  const clock = new HandClock()
  const store = new PieceStore(band.torrent, join(outer, 'got'), 32 << 20)
  await store.prepare()
  const ended: string[] = []
  const parts: DownloadParts = {
    clock,
    store,
    peerId: randomBytes(20),
    received: () => undefined,
    moved: () => undefined,
    failed: (error) => t.fail(error.message),
    addPeers: () => undefined,
    onPeerClosed: () => undefined,
  }
  const peer = new LeecherPeer(parts, { host: '127.0.0.1', port: 1 }, band.torrent.infohashV1)
  const line: Pick<PeerConnection, 'send' | 'tick' | 'end' | 'isOver'> = {
    send: () => undefined,
    tick: () => undefined,
    end: (reason) => ended.push(reason),
    isOver: false,
  }
  peer.connection = line as PeerConnection
  peer.onMessage({ kind: 'have-all' })
  peer.onMessage({ kind: 'unchoke' })
  for (let block = 0; block < 10 && ended.length === 0; block += 1) {
    clock.jump(20_000)
    peer.tick(clock.monotonic())
    peer.onMessage({ kind: 'piece', piece: 0, begin: block * 16384, bytes: randomBytes(16384) })
  }
  t.same(ended, ['stalled'])
})

/** A `piece` message (BEP 3) with a block of zeros. */
function zerosFor({ piece, begin, length }: { piece: number; begin: number; length: number }): Buffer {
  const message = Buffer.alloc(13 + length)
  message.writeUInt32BE(9 + length, 0)
  message[4] = 7
  message.writeUInt32BE(piece, 5)
  message.writeUInt32BE(begin, 9)
  return message
}

/** A peer that has everything, and sends a block of zeros each `everyMs` for whatever it was asked. */
async function slowPeer(t: Test, { torrent }: Band, everyMs: number): Promise<number> {
  const server = createServer((socket) => {
    const requested: { piece: number; begin: number; length: number }[] = []
    let text = Buffer.alloc(0)
    socket.on('error', () => 'it was dropped')
    socket.on('data', (bytes: Buffer) => {
      text = Buffer.concat([text, bytes])
      if (text.length < 68) return
      for (let at = 68; at + 17 <= text.length; ) {
        const size = text.readUInt32BE(at)
        if (size === 13 && text[at + 4] === 6) {
          const [piece, begin, length] = [5, 9, 13].map((place) => text.readUInt32BE(at + place)) as [
            number,
            number,
            number,
          ]
          requested.push({ piece, begin, length })
        }
        at += 4 + size
      }
      text = text.subarray(0, 68)
    })
    const words = [
      encodeHandshake(torrent.infohashV1, randomBytes(20)),
      encode.plain('have-all'),
      encode.plain('unchoke'),
    ]
    socket.write(Buffer.concat(words))
    const sending = setInterval(() => {
      const block = requested.shift()
      if (block !== undefined) socket.write(zerosFor(block))
    }, everyMs)
    socket.on('close', () => clearInterval(sending))
  })
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

t.test('peers that send little do not hold up one that sends much', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(6_000_000) })
  const { port } = await startSeeder(t, [band])
  const slow = await Promise.all(Array.from({ length: 6 }, () => slowPeer(t, band, 300)))
  // Time passes ten times as fast.
  const clock = {
    ...systemClock,
    monotonic: () => systemClock.monotonic() * 10,
    after: (ms: number, act: () => void) => systemClock.after(ms / 10, act),
    every: (ms: number, act: () => void) => systemClock.every(ms / 10, act),
  }
  const options = { ...downloading, memoryMaxBytes: 4 << 20 }
  const got = new Download(band.torrent, join(outer, 'got'), options, clock, randomBytes(20))
  t.teardown(() => got.stop())
  const running = got.run()
  await eventually('it has begun', () => got.store.missingBytes > 0)
  for (const one of slow) got.addPeers([{ host: '127.0.0.1', port: one }], `slow ${one}`)
  await eventually(
    'the slow ones are connected',
    () => got.peers === slow.length,
    () => got.peers,
  )
  got.addPeers([{ host: '127.0.0.1', port }], 'honest')
  const late = new AbortController()
  t.equal(await Promise.race([running, pause(12_000, late.signal)]), true, 'within two minutes of its time')
  late.abort()
  sameFiles(t, band.files, join(outer, 'got'))
})
