import { amountBytes, amountOf } from '../format/amount.js'
import type { VarReader, VarWriter } from '../format/varbytes.js'
import type { ItemOffsets, SegmentRow, SegmentTransfer } from './segment-row.js'

/**
 * A row as a segment has it; integers are LEB128 but for the flags:
 *
 *     bytes of what follows, flags u8, id (32 bytes),
 *     when it was first seen, less that of its group, twice, and one where it is below (absent where it is the same),
 *     owner, recipient (flag), bundle (flag), number of tags, tags, facts
 *
 * A word is its code and one, or 0 and its bytes behind their length. A tag is 0, its name, the shape of its value u8, and the
 * value in it; or the number of a form (from 1 on), which says name and shape, and the value; or a code behind all forms.
 * Facts, the same in every segment: size, anchor, signature type and one (0: none), then by the flags the place of an item, what
 * only transactions have, and the signature.
 */
export const rowFlag = {
  seen: 1,
  recipient: 2,
  place: 4,
  transfer: 8,
  signature: 16,
  unjudged: 32,
  /** The bundle that holds the item is itself an item. */
  nested: 64,
} as const

/** Rows for which there is one start: the others are found by their lengths. */
export const rowsPerStart = 16
export const startBytes = 5

/** A row without its words. */
export interface PlainRow extends Omit<SegmentRow, 'owner' | 'recipient' | 'tags' | 'place'> {
  readonly place: Omit<ItemOffsets, 'parent'> | undefined
}

/** The flags of a row (`rowFlag`): which of its optional parts follow. */
export function flagsOf(row: Omit<PlainRow, 'index'>, hasRecipient: boolean): number {
  const { place } = row
  return (
    (hasRecipient ? rowFlag.recipient : 0) |
    (place === undefined ? 0 : rowFlag.place) |
    (place === undefined || place.rootItemOffset === place.parentItemOffset ? 0 : rowFlag.nested) |
    (row.transfer === undefined ? 0 : rowFlag.transfer) |
    (row.signature === undefined ? 0 : rowFlag.signature) |
    (row.isUnjudged ? rowFlag.unjudged : 0)
  )
}

/** A difference that may be below zero as one that is not. */
export function zigzag(difference: number): number {
  return difference >= 0 ? difference * 2 : -difference * 2 - 1
}

/** The inverse of the zigzag encoding: 0, 1, 2, 3 are 0, -1, 1, -2. */
export function unzigzag(value: number): number {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2
}

/** What of a row has no words. */
export function writeFacts(out: VarWriter, row: Omit<RowFacts, 'place'> & Pick<PlainRow, 'place'>): void {
  out.uint(row.size)
  out.block(row.anchor)
  out.uint(row.signatureType === undefined ? 0 : row.signatureType + 1)
  const { place, transfer, signature } = row
  if (place !== undefined) {
    out.uint(place.rootItemOffset)
    if (place.rootItemOffset !== place.parentItemOffset) out.uint(place.parentItemOffset)
    out.uint(place.headerSize)
  }
  if (transfer !== undefined) {
    out.uint(transfer.format)
    out.block(amountBytes(transfer.quantity))
    out.block(amountBytes(transfer.reward))
    out.block(transfer.dataRoot)
    out.uint(transfer.weaveEnd)
  }
  if (signature !== undefined) out.block(signature)
}

export interface RowFacts {
  readonly size: number
  readonly anchor: Uint8Array
  readonly signatureType: number | undefined
  readonly place: ItemOffsets | undefined
  readonly transfer: SegmentTransfer | undefined
  readonly signature: Uint8Array | undefined
}

/** What `writeFacts` wrote; byte fields are views. `parent`: the bundle of an item. */
export function readFacts(read: VarReader, flags: number, parent: Uint8Array): RowFacts {
  const size = read.uint()
  const anchor = read.block()
  const type = read.uint()
  const place = (flags & rowFlag.place) === 0 ? undefined : readPlace(read, flags, parent)
  const transfer = (flags & rowFlag.transfer) === 0 ? undefined : readTransfer(read)
  const signature = (flags & rowFlag.signature) === 0 ? undefined : read.block()
  return { size, anchor, signatureType: type === 0 ? undefined : type - 1, place, transfer, signature }
}

function readPlace(read: VarReader, flags: number, parent: Uint8Array): ItemOffsets {
  const rootItemOffset = read.uint()
  const parentItemOffset = (flags & rowFlag.nested) === 0 ? rootItemOffset : read.uint()
  return { parent, rootItemOffset, parentItemOffset, headerSize: read.uint() }
}

function readTransfer(read: VarReader): SegmentTransfer {
  return {
    format: read.uint(),
    quantity: amountOf(read.block()),
    reward: amountOf(read.block()),
    dataRoot: read.block(),
    weaveEnd: read.uint(),
  }
}
