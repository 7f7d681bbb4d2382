import { tagOf } from '../../src/format/tag.js'
import type { SegmentRow } from '../../src/index/segment-row.js'
import { fc } from '../property.js'

/** Text of tags, near to what real ones look like, and far from it. */
const text = fc.oneof(
  fc.constantFrom('', 'a', 'ab', 'abc', 'Type', 'File-Id', 'App-Name', '0', '007', '1700000000', 'ff'),
  fc.uuid(),
  fc.uuid().map((id) => id.slice(0, 9)),
  fc.nat().map(String),
  fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
  fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('hex')),
  fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('base64url')),
  fc.string({ maxLength: 20 }),
)
const bytes = fc.oneof(
  { weight: 6, arbitrary: text.map((value) => Buffer.from(value)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((some) => Buffer.from(some)) },
  { weight: 1, arbitrary: fc.nat(300).map((size) => Buffer.alloc(size)) },
)
const few = fc.nat(5).map((number) => Buffer.alloc(32, number))
const address = fc.oneof(
  few,
  fc.uint8Array({ minLength: 32, maxLength: 32 }).map((some) => Buffer.from(some)),
)
const offset = fc.oneof(fc.nat(5000), fc.maxSafeNat())

const item = fc.record({
  place: fc.record({
    parent: address,
    rootItemOffset: offset,
    parentItemOffset: offset,
    headerSize: fc.nat(5000),
  }),
  transfer: fc.constant(undefined),
  isItem: fc.constant(true),
})
const transaction = fc.record({
  place: fc.constant(undefined),
  transfer: fc.record({
    format: fc.nat(3),
    quantity: fc.bigInt(0n, 2n ** 70n),
    reward: fc.bigInt(0n, 2n ** 64n),
    dataRoot: fc.oneof(fc.constant(Buffer.alloc(0)), address),
    weaveEnd: offset,
  }),
  isItem: fc.constant(false),
})

/** Any row, and more often one that resembles others. */
export const row: fc.Arbitrary<SegmentRow> = fc
  .tuple(
    fc.oneof(item, item, transaction),
    fc.record({
      height: fc.oneof(fc.nat(3), fc.nat(0xfeff_ffff)),
      index: fc.oneof(fc.nat(2), fc.nat(0x7f_ffff)),
      id: address,
      seenSeconds: fc.oneof(fc.constant(1_700_000_000), fc.nat(0xffff_ffff)),
      size: offset,
      owner: address,
      recipient: fc.oneof(fc.constant(Buffer.alloc(0)), address, bytes),
      anchor: fc.oneof(fc.constant(Buffer.alloc(0)), address, bytes),
      tags: fc.array(fc.record({ name: bytes, value: bytes }), { maxLength: 6 }),
      signatureType: fc.oneof(fc.constant(undefined), fc.nat(100)),
      signature: fc.oneof(fc.constant(undefined), address),
      isUnjudged: fc.boolean(),
    }),
  )
  .map(([kind, rest]) => ({ ...rest, ...kind }))

/** The `number`th of some rows that have words of their own, and words that many have. */
export function plainRow(number: number, more: Partial<SegmentRow> = {}): SegmentRow {
  const id = Buffer.alloc(32, 7)
  id.writeUInt32BE(Math.imul(number, 0x9e37_79b1) >>> 0, 0)
  id.writeUInt32BE(number, 28)
  return {
    height: 1000 + Math.floor(number / 100),
    index: number % 3,
    isItem: true,
    id,
    seenSeconds: 1_700_000_000,
    size: number,
    owner: Buffer.alloc(32, number % 50),
    recipient: Buffer.alloc(0),
    anchor: Buffer.alloc(0),
    tags: [
      tagOf('Type', number % 2 === 0 ? 'even' : 'odd'),
      tagOf('Number', String(number)),
      tagOf('Id', hex(id)),
    ],
    signatureType: 1,
    signature: undefined,
    place: {
      parent: Buffer.alloc(32, number % 40),
      rootItemOffset: number,
      parentItemOffset: number,
      headerSize: 9,
    },
    transfer: undefined,
    isUnjudged: false,
    ...more,
  }
}

/** Rows in the order of the chain, each id once. */
export function unique(rows: readonly SegmentRow[]): SegmentRow[] {
  const sorted = [...rows].sort(chainOrder)
  const seen = new Set<string>()
  return sorted.filter(({ id }) => {
    const name = hex(id)
    return seen.has(name) ? false : seen.add(name)
  })
}

/** The order of the chain. */
export function chainOrder(one: SegmentRow, other: SegmentRow): number {
  const place = ({ index, isItem }: SegmentRow): number => index * 2 + (isItem ? 1 : 0)
  return one.height - other.height || place(one) - place(other) || Buffer.compare(one.id, other.id)
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

/** A row as text and numbers, so that two can be compared. */
export function plain(row: SegmentRow): unknown {
  const { place, transfer } = row
  return {
    ...row,
    id: hex(row.id),
    owner: hex(row.owner),
    recipient: hex(row.recipient),
    anchor: hex(row.anchor),
    tags: row.tags.map(({ name, value }) => `${hex(name)}=${hex(value)}`),
    signature: row.signature === undefined ? undefined : hex(row.signature),
    place: place === undefined ? undefined : { ...place, parent: hex(place.parent) },
    transfer: transfer === undefined ? undefined : { ...transfer, dataRoot: hex(transfer.dataRoot) },
  }
}
