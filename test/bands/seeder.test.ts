/** The seeder as other programs see it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { magnetOf, torrentBytes } from '../../src/format/torrent.js'
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
