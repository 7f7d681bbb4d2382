/**
 * The key of a transaction or data item in chain order (16 bytes, so that byte order is chain order): block
 * height u32, place in the block u24 (index of the transaction, then whether it is an item inside it), the
 * first 9 bytes of the id; all big-endian.
 *
 * What is in no block yet is newer than all blocks, in the order of its arrival: the lower three bytes of the height and the
 * index are its number, milliseconds since 1970 and more where more arrive. Earlier versions of this program gave all of it the
 * height ff ff ff ff and the index 0.
 *
 * 9 bytes of the id are enough: two rows could only clash inside one transaction, whose sender would have to
 * find a collision of 72 bits to lose one of their own items.
 */
export const rowKeyBytes = 16

/** The last height of a key; of what is in no block, by earlier versions of this program. */
export const pendingHeight = 0xffff_ffff

/** From this height on keys are of what is in no block. */
export const pendingStart = 0xff00_0000

const arrivalsPerHeight = 2 ** 23

/** The highest number of arrival that a key can have. */
export const arrivalMax = 2 ** 24 * arrivalsPerHeight - 1

/** The number that earlier versions of this program gave to all that was in no block: no other has it. */
export const arrivalUnknown = (pendingHeight - pendingStart) * arrivalsPerHeight

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

/** The key of what is in no block and arrived with this number, into the 16 bytes of `key`. */
export function writePendingKey(key: Buffer, arrival: number, isItem: boolean, id: Uint8Array): Buffer {
  const height = pendingStart + Math.floor(arrival / arrivalsPerHeight)
  return writeRowKey(key, height, arrival % arrivalsPerHeight, isItem, id)
}

/** With which number a row arrived; undefined where it is in a block. */
export function arrivalOf(key: Uint8Array): number | undefined {
  const height = wordAt(key, 0)
  if (height < pendingStart) return undefined
  return (height - pendingStart) * arrivalsPerHeight + indexOf(key)
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
  return height >= pendingStart ? undefined : height
}

/** Position of the row's root transaction in the block; means nothing where it is in none. */
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
