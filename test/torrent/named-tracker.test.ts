import t from 'tap'
import { decodeBencode } from '../../src/torrent/bencode.js'
import { magnetWith, withTracker } from '../../src/torrent/named-tracker.js'
import { type Torrent, torrentBytes } from '../../src/torrent/torrent.js'
import { plantBand } from './swarm-rig.js'

const own = 'https://gateway.example/gateway/indexes/announce'

/** The file as it is sent, and its value. */
function sent(torrent: Torrent, trackers: readonly string[]) {
  const stored = torrentBytes(torrent, trackers)
  const head = withTracker(stored, own)
  if (head === undefined) throw new Error('no head')
  const bytes = Buffer.concat([head.bytes, stored.subarray(head.from)])
  const read = decodeBencode(bytes, { depthMax: 20, valuesMax: 1000 })
  const value = read?.value
  if (read === undefined || !(value instanceof Map)) throw new Error('no torrent')
  const [from = 0, to = 0] = read.spans.get('info') ?? []
  const [announce, tiers] = ['announce', 'announce-list'].map((name) => value.get(name))
  const list = (tiers as Uint8Array[][]).map((tier) => tier.map(String))
  return { announce: String(announce), list, info: bytes.subarray(from, to) }
}

t.test('the own tracker stands in front of others, and the info is as it was', async (t) => {
  const { torrent } = await plantBand(t.testdir(), { 'a.cdb': Buffer.alloc(600_000, 7) })
  const odd = 'http://odd.example/4:info'
  for (const [trackers, list] of [
    [[], [[own]]],
    [['udp://a.example:1'], [[own], ['udp://a.example:1']]],
    [
      [odd, own, 'udp://a.example:1'],
      [[own], [odd, 'udp://a.example:1']],
    ],
  ] as const) {
    const { announce, list: listed, info } = sent(torrent, trackers)
    t.equal(announce, own)
    t.strictSame(listed, list)
    t.ok(info.equals(torrent.info))
  }
})

t.test('a file that was not made here stays as it is', async (t) => {
  t.equal(withTracker(Buffer.from('d4:infX'), own), undefined)
  t.equal(withTracker(Buffer.from('4:infod'), own), undefined)
  t.equal(withTracker(Buffer.from('i7e4:info'), own), undefined)
})

t.test('a magnet names each tracker once, and stays short enough for readers', async (t) => {
  const magnet = magnetWith(magnetWith('magnet:?xt=urn:btih:1', [own]), [own])
  t.equal(magnet, `magnet:?xt=urn:btih:1&tr=${encodeURIComponent(own)}`)
  const many = Array.from({ length: 200 }, (_, index) => `https://t${index}.example/announce`)
  t.ok(magnetWith('magnet:?xt=urn:btih:1', many).length <= 4096)
})
