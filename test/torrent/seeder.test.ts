/** The seeder as other programs see it. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { Download, downloadDefaults } from '../../src/torrent/download.js'
import { connectionDefaults } from '../../src/torrent/peer-connection.js'
import { magnetOf, torrentBytes } from '../../src/torrent/torrent.js'
import { TestPublisher } from '../bands/publisher-rig.js'
import { eventually } from '../eventually.js'
import { bandOf257, withoutLibtorrent } from './libtorrent.js'
import { leech, plantBand, sameFiles, startSeeder } from './swarm-rig.js'

t.test(
  'libtorrent gets a band of 257 files by .torrent and by each magnet',
  {
    skip: withoutLibtorrent(),
  },
  async (t) => {
    const outer = t.testdir()
    const band = await plantBand(join(outer, 'band'), { ...bandOf257(), 'empty.cdb': new Uint8Array(0) })
    const { torrent, files } = band
    const { port } = await startSeeder(t, [band])
    const file = join(outer, 'band.torrent')
    writeFileSync(file, torrentBytes(torrent))
    const v1 = `magnet:?xt=urn:btih:${torrent.infohashV1.toString('hex')}`
    const v2 = `magnet:?xt=urn:btmh:1220${torrent.infohashV2.toString('hex')}`
    for (const [name, source] of Object.entries({ file, v1, v2, both: magnetOf(torrent) })) {
      const folder = join(outer, name)
      mkdirSync(folder)
      t.match(await leech(source, folder, '--peer', String(port)), /done/, `by ${name}`)
      sameFiles(t, files, join(folder, torrent.name))
    }
  },
)

t.test(
  'libtorrent takes what is here of a torrent, and the rest when it comes',
  {
    skip: withoutLibtorrent(),
  },
  async (t) => {
    const outer = t.testdir()
    const band = await plantBand(join(outer, 'band'), { a: randomBytes(2_000_000), b: randomBytes(10) })
    let isWhole = false
    const { port, meters } = await startSeeder(t, [{ ...band, has: (piece) => isWhole || piece % 2 === 0 }])
    const file = join(outer, 'band.torrent')
    writeFileSync(file, torrentBytes(band.torrent))
    const folder = join(outer, 'got')
    mkdirSync(folder)
    const leeching = leech(file, folder, '--peer', String(port))
    await eventually('a megabyte was sent', () => meters.total('torrent_sent_bytes_total') >= 1_000_000)
    isWhole = true
    t.match(await leeching, /done/)
    sameFiles(t, band.files, join(folder, band.torrent.name))
  },
)

t.test('a limit counts the bytes that are sent, and no others', async (t) => {
  const outer = t.testdir()
  const files = Object.fromEntries(
    Array.from({ length: 100 }, (_, index) => [`f${index}`, randomBytes(1000)]),
  )
  const band = await plantBand(join(outer, 'band'), files)
  const { port, meters } = await startSeeder(t, [band], {
    upload: { bytesPerSecond: 60_000, bytesPerDay: 110_000 },
  })
  const fetchTo = (name: string): Download => {
    const options = { ...downloadDefaults, webAfterMs: 60_000, line: connectionDefaults, isNear: true }
    const got = new Download(band.torrent, join(outer, name), options, systemClock, randomBytes(20))
    got.addPeers([{ host: '127.0.0.1', port }])
    return got
  }
  const startedMs = systemClock.monotonic()
  await fetchTo('one').run()
  const tookMs = systemClock.monotonic() - startedMs
  t.ok(tookMs > 500, `100 KB at 60 KB/s, with a second saved up: ${tookMs} ms`)
  t.equal(meters.total('torrent_sent_bytes_total'), 100_000)
  const second = fetchTo('two')
  const running = second.run().catch(() => 'stopped')
  await eventually('the rest was sent', () => meters.total('torrent_sent_bytes_total') >= 110_000)
  // Nothing more comes, however long it waits.
  await pause(300)
  second.stop()
  await running
  const sent = meters.total('torrent_sent_bytes_total')
  t.ok(sent >= 110_000 && sent < 112_000, `and ${sent} a day`)
})

t.test(
  'libtorrent finds the seeder by the tracker alone, which tells it under both hashes',
  {
    skip: withoutLibtorrent(),
  },
  async (t) => {
    const outer = t.testdir()
    const band = await plantBand(join(outer, 'band'), { a: randomBytes(1_000_000), b: randomBytes(10) })
    const { port } = await startSeeder(t, [band])
    const publisher = new TestPublisher()
    const url = await publisher.listen()
    t.teardown(() => publisher.close())
    publisher.seederPort = port
    publisher.publish([{ id: 'band', files: band.files, torrent: band.torrent }])
    const file = join(outer, 'band.torrent')
    writeFileSync(file, torrentBytes(band.torrent))
    const folder = join(outer, 'got')
    mkdirSync(folder)
    t.match(await leech(file, folder, '--tracker', `${url}/indexes/announce`), /done/)
    sameFiles(t, band.files, join(folder, band.torrent.name))
  },
)
