/** Peers that are none. Each is sent away, counted by its reason, and the seeder serves the next one as before. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Download, downloadDefaults } from '../../src/torrent/download.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { decodeMessage, encode, encodeHandshake } from '../../src/torrent/wire.js'
import { eventually } from '../eventually.js'
import { plantBand, sameFiles, type seederOptions, startSeeder } from './swarm-rig.js'

async function stage(t: Test, options: Partial<typeof seederOptions> = {}) {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(2_000_000), b: randomBytes(100) })
  const line = { ...connectionDefaults, handshakeMs: 2000, stallMs: 2000, idleMs: 10_000 }
  const { port, meters, seeder } = await startSeeder(t, [band], { line, ...options })
  const open = async (): Promise<Socket> => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.on('error', () => 'the seeder hung up')
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  const greet = async (): Promise<Socket> => {
    const socket = await open()
    socket.write(encodeHandshake(band.torrent.infohashV1, randomBytes(20)))
    await once(socket, 'data')
    return socket
  }
  const ended = async (reason: string): Promise<boolean> => {
    const line = `torrent_connections_ended_total{reason="${reason}"} `
    return eventually('the metric of ended connections', () => {
      const text = meters.text()
      return text.includes(line) && !text.includes(`${line}0\n`)
    })
  }
  const stillServes = async (): Promise<void> => {
    const options = { ...downloadDefaults, webAfterMs: 60_000, line: connectionDefaults, isNear: true }
    const folder = join(outer, `got-${randomBytes(4).toString('hex')}`)
    const got = new Download(band.torrent, folder, options, systemClock, randomBytes(20))
    got.addPeers([{ host: '127.0.0.1', port }])
    await got.run()
    sameFiles(t, band.files, folder)
  }
  return { band, seeder, port, meters, open, greet, ended, stillServes }
}

t.test('garbage and unknown torrents end the connection at once', async (t) => {
  const { open, ended, stillServes, meters } = await stage(t)
  ;(await open()).write(randomBytes(1000))
  t.ok(await ended('garbage'))
  ;(await open()).write('GET / HTTP/1.1\r\n\r\n')
  ;(await open()).write(encodeHandshake(randomBytes(20), randomBytes(20)))
  t.ok(await ended('unknown'))
  await stillServes()
  t.equal(meters.total('torrent_peers') >= 0, true)
})

t.test('a handshake that is not completed in time ends the connection', async (t) => {
  const { open, ended, band } = await stage(t)
  const socket = await open()
  socket.write(encodeHandshake(band.torrent.infohashV1, randomBytes(20)).subarray(0, 60))
  t.ok(await ended('late'))
})

t.test('messages that are too long, or wrong for their kind, end the connection', async (t) => {
  const { greet, ended, stillServes, meters } = await stage(t)
  const bad = [
    Buffer.from('ffffffff', 'hex'),
    Buffer.from('0002000105', 'hex'),
    Buffer.from('000000020101', 'hex'),
    Buffer.from('0000000106', 'hex'),
    encode.request({ piece: 0, begin: 0, length: 1 << 20 }),
    encode.request({ piece: 0xffffffff, begin: 0, length: 16384 }),
    encode.request({ piece: 0, begin: 262144, length: 16384 }),
    encode.request({ piece: 0, begin: 0, length: 0 }),
    encode.extended(0, Buffer.from('i1e')),
    encode.hashes(
      { root: Buffer.alloc(32), baseLayer: 0, index: 0, length: 2, proofLayers: 0 },
      Buffer.alloc(64),
    ),
  ]
  for (const bytes of bad) {
    const socket = await greet()
    socket.resume().write(bytes)
    await once(socket, 'close')
  }
  t.ok(await ended('garbage'))
  await stillServes()
  t.ok(meters.total('torrent_sent_bytes_total') >= 2_000_100)
})

t.test('a flood of requests is rejected, and then the connection is closed', async (t) => {
  const { greet, ended, stillServes } = await stage(t)
  const socket = await greet()
  socket.resume()
  const request = encode.request({ piece: 0, begin: 0, length: 16384 })
  // Never unchoked, because it never sent that it was interested.
  socket.write(Buffer.concat(new Array(10_000).fill(request)))
  t.ok(await ended('flood'))
  await stillServes()
})

t.test('a peer that asks and does not read is dropped, and uses little memory until then', async (t) => {
  const { greet, ended, stillServes } = await stage(t)
  const sockets = await Promise.all(Array.from({ length: 20 }, greet))
  const before = process.memoryUsage().rss
  for (const socket of sockets) {
    socket.pause()
    socket.write(encode.plain('interested'))
    const requests = Array.from({ length: 400 }, (_, index) =>
      encode.request({ piece: index % 7, begin: 0, length: 16384 }),
    )
    socket.write(Buffer.concat(requests))
    const span = { root: randomBytes(32), baseLayer: 4, index: 0, length: 8, proofLayers: 0 }
    socket.write(Buffer.concat(new Array(2000).fill(encode.hashRequest(span))))
    socket.write(
      Buffer.concat(new Array(2000).fill(encode.extended(1, Buffer.from('d8:msg_typei0e5:piecei0ee')))),
    )
  }
  await new Promise((resolve) => setTimeout(resolve, 500))
  const grown = (process.memoryUsage().rss - before) / 2 ** 20
  t.ok(grown < 64, `20 such peers took ${grown.toFixed(0)} MiB`)
  t.ok(await ended('stalled'))
  await stillServes()
})

t.test('connections beyond the bounds are closed', async (t) => {
  const { open, greet, ended } = await stage(t, { peersPerAddressMax: 3 })
  await Promise.all([greet(), greet(), greet()])
  await open()
  t.ok(await ended('full'))
})

t.test('peers take turns where there are fewer upload slots', async (t) => {
  const { greet } = await stage(t, { slotsMax: 1, slotMs: 500 })
  const heard: string[] = []
  for (const name of ['first', 'second']) {
    const socket = await greet()
    let rest = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
        const length = rest.readUInt32BE(0)
        const { kind } = decodeMessage(rest.subarray(4, 4 + length)) ?? { kind: 'bad' }
        if (kind === 'choke' || kind === 'unchoke') heard.push(`${name} ${kind}`)
        rest = rest.subarray(4 + length)
      }
    })
    socket.write(encode.plain('interested'))
    // The first has the slot before the second wants it.
    await eventually('a message came', () => heard.length > 0)
  }
  await eventually('three messages came', () => heard.length >= 3)
  t.same(heard.slice(0, 3), ['first unchoke', 'first choke', 'second unchoke'])
})
