import type { Attributes, Header, ItemPlace } from '../../src/catalog/attributes.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import { fc } from '../property.js'

const bytes = (length: number): fc.Arbitrary<Uint8Array> =>
  fc.uint8Array({ minLength: length, maxLength: length })
const some = fc.uint8Array({ maxLength: 1500, size: 'max' }).map((value) => Buffer.from(value))
const offset = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })

export const anyId: fc.Arbitrary<Id> = bytes(32).map((value) => idOfBytes(value))
export const anyDigest: fc.Arbitrary<Buffer> = bytes(32).map((value) => Buffer.from(value))

const place: fc.Arbitrary<ItemPlace> = fc.record({
  rootId: anyId,
  parentId: anyId,
  path: fc.array(anyId, { minLength: 1, maxLength: 4 }),
  rootItemOffset: offset,
  parentItemOffset: offset,
  itemSize: offset,
  headerSize: offset,
})

const header: fc.Arbitrary<Header> = fc.record({
  signatureType: fc.integer({ min: 0, max: 65_535 }),
  signature: some,
  owner: some,
  ownerAddress: anyId,
  target: some,
  anchor: some,
  tags: fc.array(fc.record({ name: some, value: some }), { maxLength: 5 }),
})

/** Attributes of any shape; digests from a small set, so that they often agree. */
export const anyAttributes: fc.Arbitrary<Attributes> = fc.record(
  {
    id: anyId,
    size: offset,
    verified: fc.boolean(),
    trusted: fc.boolean(),
    contentType: fc.string({ maxLength: 20, unit: 'grapheme' }),
    contentEncoding: fc.constantFrom('gzip', 'br'),
    digest: fc.constantFrom(...[1, 2, 3].map((value) => Buffer.alloc(32, value))),
    height: fc.integer({ min: 0, max: 2 ** 31 }),
    isTransaction: fc.constant(true as const),
    place,
    header,
  },
  { requiredKeys: ['id', 'size', 'verified', 'trusted'] },
)
