import { type Id, idBytes } from '../format/id.js'

/**
 * The key of a transaction or data item in chain order (16 bytes, so that byte order is chain order): block
 * height u32, place in the block u24 (index of the transaction, then whether it is an item inside it), the
 * first 9 bytes of the id; all big-endian. What is not in a block yet has the highest height, so it is the
 * newest.
 *
 * 9 bytes of the id are enough: two rows could only clash inside one transaction, whose sender would have to
 * find a collision of 72 bits to lose one of their own items.
 */
export const rowKeyBytes = 16

/** Height of what is not in a block. */
export const pendingHeight = 0xffff_ffff

/** Bytes of the id that are part of the key. */
export const rowKeyIdBytes = 9

const placeMax = 0x7f_ffff

/**
 * `height` undefined: not in a block. `index` is the transaction's position in its block. `id` has 32 bytes.
 */
export function rowKey(height: number | undefined, index: number, isItem: boolean, id: Uint8Array): Buffer {
  return writeRowKey(Buffer.allocUnsafe(rowKeyBytes), height, index, isItem, id)
}

/** The same, into the 16 bytes of `key`. */
export function writeRowKey(
  key: Buffer,
  height: number | undefined,
  index: number,
  isItem: boolean,
  id: Uint8Array,
): Buffer {
  if (index > placeMax) throw new RangeError(`a block has no ${index}th transaction`)
  key.writeUInt32BE(height ?? pendingHeight, 0)
  key.writeUIntBE(index * 2 + (isItem ? 1 : 0), 4, 3)
  for (let byte = 0; byte < rowKeyIdBytes; byte += 1) key[7 + byte] = id[byte] as number
  return key
}

/** Keys of items that are in no block yet, one behind the other. */
export function pendingKeys(ids: readonly Id[]): Uint8Array {
  const keys = new Uint8Array(ids.length * rowKeyBytes)
  for (const [at, id] of ids.entries()) keys.set(rowKey(undefined, 0, true, idBytes(id)), at * rowKeyBytes)
  return keys
}

/** The first key that a row of this height can have. */
export function heightStart(height: number): Buffer {
  const key = Buffer.alloc(rowKeyBytes)
  key.writeUInt32BE(height, 0)
  return key
}

/** The last key that a row of this height can have. */
export function heightEnd(height: number): Buffer {
  const key = Buffer.alloc(rowKeyBytes, 0xff)
  key.writeUInt32BE(height, 0)
  return key
}

/** Height of the row's block; undefined where it is in none yet. */
export function heightOf(key: Uint8Array): number | undefined {
  const height = wordAt(key, 0)
  return height === pendingHeight ? undefined : height
}

/** Position of the row's root transaction in the block. */
export function indexOf(key: Uint8Array): number {
  return Math.floor(placeOf(key) / 2)
}

/** True for a data item, false for a transaction. */
export function isItemKey(key: Uint8Array): boolean {
  return placeOf(key) % 2 === 1
}

function placeOf(key: Uint8Array): number {
  return ((key[4] ?? 0) << 16) | ((key[5] ?? 0) << 8) | (key[6] ?? 0)
}

function wordAt(key: Uint8Array, at: number): number {
  return (
    (((key[at] ?? 0) << 24) | ((key[at + 1] ?? 0) << 16) | ((key[at + 2] ?? 0) << 8) | (key[at + 3] ?? 0)) >>>
    0
  )
}

/**
 * Below zero where `one` (its 16 bytes from `oneAt`) comes before `other` in chain order, 0 where they are
 * the same.
 */
export function compareRowKeys(one: Uint8Array, oneAt: number, other: Uint8Array, otherAt: number): number {
  for (let at = 0; at < rowKeyBytes; at += 1) {
    const difference = (one[oneAt + at] as number) - (other[otherAt + at] as number)
    if (difference !== 0) return difference
  }
  return 0
}
