/** What peers, trackers and makers of torrents send us, mangled. */
import { ok } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Clock } from '../../src/actor/clock.js'
import { isRefusal } from '../../src/format/refusal.js'
import { type Bencodable, decodeBencode, encodeBencode } from '../../src/torrent/bencode.js'
import { decodePeers, encodePeers } from '../../src/torrent/compact-peers.js'
import {
  decodeExchange,
  decodeGreeting,
  encodeExchange,
  encodeGreeting,
} from '../../src/torrent/extension.js'
import { hashPiece } from '../../src/torrent/hash.js'
import { HashAnswers } from '../../src/torrent/hash-answer.js'
import { composeTorrent, placeBlock, rootOf, torrentBytes } from '../../src/torrent/torrent.js'
import { readTorrent } from '../../src/torrent/torrent-reader.js'
import { Tracker, trackerDefaults } from '../../src/torrent/tracker.js'
import { decodeUdpAnswer } from '../../src/torrent/udp-announce.js'
import { decodeHandshake, decodeMessage, encode, encodeHandshake, Frames } from '../../src/torrent/wire.js'
import { fc } from '../property.js'
import { fuzz } from './fuzz.js'
import { mutated, mutatedText } from './mutate.js'

const limits = { depthMax: 8, valuesMax: 1000 }

const bencodable: fc.Arbitrary<Bencodable> = fc.letrec<{ value: Bencodable }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.maxSafeInteger(),
    fc.uint8Array({ maxLength: 20 }),
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .dictionary(fc.string({ unit: 'binary-ascii', maxLength: 5 }), tie('value'), { maxKeys: 4 })
      .map((object) => new Map(Object.entries(object))),
  ),
})).value

const pieceBytes = 16384
const content = Buffer.alloc(5 * pieceBytes + 1, 1)
const layer = Buffer.concat(
  Array.from({ length: 6 }, (_, index) => {
    const piece = content.subarray(index * pieceBytes, (index + 1) * pieceBytes)
    return hashPiece(piece, content.length, pieceBytes)
  }),
)
const torrent = composeTorrent(
  'band',
  pieceBytes,
  [
    { name: '00.cdb', sizeBytes: content.length, layer },
    { name: 'empty', sizeBytes: 0, layer: new Uint8Array(0) },
    { name: 'manifest.json', sizeBytes: 3, layer: hashPiece(Buffer.from('abc'), 3, pieceBytes) },
  ],
  randomBytes(7 * 20),
)

fuzz('bencoding is canonical', mutated([torrentBytes(torrent)]), (bytes) => {
  const read = decodeBencode(bytes, limits)
  if (read !== undefined) ok(encodeBencode(read.value as Bencodable).equals(bytes))
  return read?.value
})

fuzz('bencoding comes back as it was', bencodable, (value) => {
  const bytes = encodeBencode(value)
  const read = decodeBencode(bytes, { depthMax: 100, valuesMax: 10_000 })
  ok(read !== undefined && encodeBencode(read.value as Bencodable).equals(bytes))
})

fuzz('a torrent is the one that we would write, or none', mutated([torrentBytes(torrent)]), (bytes) => {
  const read = readTorrent(bytes)
  if (isRefusal(read)) return
  ok(encodeBencode(decodeBencode(read.info, limits)?.value as Bencodable).equals(read.info))
  for (const { name } of read.files) ok(/^[A-Za-z0-9._-]+$/.test(name) && !name.includes('..'))
})

const span = { root: Buffer.alloc(32, 7), baseLayer: 0, index: 0, length: 4, proofLayers: 2 }
const block = { piece: 1, begin: 16384, length: 16384 }
const messages = [
  encode.plain('choke'),
  encode.have(3),
  encode.bitfield(Buffer.from([0xff, 0xf0])),
  encode.request(block),
  encode.cancel(block),
  encode.reject(block),
  encode.extended(0, Buffer.from('d1:md6:ut_pexi1eee')),
  encode.hashRequest(span),
  encode.hashes(span, Buffer.alloc(64)),
  encode.hashReject(span),
]

fuzz('wire messages', mutated([...messages, Buffer.concat(messages)]), (input) => {
  const bytes = Buffer.from(input)
  decodeMessage(bytes.subarray(4))
  decodeHandshake(Buffer.concat([bytes, Buffer.alloc(68)]))
  let taken = 0
  const whole = new Frames(4096).push(bytes, () => {
    taken += 1
    return true
  })
  ok(taken <= bytes.length)
  return whole ? taken : undefined
})

fuzz(
  'messages come out the same however the stream is cut',
  fc.tuple(fc.array(fc.nat(messages.length - 1), { maxLength: 9 }), fc.array(fc.nat(200), { maxLength: 9 })),
  ([chosen, cuts]) => {
    const stream = Buffer.concat(chosen.map((index) => messages[index]!))
    const frames = new Frames(4096)
    const kinds: string[] = []
    let at = 0
    for (const size of [...cuts, stream.length]) {
      ok(frames.push(stream.subarray(at, at + size), ({ kind }) => kinds.push(kind) > 0))
      at = Math.min(stream.length, at + size)
    }
    ok(kinds.length === chosen.length)
  },
)

fuzz('handshakes', mutated([encodeHandshake(randomBytes(20), randomBytes(20))]), (bytes) => {
  return bytes.length >= 68 ? decodeHandshake(Buffer.from(bytes)) : undefined
})

