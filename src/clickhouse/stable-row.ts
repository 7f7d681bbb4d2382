import type { BlockRecord } from '../catalog/block-record.js'
import type { Row, RowTag } from '../catalog/row.js'
import { rowKey } from '../catalog/row-key.js'
import { decodeBase64url, encodeBase64url } from '../format/base64url.js'
import { signatureTypes } from '../format/item-fields.js'
import { RowBinaryFault, type RowBinaryReader, type RowBinaryWriter } from './row-binary.js'
import { isContentType } from './word-cache.js'

const none = Buffer.alloc(0)
/** Public keys of more bytes (RSA) are left out of the tables. */
export const ownerKeyMaxBytes = 64
export const indexMax = 0xffff
export const decimalMax = 10n ** 20n - 1n
/** Longest name or value of a tag that an answer may have, and how many tags: more than any header of the network has. */
const [tagMaxBytes, tagsMax] = [2 ** 20, 4096] as const
const anchorMaxBytes = 128
const targetMaxBytes = 64
const heightEnd = 0xff00_0000

/** What a row is written with, besides what it says itself. */
export interface RowSurroundings {
  readonly block: BlockParts
  /** Id of the transaction that holds the item, or the row's own; empty where the index does not have it. */
  readonly root: Uint8Array
  /** Public key of at most `ownerKeyMaxBytes` bytes, or empty. */
  readonly ownerKey: Uint8Array
  /** Seconds since 1970: of two copies of a row the younger one counts. */
  readonly insertedSeconds: number
}

/** What rows have of their block, as bytes. */
export interface BlockParts {
  readonly id: Uint8Array
  readonly previous: Uint8Array
  readonly timestamp: number
}

/** A block as its rows have it. */
export function blockParts({
  id,
  previous,
  timestamp,
}: Pick<BlockRecord, 'id' | 'previous' | 'timestamp'>): BlockParts {
  return { id: decodeBase64url(id) ?? none, previous: decodeBase64url(previous) ?? none, timestamp }
}

/**
 * Writes a row of a block, all columns in order. False: nothing was written, because the tables have no room for a place behind
 * the 65,536th transaction of a block, or for the amount.
 */
export function writeRow(out: RowBinaryWriter, row: Row, about: RowSurroundings): boolean {
  const { height, index, place, transfer } = row
  const { quantity = 0n, reward = 0n } = transfer ?? {}
  if (height === undefined || index > indexMax || quantity > decimalMax || reward > decimalMax) return false
  out.u32(height)
  out.u16(index)
  out.u8(row.isItem ? 1 : 0)
  out.bytes(row.id)
  out.bytes(row.anchor)
  out.bytes(row.owner)
  out.bytes(row.recipient)
  out.decimal(quantity)
  out.decimal(reward)
  out.u64(row.size)
  out.bytes(typeOf(row.tags))
  out.u8(transfer?.format ?? 0)
  out.bytes(transfer?.dataRoot ?? none)
  out.bytes(place?.parent ?? none)
  const { block } = about
  out.bytes(block.id)
  out.u32(block.timestamp)
  out.bytes(block.previous)
  out.u64(row.seenSeconds)
  out.u32(about.insertedSeconds)
  writePlaces(out, row, about)
  out.length(row.tags.length)
  for (const { name, value } of row.tags) {
    out.bytes(name)
    out.bytes(value)
  }
  out.u32(row.tags.length)
  return true
}

/** The columns from `offset` to `root_parent_offset`. Places of items count from the start of their parent's payload. */
function writePlaces(out: RowBinaryWriter, row: Row, { ownerKey, root }: RowSurroundings): void {
  const { place, transfer, signatureType = 0 } = row
  const form = place === undefined ? undefined : signatureTypes.get(signatureType)
  const start = place?.parentItemOffset ?? 0
  const signatureAt = form === undefined ? 0 : start + 2
  out.u64(place === undefined ? (transfer?.weaveEnd ?? 0) : start)
  out.u64(place === undefined ? 0 : place.headerSize + row.size)
  out.u64(place === undefined ? 0 : start + place.headerSize)
  out.u64(form === undefined ? 0 : signatureAt + form.signatureSize)
  out.u64(form?.ownerSize ?? 0)
  out.bytes(ownerKey)
  out.u64(signatureAt)
  out.u64(form?.signatureSize ?? 0)
  out.u32(signatureType)
  out.bytes(root)
  out.u64(place === undefined ? 0 : Math.max(0, place.rootItemOffset - place.parentItemOffset))
}

/** The value of the first tag called Content-Type. */
function typeOf(tags: readonly RowTag[]): Uint8Array {
  for (const { name, value } of tags) {
    if (isContentType(name)) return value
  }
  return none
}

/** A row that ClickHouse gave, with what else it has of it. */
export interface StableRow {
  readonly row: Row
  readonly block: BlockRecord
  /** Empty: not known. */
  readonly ownerKey: Buffer
  readonly insertedSeconds: number
}

/**
 * Reads a row and checks its shape: lengths of ids and hashes, places within bounds. What it says is not proven by that. Throws a
 * RowBinaryFault.
 */
export function readRow(from: RowBinaryReader): StableRow {
  const height = from.u32()
  if (height >= heightEnd) throw new RowBinaryFault(`a row has the height ${height}`)
  const index = from.u16()
  const isItem = from.bool()
  const id = from.exactly(32)
  const [anchor, owner, recipient] = [
    from.bytes(anchorMaxBytes),
    from.exactly(32),
    from.bytes(targetMaxBytes),
  ]
  const [quantity, reward, size] = [from.decimal(), from.decimal(), from.u64()]
  const [format, dataRoot, parent] = [from.u8(), from.bytes(32), from.bytes(32)]
  const block = { height, ...readBlock(from) }
  const [seenSeconds, insertedSeconds] = [from.u64(), from.u32()]
  const [offset, dataOffset, ownerKey] = [from.u64(), from.u64(), from.bytes(ownerKeyMaxBytes)]
  const [signatureType, rootParentOffset] = [from.u32(), from.u64()]
  const tags = readTags(from)
  if (isItem && (parent.length !== 32 || dataOffset < offset))
    throw new RowBinaryFault('an item has no place')
  const row: Row = {
    key: rowKey(height, index, isItem, id),
    id,
    height,
    index,
    isItem,
    seenSeconds,
    size,
    owner,
    recipient,
    anchor,
    tags,
    signatureType: signatureType === 0 ? undefined : signatureType,
    place: isItem
      ? {
          parent,
          rootItemOffset: rootParentOffset + offset,
          parentItemOffset: offset,
          headerSize: dataOffset - offset,
        }
      : undefined,
    transfer: isItem ? undefined : { format, quantity, reward, dataRoot, weaveEnd: offset },
    signature: undefined,
    isUnjudged: true,
  }
  return { row, block, ownerKey, insertedSeconds }
}

function readBlock(from: RowBinaryReader): Omit<BlockRecord, 'height'> {
  const [id, timestamp, previous] = [from.bytes(48), from.u32(), from.bytes(48)]
  return {
    id: encodeBase64url(id),
    previous: encodeBase64url(previous),
    timestamp,
    weaveSize: '0',
    transactionCount: 0,
  }
}

function readTags(from: RowBinaryReader): RowTag[] {
  const tags: RowTag[] = []
  for (let left = from.length(tagsMax); left > 0; left -= 1) {
    tags.push({ name: from.bytes(tagMaxBytes), value: from.bytes(tagMaxBytes) })
  }
  return tags
}
