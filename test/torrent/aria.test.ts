import { randomBytes } from 'node:crypto'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { magnetOf, torrentBytes } from '../../src/torrent/torrent.js'
import { TestPublisher } from '../bands/publisher-rig.js'
import { withoutAria } from './libtorrent.js'
import { aria, plantBand, sameFiles, startSeeder } from './swarm-rig.js'

/** aria2 takes a hybrid torrent for one of version 1, and works out another infohash of it than everybody else. */
t.test('aria2 gets a band from tracker and seeder alone', { skip: withoutAria() }, async (t) => {
  const root = t.testdir()
  const files = {
    'a.cdb': randomBytes(900_001),
    'b.cdb': randomBytes(4096),
    'manifest.json': Buffer.from('{}'),
  }
  const band = await plantBand(join(root, 'band'), files)
  const { torrent } = band
  const { port } = await startSeeder(t, [band])
  const publisher = new TestPublisher()
  const url = await publisher.listen()
  t.teardown(() => publisher.close())
  publisher.seederPort = port
  publisher.publish([{ id: 'band', files, torrent }])
  const file = join(root, 'band.torrent')
  writeFileSync(file, torrentBytes(torrent))
  const ways: Readonly<Record<string, readonly string[]>> = {
    file: ['--torrent-file', file],
    magnet: ['--follow-torrent=mem', magnetOf(torrent)],
    encrypted: ['--torrent-file', file, '--bt-force-encryption=true'],
  }
  const fetched = Object.entries(ways).map(async ([name, words]) => {
    const place = join(root, name)
    await aria(place, `--bt-tracker=${url}/indexes/announce`, ...words)
    return place
  })
  for (const place of await Promise.all(fetched)) {
    t.same(readdirSync(place), [torrent.name])
    sameFiles(t, files, join(place, torrent.name))
  }
})