const peers = [
  { host: '192.0.2.1', port: 1 },
  { host: '2001:db8::1', port: 65535 },
]
const extensions = [
  encodeGreeting({ infoBytes: 99, port: 1, uploadOnly: true }).subarray(6),
  encodeExchange(1, peers).subarray(6),
]

fuzz('extension messages', mutated(extensions), (bytes) => {
  const buffer = Buffer.from(bytes)
  const greeting = decodeGreeting(buffer)
  ok(greeting === undefined || (greeting.port >= 0 && greeting.port <= 65535))
  for (const { port } of decodeExchange(buffer)) ok(port > 0)
  const { v4, v6 } = encodePeers(peers)
  decodePeers(Buffer.concat([v4, buffer]), Buffer.concat([v6, buffer]), 50)
})

const transaction = 7
const udpAnswers = [
  [0, 16],
  [1, 20 + 36],
  [3, 40],
].map(([action = 0, length = 0]) => {
  const bytes = Buffer.alloc(length, 3)
  bytes.writeUInt32BE(action, 0)
  bytes.writeUInt32BE(transaction, 4)
  return bytes
})

fuzz('answers of UDP trackers', mutated(udpAnswers), (bytes) => {
  for (const isV6 of [false, true]) {
    const answer = decodeUdpAnswer(Buffer.from(bytes), transaction, isV6)
    if (answer?.kind !== 'announced') continue
    for (const { port } of answer.peers) ok(port > 0)
    ok(answer.intervalSeconds >= 15 && answer.intervalSeconds <= 3600)
  }
  return undefined
})

const clock: Clock = {
  now: () => 0,
  monotonic: () => 0,
  after: () => ({ cancel: () => undefined }),
  every: () => ({ cancel: () => undefined }),
}
const tracker = new Tracker({ ...trackerDefaults, announcesPerMinute: 1e9 }, clock)
tracker.offer([Buffer.alloc(20, 0x61)])
const query = `info_hash=${'a'.repeat(20)}&peer_id=%00b&port=6881&uploaded=0&left=1&compact=1&numwant=5&event=started`

fuzz('announces', mutatedText([query]), (text) => {
  const answer = tracker.announce({ query: text, address: '192.0.2.1' }, peers)
  ok(decodeBencode(answer, limits) !== undefined)
})

const answers = new HashAnswers(torrent)
const root = Buffer.from(rootOf(torrent.files[0]!, pieceBytes) ?? [])
const small = fc.oneof(fc.nat(20), fc.constantFrom(2, 4, 8, 16, 512, 1024, 0xffffffff))

fuzz(
  'hash requests and blocks',
  fc.tuple(small, small, small, small),
  ([baseLayer, index, length, proofLayers]) => {
    const answer = answers.answer({ root, baseLayer, index, length, proofLayers })
    ok(answer === undefined || answer.length >= length * 32)
    const place = placeBlock(torrent, index, baseLayer, length)
    if (place !== undefined) ok(place.position + place.bytes <= place.file.sizeBytes || place.bytes === 0)
  },
)

t.test('bencoding accepts one form only, within bounds', async (t) => {
  const all = [
    'i03e',
    'i-0e',
    'ie',
    'i1',
    '01:a',
    '2:a',
    'd1:bi1e1:ai1ee',
    'd1:ai1e1:ai1ee',
    'i9007199254740992e',
  ]
  for (const text of [...all, 'le e', 'd', 'l', 'di1ei1ee', '', 'i1ei1e', '-1:a', '9999999999999999999:']) {
    t.equal(decodeBencode(Buffer.from(text), limits), undefined, text)
  }
  t.equal(decodeBencode(Buffer.from('l'.repeat(1e6)), limits), undefined)
  t.equal(decodeBencode(Buffer.from(`l${'i1e'.repeat(2000)}e`), limits), undefined)
})

/** A torrent with one thing changed in its info, the rest left as it is. */
function altered(change: (info: Map<string, Bencodable>) => void): Buffer {
  const whole = decodeBencode(torrentBytes(torrent), limits)?.value as Map<string, Bencodable>
  const info = new Map(whole.get('info') as Map<string, Bencodable>)
  change(info)
  return encodeBencode(new Map(whole).set('info', info))
}

t.test('false torrents are refused', async (t) => {
  const file = (length: number, name = 'x'): Bencodable =>
    new Map([[name, new Map([['', new Map<string, Bencodable>([['length', length]])]])]])
  const lies: Record<string, (info: Map<string, Bencodable>) => void> = {
    'another list of files': (info) => info.set('files', []),
    'a way up': (info) => info.set('file tree', file(0, '..')),
    'a folder': (info) => info.set('file tree', new Map([['x', file(0)]])),
    'a slash in a name': (info) => info.set('file tree', file(0, 'a/b')),
    'a name with a way up': (info) => info.set('name', '../x'),
    'huge files without hashes': (info) => info.set('file tree', file(2 ** 50)),
    'more pieces than there are': (info) => info.set('pieces', Buffer.alloc(2_000_000)),
    'a piece length that is no power of two': (info) => info.set('piece length', 16385),
    'tiny pieces': (info) => info.set('piece length', 1),
    'huge pieces': (info) => info.set('piece length', 2 ** 40),
    'another version': (info) => info.set('meta version', 1),
    'something more': (info) => info.set('private', 1),
  }
  t.notOk(isRefusal(readTorrent(altered(() => undefined))))
  for (const [name, change] of Object.entries(lies)) t.ok(isRefusal(readTorrent(altered(change))), name)
})
