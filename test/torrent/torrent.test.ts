import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { hashBandFile } from '../../src/torrent/hash.js'
import { hybridTorrent, magnetOf, torrentBytes } from '../../src/torrent/torrent.js'
import { readTorrent } from '../../src/torrent/torrent-reader.js'
import { toHex } from '../fixture-file.js'
import { plantFiles, python, script, steadyBytes, withoutLibtorrent } from './libtorrent.js'

const sizes = [
  0, 1, 16383, 16384, 16385, 32768, 65535, 65536, 65537, 262143, 262144, 262145, 524288, 1000001, 3000001,
]

const files = Object.fromEntries(sizes.map((size) => [`f-${size}`, steadyBytes(String(size), size)]))

async function torrentOf(folder: string, pieceBytes: number) {
  const hashed = []
  for (const name of Object.keys(files)) hashed.push(await hashBandFile(folder, name, pieceBytes))
  return { hashed, torrent: hybridTorrent(hashed, pieceBytes) }
}

t.test('digests of one pass are those of the files', async (t) => {
  const folder = plantFiles(t.testdir(), files)
  const { hashed } = await torrentOf(folder, 65536)
  for (const { name, sha256 } of hashed) {
    t.equal(toHex(sha256), createHash('sha256').update(files[name]!).digest('hex'))
  }
})

t.test('infohashes stay as they were measured beside libtorrent 2.0.8', async (t) => {
  const folder = plantFiles(t.testdir(), files)
  const { torrent } = await torrentOf(folder, 262144)
  const v1 = torrent.infohashV1.toString('hex')
  const v2 = torrent.infohashV2.toString('hex')
  t.equal(torrent.name, '2549e4ff79fe2bb6')
  t.equal(v1, '885730177796bba7f4af152a1173175d4a9da973')
  t.equal(v2, 'a106414de50cdec9e5e02cce99e8866e3f4f3057fb0998cff138eccb9d28325e')
  t.equal(magnetOf(torrent), `magnet:?xt=urn:btih:${v1}&xt=urn:btmh:1220${v2}&dn=2549e4ff79fe2bb6`)
})

t.test(
  'info and layers equal libtorrent, byte for byte, at every piece length',
  {
    skip: withoutLibtorrent(),
  },
  async (t) => {
    const outer = t.testdir()
    for (const pieceBytes of [16384, 32768, 65536, 262144, 1 << 20, 4 << 20]) {
      const { torrent: named } = await torrentOf(plantFiles(join(outer, 'x'), files), pieceBytes)
      const folder = plantFiles(join(outer, named.name), files)
      const { torrent } = await torrentOf(folder, pieceBytes)
      const out = join(outer, `${pieceBytes}.torrent`)
      const output = execFileSync(python, [script('torrent_maker.py'), folder, String(pieceBytes), out])
      t.equal(
        output.toString().trim(),
        `${torrent.infohashV1.toString('hex')} ${torrent.infohashV2.toString('hex')}`,
        `at ${pieceBytes}`,
      )
      const read = readTorrent(readFileSync(out))
      t.ok(!('refused' in read) && torrentBytes(read).equals(torrentBytes(torrent)), 'and it can be read')
    }
  },
)

t.test('a torrent that is read is the torrent that was written', async (t) => {
  const folder = plantFiles(t.testdir(), files)
  for (const pieceBytes of [16384, 262144]) {
    const { torrent } = await torrentOf(folder, pieceBytes)
    t.same(readTorrent(torrentBytes(torrent)), torrent)
    t.same(readTorrent(torrentBytes(torrent, ['http://a/announce', 'http://b/announce'])), torrent)
  }
})
