/** The downloading side: from our seeder, from libtorrent, over HTTP, after a kill, and among liars. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { Agent } from 'undici'
import { pause, systemClock } from '../../src/actor/clock.js'
import { Download, downloadDefaults } from '../../src/torrent/download.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { type Torrent, torrentBytes } from '../../src/torrent/torrent.js'
import type { WebSeed } from '../../src/torrent/web-seed.js'
import { eventually } from '../eventually.js'
import { bandOf257, python, script, withoutLibtorrent } from './libtorrent.js'
import { plantBand, sameFiles, startSeeder } from './swarm-rig.js'

const options = { ...downloadDefaults, line: connectionDefaults, webAfterMs: 60_000, isNear: true }

function download(torrent: Torrent, folder: string, web?: WebSeed): Download {
  const own = web === undefined ? options : { ...options, webAfterMs: 0 }
  return new Download(torrent, folder, own, systemClock, randomBytes(20), web)
}

/** An HTTP server over a folder, with ranges; `spoil` may change what it sends. */
async function serveFolder(t: Test, folder: string, spoil?: (bytes: Buffer) => Buffer): Promise<WebSeed> {
  const server = createServer((request, response) => {
    const name = (request.url ?? '').split('/').at(-1) ?? ''
    const [, from = '', to = ''] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? []
    const path = join(folder, name)
    const parts: Buffer[] = []
    createReadStream(path, { start: Number(from), end: Number(to) })
      .on('data', (part) => parts.push(Buffer.from(part)))
      .on('end', () => {
        const range = `bytes ${from}-${to}/${statSync(path).size}`
        const bytes = Buffer.concat(parts)
        response.writeHead(206, { 'Content-Range': range }).end(spoil?.(bytes) ?? bytes)
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const dispatcher = new Agent()
  t.teardown(async () => {
    await dispatcher.destroy()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { base: `http://127.0.0.1:${port}/`, dispatcher, timeoutMs: 30_000 }
}

t.test('a band comes from our own seeder', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { ...bandOf257(), 'empty.cdb': new Uint8Array(0) })
  const { port, meters } = await startSeeder(t, [band])
  const got = download(band.torrent, join(outer, 'got'))
  got.addPeers([{ host: '127.0.0.1', port }])
  await got.run()
  sameFiles(t, band.files, join(outer, 'got'))
  const bytes = Object.values(band.files).reduce((sum, file) => sum + file.length, 0)
  t.equal(meters.total('torrent_sent_bytes_total'), bytes, 'nothing was sent twice, and no padding')
})

t.test('a band comes from libtorrent', { skip: withoutLibtorrent() }, async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'x'), bandOf257())
  await plantBand(join(outer, band.torrent.name), band.files)
  const file = join(outer, 'band.torrent')
  writeFileSync(file, torrentBytes(band.torrent))
  const seeding = spawn(python, [script('torrent_peer.py'), 'seed', file, outer, '--seconds', '110'])
  t.teardown(() => seeding.kill())
  const [line] = (await once(createInterface({ input: seeding.stdout }), 'line')) as [string]
  const got = download(band.torrent, join(outer, 'got'))
  got.addPeers([{ host: '127.0.0.1', port: Number(line.split(' ')[1]) }])
  await got.run()
  sameFiles(t, band.files, join(outer, 'got'))
})

t.test('valid pieces on disk are not fetched again, and wrong ones are', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), {
    a: randomBytes(1_000_000),
    b: randomBytes(3_000_000),
    c: randomBytes(10),
  })
  const { port, meters } = await startSeeder(t, [band])
  const folder = join(outer, 'got')
  mkdirSync(folder)
  writeFileSync(join(folder, 'a'), band.files.a!)
  const spoilt = Buffer.from(band.files.b!)
  spoilt[300_000]! ^= 1
  writeFileSync(join(folder, 'b'), spoilt)
  truncateSync(join(folder, 'b'), 2_500_000)
  writeFileSync(join(folder, 'c'), 'much longer than it should be')
  const got = download(band.torrent, folder)
  got.addPeers([{ host: '127.0.0.1', port }])
  await got.run()
  sameFiles(t, band.files, folder)
  // One spoilt piece, those behind the cut, and the short file.
  const pieces = Math.ceil(3_000_000 / 262144)
  const whole = Math.floor(2_500_000 / 262144)
  t.equal(meters.total('torrent_sent_bytes_total'), 262144 + 3_000_000 - whole * 262144 + 10, `of ${pieces}`)
})

t.test('a band comes over HTTP alone', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), bandOf257())
  const web = await serveFolder(t, join(outer, 'band'))
  await download(band.torrent, join(outer, 'got'), web).run()
  sameFiles(t, band.files, join(outer, 'got'))
})

t.test('pieces from a server with wrong bytes are dropped, and peers send the rest', async (t) => {
  const outer = t.testdir()
  const band = await plantBand(join(outer, 'band'), { a: randomBytes(2_000_000) })
  let lies = 0
  const web = await serveFolder(t, join(outer, 'band'), (bytes) => {
    lies += 1
    return randomBytes(bytes.length)
  })
  const got = download(band.torrent, join(outer, 'got'), web)
  const running = got.run()
  await eventually('a false piece came', () => lies > 0)
  await pause(300)
  t.equal(got.store.missingBytes, 2_000_000)
  t.ok(readFileSync(join(outer, 'got', 'a')).equals(Buffer.alloc(2_000_000)), 'no wrong byte is written')
  const { port } = await startSeeder(t, [band])
  got.addPeers([{ host: '127.0.0.1', port }])
  await running
  sameFiles(t, band.files, join(outer, 'got'))
})

t.test('a peer that sends wrong bytes is dropped, and the others send the band', async (t) => {
  const outer = t.testdir()
  const files = { a: randomBytes(8_000_000) }
  const band = await plantBand(join(outer, 'band'), files)
  await plantBand(join(outer, 'lies'), { a: randomBytes(8_000_000) })
  const { port: liar, meters } = await startSeeder(t, [
    { torrent: band.torrent, path: (name) => join(outer, 'lies', name) },
  ])
  const got = download(band.torrent, join(outer, 'got'))
  got.addPeers([{ host: '127.0.0.1', port: liar }])
  const running = got.run()
  await eventually('a block was sent', () => meters.total('torrent_sent_bytes_total') > 0)
  await pause(300)
  t.equal(got.store.missingBytes, 8_000_000)
  const { port } = await startSeeder(t, [band])
  got.addPeers([{ host: '127.0.0.1', port }])
  await running
  sameFiles(t, files, join(outer, 'got'))
})
