import t from 'tap'
import { blockOf, safeValue } from '../../src/attest/line.js'
import { metadataLines, tagHeaderName } from '../../src/attest/metadata-headers.js'
import { digestLines, positionLines, trustLines } from '../../src/attest/trust-headers.js'
import { spellings, vocabularies } from '../../src/attest/vocabulary.js'
import type { Header, ItemPlace } from '../../src/catalog/attributes.js'
import { idOfBytes } from '../../src/format/id.js'
import { tagOf } from '../../src/format/tag.js'
import { fc } from '../property.js'

const { neutral, 'ar-io': network } = vocabularies
const rootId = idOfBytes(Buffer.alloc(32, 1))
const parentId = idOfBytes(Buffer.alloc(32, 2))
const bounds = { tagsMax: 100, bytesMax: 8192 }

const header: Header = {
  signatureType: 1,
  signature: Buffer.alloc(512, 3),
  owner: Buffer.alloc(512, 4),
  ownerAddress: idOfBytes(Buffer.alloc(32, 5)),
  target: Buffer.alloc(32, 6),
  anchor: Buffer.from('anchor'),
  tags: [tagOf('Content-Type', 'text/html'), tagOf('App', 'one'), tagOf('App', 'two')],
}

/** An item of 1,000 bytes at 300 in a bundle whose payload starts at 2,000 of the root. */
const place: ItemPlace = {
  rootId,
  parentId,
  path: [rootId, parentId],
  rootItemOffset: 2300,
  parentItemOffset: 300,
  itemSize: 1000,
  headerSize: 150,
}

t.test('trust flags are always sent, under the names of the vocabulary', async (t) => {
  const trust = { id: rootId, verified: true, stable: false, trusted: true }
  t.equal(
    blockOf(trustLines(trust, neutral)),
    `X-GATEWAY-Data-Id: ${rootId}\r\nX-GATEWAY-Stable: false\r\nX-GATEWAY-Verified: true\r\nX-GATEWAY-Trusted: true`,
  )
  t.same(
    trustLines(trust, network).map(([name]) => name),
    ['X-AR-IO-Data-Id', 'X-AR-IO-Stable', 'X-AR-IO-Verified', 'X-AR-IO-Trusted'],
  )
})

