import { amountBytes, amountOf } from '../format/amount.js'
import { VarReader, type VarWriter } from '../format/varbytes.js'
import { heightOf, indexOf, isItemKey, rowKeyIdBytes } from './row-key.js'

/** A tag as the index has it. */
export interface RowTag {
  readonly name: Buffer
  readonly value: Buffer
}

/** What the index says of a transaction or data item. Its bytes stay as they are, whatever happens to the index. */
export interface Row {
  /** Its key: where it stands in chain order. */
  readonly key: Uint8Array
  /** 32 bytes. */
  readonly id: Uint8Array
  /** Undefined while in no block. */
  readonly height: number | undefined
  /** Position of the root transaction in its block; means nothing in no block. */
  readonly index: number
  readonly isItem: boolean
  /** Seconds since 1970. */
  readonly seenSeconds: number
  readonly size: number
  /** Address of its owner: 32 bytes. */
  readonly owner: Buffer
  /** Empty: none. */
  readonly recipient: Buffer
  readonly anchor: Uint8Array
  /** In the order of the header; none where whoever read the row did not want them. */
  readonly tags: readonly RowTag[]
  readonly signatureType: number | undefined
  /** Present for items alone. */
  readonly place: (Omit<RowPlace, 'parent'> & { readonly parent: Buffer }) | undefined
  /** Present for transactions alone. */
  readonly transfer: RowTransfer | undefined
  /** Undefined where it was not kept. */
  readonly signature: Uint8Array | undefined
  /** Nobody checked that the owner of the item signed it: what lies at its place may be other bytes. */
  readonly isUnjudged?: true
}

/** Bytes of the names and values of a row's tags. */
export function tagBytesOf({ tags }: Pick<Row, 'tags'>): number {
  let bytes = 0
  for (const { name, value } of tags) bytes += name.length + value.length
  return bytes
}

/**
 * A row as the tables have it. Owner, recipient, tags and bundle are numbers of words (dictionary.ts).
 *
 * Record: `version u8, flags u8, first seen u32, id from byte 9 on (23 bytes), size, owner, recipient,
 * anchor, tags`, then what the flags announce, in the order below. Integers are LEB128, but for `first seen`,
 * which stands at a fixed place.
 */
export interface StoredRow extends Omit<Row, 'owner' | 'recipient' | 'tags' | 'place'> {
  readonly owner: number
  /** 0: none. */
  readonly recipient: number
  /** Name and value pairs, in the order of the header. */
  readonly tags: readonly number[]
  /** Present for items alone. */
  readonly place: RowPlace | undefined
}

/** A row without what its key says. */
export type RowBody = Omit<StoredRow, 'key' | 'height' | 'index' | 'isItem'>

/** Where an item lies. Offsets count from the start of the payload that holds it. */
export interface RowPlace {
  /** The word of the bundle that directly holds the item. */
  readonly parent: number
  readonly rootItemOffset: number
  readonly parentItemOffset: number
  readonly headerSize: number
}

/** What only transactions of the base layer have. */
export interface RowTransfer {
  readonly format: number
  readonly quantity: bigint
  readonly reward: bigint
  /**
   * What the block's tree has for it: 32 bytes, or none. Of format 1 it is computed from the data; none where the row came
   * without data (a band of another gateway) or is of an earlier version of this program.
   */
  readonly dataRoot: Uint8Array
  /** Offset of the last byte of its data in the weave (1-based); 0: not known, or no data. */
  readonly weaveEnd: number
}

const recordVersion = 1
const flag = { signatureType: 1, place: 2, transfer: 4, signature: 8, unjudged: 16 }
const seenAt = 2
const idAt = 6
const fieldsAt = idAt + 32 - rowKeyIdBytes

/**
 * The record of a row, in `out` (a view until its next use). Height, index and the start of the id are in the
 * key.
 */
