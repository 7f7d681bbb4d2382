import { deepEqual, equal } from 'node:assert/strict'
import { ArweaveSigner, createData, DataItem } from 'arbundles'
import t from 'tap'
import { standardTagLimits } from '../../src/format/avro-tags.js'
import {
  encodeItem,
  type ItemHeader,
  type ItemParts,
  itemHeaderSizeMax,
  itemSizeMin,
  parseItemHeader,
  signatureTypes,
} from '../../src/format/item.js'
import { tagOf, tagText } from '../../src/format/tag.js'
import { fixture, fixtureNames, sound } from '../fixture-file.js'
import { fc } from '../property.js'

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const optional = fc.oneof(fc.constant(new Uint8Array(0)), bytes(32))
const small = fc.uint8Array({ maxLength: 30 })

const anyParts: fc.Arbitrary<Required<ItemParts>> = fc
  .constantFrom(...signatureTypes.values())
  .chain((type) =>
    fc.record(
      {
        signatureType: fc.constant(type.type),
        signature: bytes(type.signatureSize),
        owner: bytes(type.ownerSize),
        target: optional,
        anchor: optional,
        tags: fc.array(fc.record({ name: small, value: small }, { noNullPrototype: true }), { maxLength: 5 }),
      },
      { noNullPrototype: true },
    ),
  )

function partsOf(header: ItemHeader): Required<ItemParts> {
  const { signatureType, signature, owner, target, anchor } = header
  const tags = header.tags.map(({ name, value }) => ({ name: plain(name), value: plain(value) }))
  return { signatureType, signature: plain(signature), owner: plain(owner), target, anchor, tags }
}

/** The same bytes as a Uint8Array proper: strict equality tells a Buffer from it. */
const plain = (bytes: Uint8Array) => Uint8Array.from(bytes)

t.test('a header comes back as it was written, whatever follows it', async (t) => {
  fc.assert(
    fc.property(anyParts, fc.uint8Array({ maxLength: 50 }), (parts, payload) => {
      const item = Uint8Array.from(encodeItem(parts, payload))
      const header = sound(parseItemHeader(item))
      deepEqual(partsOf(header), parts)
      equal(header.headerSize, item.length - payload.length)
    }),
    { numRuns: 100 },
  )
  t.pass('held for every sample')
})

t.test(
  'every prefix that is too short asks for more, and every longer one gives the same header',
  async (t) => {
    fc.assert(
      fc.property(anyParts, fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), (parts, cut) => {
        const item = encodeItem(parts, new Uint8Array(100))
        const { headerSize } = sound(parseItemHeader(item))
        equal(parseItemHeader(item.subarray(0, Math.floor(cut * headerSize))), 'more')
        deepEqual(parseItemHeader(item.subarray(0, headerSize)), parseItemHeader(item))
      }),
      { numRuns: 200 },
    )
    t.pass('held for every sample')
  },
)

t.test('a header owns its bytes', async (t) => {
  const item = Buffer.from(fixture('items/rsa-1115-bytes.item'))
  const header = sound(parseItemHeader(item))
  const before = structuredClone(header)
  item.fill(0)
  t.strictSame(structuredClone(header), before)
})

for (const name of fixtureNames('items').filter((name) => !name.startsWith('invalid'))) {
  t.test(`${name} is read as an independent library reads it`, async (t) => {
    const bytes = fixture(`items/${name}`)
    const ours = sound(parseItemHeader(bytes))
    const theirs = new DataItem(Buffer.from(bytes))
    t.equal(ours.id, theirs.id)
    t.equal(ours.signatureType, theirs.signatureType)
    t.same(ours.owner, theirs.rawOwner)
    t.same(ours.target, theirs.rawTarget)
    t.same(ours.anchor, theirs.rawAnchor)
    t.same(ours.rawTags, theirs.rawTags)
    t.strictSame(ours.tags.map(tagText), theirs.tags)
    t.equal(ours.headerSize, bytes.length - theirs.rawData.length)
  })
}

t.test('an item that an independent library makes is read back', async (t) => {
  const key = { n: Buffer.alloc(512, 7).toString('base64url'), e: 'AQAB' }
  const item = createData('hello', new ArweaveSigner(key as never), {
    tags: [{ name: 'Content-Type', value: 'text/plain' }],
    anchor: 'an anchor of thirty-two letters.',
    target: Buffer.alloc(32, 9).toString('base64url'),
  })
  const header = sound(parseItemHeader(item.getRaw()))
  t.strictSame(header.tags.map(tagText), [{ name: 'Content-Type', value: 'text/plain' }])
  t.equal(Buffer.from(header.anchor).toString(), 'an anchor of thirty-two letters.')
  t.same(header.target, Buffer.alloc(32, 9))
})

const solana = fixture('items/solana.item')
/** The item with one byte set to something else. */
function changed(at: number, value: number): Uint8Array {
  const copy = Buffer.from(solana)
  copy[at] = value
  return copy
}
const flagsAt = 2 + 64 + 32

t.test('what is no item is refused with the reason', async (t) => {
  t.match(parseItemHeader(changed(0, 99)), { refused: 'malformed', message: /signature type 99/ })
  t.match(parseItemHeader(changed(1, 1)), { refused: 'malformed', message: /signature type 258/ })
  t.match(parseItemHeader(changed(0, 101)), { refused: 'malformed', message: /101/ })
})

t.test('the count of tags must be true, and the u64 fields are capped before use', async (t) => {
  const parts = { signatureType: 2, signature: Buffer.alloc(64), owner: Buffer.alloc(32) }
  const item = (at: number, write: (view: Buffer) => void) => {
    const bytes = Buffer.from(encodeItem({ ...parts, tags: [tagOf('a', 'b')] }, new Uint8Array(0)))
    write(bytes.subarray(at))
    return parseItemHeader(bytes)
  }
  const countAt = flagsAt + 2
  t.match(
    item(countAt, (view) => view.writeUInt8(2)),
    { message: /says 2 tags, but there are 1/ },
  )
  t.match(
    item(countAt, (view) => view.writeUInt8(0)),
    { message: /says 0 tags, but there are 1/ },
  )
  t.match(
    item(countAt, (view) => view.writeBigUInt64LE(2n ** 64n - 1n)),
    { message: /more than 128/ },
  )
  t.match(
    item(countAt + 8, (view) => view.writeBigUInt64LE(2n ** 63n)),
    { message: /bytes of tags/ },
  )
  t.equal(
    item(countAt + 8, (view) => view.writeUInt8(200)),
    'more',
  )
})

t.test('the smallest and the largest header are as announced', async (t) => {
  const parts = { signatureType: 2, signature: Buffer.alloc(64), owner: Buffer.alloc(32) }
  t.equal(encodeItem(parts, new Uint8Array(0)).length, itemSizeMin)
  t.equal(
    itemHeaderSizeMax(standardTagLimits),
    2 + 2052 + 1025 + 33 + 33 + 16 + standardTagLimits.tagBytesMax,
  )
})

t.test('writing a field of a wrong length throws', async (t) => {
  const parts = { signatureType: 2, signature: Buffer.alloc(64), owner: Buffer.alloc(32) }
  t.throws(() => encodeItem({ ...parts, owner: Buffer.alloc(31) }, Buffer.alloc(0)), RangeError)
  t.throws(() => encodeItem({ ...parts, target: Buffer.alloc(31) }, Buffer.alloc(0)), RangeError)
  t.throws(() => encodeItem({ ...parts, signatureType: 8 }, Buffer.alloc(0)), RangeError)
})