t.test('the digest is a header of ours, a field of RFC 9530 and the entity tag', async (t) => {
  const digest = Buffer.from('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 'hex')
  const text = '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU'
  const field = 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:'
  t.same(digestLines(digest, 'Content-Digest', neutral), [
    ['X-GATEWAY-Digest', text],
    ['Content-Digest', field],
    ['ETag', `"${text}"`],
  ])
  t.same(digestLines(digest, 'Repr-Digest', network)[1], ['Repr-Digest', field])
  t.same(digestLines(digest, undefined, network), [
    ['X-AR-IO-Digest', text],
    ['ETag', `"${text}"`],
  ])
})

t.test('the position of an item is told from the root and from its bundle', async (t) => {
  const position = (words: typeof neutral) => Object.fromEntries(positionLines(place, words))
  t.same(position(neutral), {
    'X-GATEWAY-Root-Transaction-Id': rootId,
    'X-GATEWAY-Root-Data-Item-Offset': '2300',
    'X-GATEWAY-Root-Data-Offset': '2450',
    'X-GATEWAY-Root-Item-Offset': '2300',
    'X-GATEWAY-Root-Item-Size': '1000',
    'X-GATEWAY-Root-Path': `${rootId},${parentId}`,
    'X-GATEWAY-Data-Item-Root-Parent-Offset': '2000',
    'X-GATEWAY-Data-Item-Offset': '300',
    'X-GATEWAY-Data-Item-Size': '1000',
    'X-GATEWAY-Data-Item-Data-Offset': '150',
  })
  t.equal(position(network)['X-AR-IO-Data-Item-Data-Offset'], '450', 'existing clients count from the bundle')
})

t.test('metadata comes in one order, with every tag, repeated names included', async (t) => {
  const short: Header = { ...header, signature: Buffer.from('s'), owner: Buffer.from('o') }
  t.same(metadataLines(short, bounds, neutral), [
    ['X-Chain-Signature', 'cw'],
    ['X-Chain-Owner', 'bw'],
    ['X-Chain-Owner-Address', header.ownerAddress],
    ['X-Chain-Target', Buffer.alloc(32, 6).toString('base64url')],
    ['X-Chain-Anchor', 'YW5jaG9y'],
    ['X-Chain-Signature-Type', '1'],
    ['X-Chain-Tag-Count', '3'],
    ['X-Chain-Tag-Content-Type', 'text/html'],
    ['X-Chain-Tag-App', 'one'],
    ['X-Chain-Tag-App', 'two'],
  ])
  const bare: Header = { ...short, tags: [], target: Buffer.alloc(0), anchor: Buffer.alloc(0) }
  t.same(
    metadataLines(bare, bounds, network).map(([name]) => name),
    ['X-Arweave-Signature', 'X-Arweave-Owner', 'X-Arweave-Owner-Address', 'X-Arweave-Signature-Type'],
  )
})

t.test('what does not fit is left out, and that is said', async (t) => {
  const many = { ...header, tags: Array.from({ length: 101 }, (_, index) => tagOf(`T${index}`, 'v')) }
  const lines = metadataLines(many, bounds, neutral)
  t.same(lines.at(-1), ['X-Chain-Tags-Truncated', 'true'])
  t.equal(lines.filter(([name]) => /Tag-T\d+$/.test(name)).length, 100)

  const large = {
    ...header,
    tags: [tagOf('A', 'x'.repeat(3000)), tagOf('B', 'y'.repeat(3900)), tagOf('C', 'z')],
  }
  const names = metadataLines(large, bounds, neutral).map(([name]) => name)
  t.ok(names.includes('X-Chain-Tag-A'))
  t.notOk(names.includes('X-Chain-Tag-B'))
  t.notOk(names.includes('X-Chain-Tag-C'), 'tags stop at the first that does not fit')

  const tiny = metadataLines(header, { tagsMax: 100, bytesMax: 100 }, neutral).map(([name]) => name)
  t.same(tiny, ['X-Chain-Owner-Address', 'X-Chain-Anchor', 'X-Chain-Tags-Truncated'])
})

t.test('names of tags become names of headers', async (t) => {
  const table: [string, string][] = [
    ['Content-Type', 'Content-Type'],
    ['App Name', 'App-Name'],
    ['a  /: b', 'a-b'],
    ['-lead-', 'lead'],
    ['\r\nSet-Cookie', 'Set-Cookie'],
    ['ключ', ''],
    ['', ''],
    ['snake_case', 'snake_case'],
    ['x'.repeat(200), 'x'.repeat(128)],
  ]
  for (const [name, expected] of table) t.equal(tagHeaderName(name), expected, JSON.stringify(name))
  t.equal(safeValue('a\r\nSet-Cookie: x\0\u00e9\u4e2d\tb '), 'aSet-Cookie: x\tb')
})

t.test('no tag, whatever its bytes, can break out of its line or out of the budget', async (t) => {
  const bytes = fc.uint8Array({ maxLength: 300 })
  const tag = fc.record({ name: fc.oneof(bytes, fc.constant(Buffer.from('a\r\nX: y'))), value: bytes })
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(tag, { maxLength: 120 }), fc.nat(9000), (tags, bytesMax) => {
        const lines = metadataLines({ ...header, tags }, { tagsMax: 100, bytesMax }, network)
        const counted = lines.filter(([name]) => name !== 'X-Arweave-Tags-Truncated')
        const cost = counted.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
        const safe = lines.every(
          ([name, value]) => /^[A-Za-z0-9_-]+$/.test(name) && /^[\t\x20-\x7e]*$/.test(value),
        )
        return safe && cost <= bytesMax
      }),
      { numRuns: 300 },
    ),
  )
})

t.test('request headers are read in both spellings', async (t) => {
  t.same(spellings('Hops'), ['x-gateway-hops', 'x-ar-io-hops'])
})