export function encodeRow(out: VarWriter, row: RowBody): Buffer {
  out.reset()
  out.u8(recordVersion)
  out.u8(
    (row.signatureType === undefined ? 0 : flag.signatureType) |
      (row.place === undefined ? 0 : flag.place) |
      (row.transfer === undefined ? 0 : flag.transfer) |
      (row.signature === undefined ? 0 : flag.signature) |
      (row.isUnjudged === true ? flag.unjudged : 0),
  )
  out.u32(row.seenSeconds)
  out.part(row.id, rowKeyIdBytes)
  out.uint(row.size)
  out.uint(row.owner)
  out.uint(row.recipient)
  out.block(row.anchor)
  out.uint(row.tags.length)
  for (const tag of row.tags) out.uint(tag)
  if (row.signatureType !== undefined) out.uint(row.signatureType)
  if (row.place !== undefined) {
    out.uint(row.place.parent)
    out.uint(row.place.rootItemOffset)
    out.uint(row.place.parentItemOffset)
    out.uint(row.place.headerSize)
  }
  if (row.transfer !== undefined) {
    out.uint(row.transfer.format)
    out.block(amountBytes(row.transfer.quantity))
    out.block(amountBytes(row.transfer.reward))
    out.block(row.transfer.dataRoot)
    out.uint(row.transfer.weaveEnd)
  }
  if (row.signature !== undefined) out.block(row.signature)
  return out.written
}

/** The id of the row with this key and record: 32 bytes of its own. */
export function rowId(key: Uint8Array, record: Uint8Array): Buffer {
  const id = Buffer.allocUnsafe(32)
  // Byte by byte: a view of each part would cost more than the copy.
  for (let at = 0; at < rowKeyIdBytes; at += 1) id[at] = key[7 + at] as number
  for (let at = rowKeyIdBytes; at < 32; at += 1) id[at] = record[idAt + at - rowKeyIdBytes] as number
  return id
}

/** Whether a record is of the row with this id, whose start its key has. */
export function recordIsOf(record: Uint8Array, id: Uint8Array): boolean {
  for (let at = rowKeyIdBytes; at < id.length; at += 1) {
    if (record[idAt + at - rowKeyIdBytes] !== id[at]) return false
  }
  return true
}

/** When the row was first seen, in seconds since 1970, without decoding the rest. */
export function rowSeenSeconds(record: Uint8Array): number {
  const [a = 0, b = 0, c = 0, d = 0] = [
    record[seenAt],
    record[seenAt + 1],
    record[seenAt + 2],
    record[seenAt + 3],
  ]
  return (a | (b << 8) | (c << 16) | (d << 24)) >>> 0
}

/**
 * The row with this key and record; byte fields are views of the record. Throws a RangeError on bytes that no
 * version of this program wrote.
 */
export function decodeRow(key: Uint8Array, record: Uint8Array): StoredRow {
  if (record[0] !== recordVersion) throw new RangeError(`an index record of version ${record[0]}`)
  const flags = record[1] ?? 0
  const read = new VarReader(record, fieldsAt)
  const row: StoredRow = {
    key,
    id: rowId(key, record),
    height: heightOf(key),
    index: indexOf(key),
    isItem: isItemKey(key),
    seenSeconds: rowSeenSeconds(record),
    size: read.uint(),
    owner: read.uint(),
    recipient: read.uint(),
    anchor: read.block(),
    tags: readTags(read),
    signatureType: (flags & flag.signatureType) === 0 ? undefined : read.uint(),
    place: (flags & flag.place) === 0 ? undefined : readPlace(read),
    transfer: (flags & flag.transfer) === 0 ? undefined : readTransfer(read),
    signature: (flags & flag.signature) === 0 ? undefined : read.block(),
  }
  return (flags & flag.unjudged) === 0 ? row : { ...row, isUnjudged: true }
}

function readTags(read: VarReader): number[] {
  const tags = new Array<number>(read.uint())
  for (let at = 0; at < tags.length; at += 1) tags[at] = read.uint()
  return tags
}

function readPlace(read: VarReader): RowPlace {
  return {
    parent: read.uint(),
    rootItemOffset: read.uint(),
    parentItemOffset: read.uint(),
    headerSize: read.uint(),
  }
}

/** What only transactions have, as records and messages both hold it. */
export function readTransfer(read: VarReader): RowTransfer {
  return {
    format: read.uint(),
    quantity: amountOf(read.block()),
    reward: amountOf(read.block()),
    dataRoot: read.block(),
    weaveEnd: read.uint(),
  }
}
