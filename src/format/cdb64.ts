/**
 * CDB64: a constant database of keys and values with 64-bit positions. All integers are unsigned, 64 bits, little-endian.
 *
 *     0      256 x (position of a table, number of its slots)
 *     4096   records, back to back: key length, value length, key, value
 *     then   the tables in order, back to back: slots of (hash of the key, position of the record; 0: empty)
 *
 * A table has twice as many slots as records. A key lies in table `hash & 255`, at or behind slot `(hash >> 8) mod slots`,
 * before the next empty one. Tables without records have 0 slots and the position where they would be.
 */
export const tableCount = 256
export const headerBytes = 4096
export const slotBytes = 16
export const recordHeadBytes = 16

/** More slots than this in one table would break the arithmetic below; it would be 8 GiB of them. */
export const slotsMax = 2 ** 29 - 1

/** The greatest n with (n - 1)^2 + 2^24 <= 2^32. */
const integerSlotsMax = 65_408

const two32 = 2 ** 32

/**
 * The hash of keys: DJB's, `h = h * 33 ^ byte` from 5381, modulo 2^64, in two halves of 32 bits (as signed integers, which
 * engines keep unboxed). 40 times faster than with big integers.
 */
export class KeyHash {
  lo = 0
  hi = 0

  /** Hashes `bytes` from `start` to `end` (exclusive). */
  of(bytes: Uint8Array, start: number, end: number): this {
    // The hash in parts of 16, 16 and 32 bits (low, middle, high). Each byte changes only the low part; three
    // multiplications by 33 fit into 32 bits before the carry must be moved on.
    let low = 5381
    let middle = 0
    let high = 0
    let at = start
    for (; at + 3 <= end; at += 3) {
      low = ((low << 5) + low) ^ (bytes[at] as number)
      low = ((low << 5) + low) ^ (bytes[at + 1] as number)
      low = ((low << 5) + low) ^ (bytes[at + 2] as number)
      middle = (Math.imul(middle, 33 ** 3) + (low >>> 16)) | 0
      high = (Math.imul(high, 33 ** 3) + (middle >>> 16)) | 0
      low &= 0xffff
      middle &= 0xffff
    }
    for (; at < end; at += 1) {
      low = ((low << 5) + low) ^ (bytes[at] as number)
      middle = Math.imul(middle, 33) + (low >>> 16)
      high = (Math.imul(high, 33) + (middle >>> 16)) | 0
      low &= 0xffff
      middle &= 0xffff
    }
    this.lo = (middle << 16) | low
    this.hi = high
    return this
  }
}

/** Number of the table of a key with this hash. */
export function tableOf(lo: number): number {
  return lo & 255
}

/**
 * Slot where the search for a hash begins in a table of `slots` (at most `slotsMax`). A caller that searches one
 * table often computes `upper` once.
 */
export function startSlot(lo: number, hi: number, slots: number, upper = 2 ** 24 % slots): number {
  // (hash >> 8) mod slots, the hash's upper part being hi * 2^24. Nearly every table is small enough for integer
  // arithmetic, and `>>> 0` tells the engine to use it: a remainder of doubles takes as long as the rest of the
  // search.
  if (slots <= integerSlotsMax) {
    const count = slots >>> 0
    return ((Math.imul((hi >>> 0) % count, upper) + (lo >>> 8)) >>> 0) % count
  }
  return (((hi >>> 0) % slots) * upper + (lo >>> 8)) % slots
}

/** The integer at `at`, or NaN where it is above 2^53 - 1: no valid position or length is. */
export function readU64(bytes: Uint8Array, at: number): number {
  const lo = u32(bytes, at)
  const hi = u32(bytes, at + 4)
  return hi < 2 ** 21 ? hi * two32 + lo : Number.NaN
}

/** Writes a number up to 2^53 - 1. */
export function writeU64(bytes: Uint8Array, at: number, value: number): void {
  let lo = value >>> 0
  let hi = Math.floor(value / two32)
  for (let byte = 0; byte < 4; byte += 1) {
    bytes[at + byte] = lo & 255
    bytes[at + 4 + byte] = hi & 255
    lo >>>= 8
    hi >>>= 8
  }
}

/** An unsigned integer of 32 bits, little-endian. */
export function u32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  )
}

/** Where the tables are. */
export interface CdbHeader {
  readonly positions: Float64Array
  readonly slots: Uint32Array
  /** Half of all slots. */
  readonly records: number
}

/**
 * Reads the first 4,096 bytes of a file of `sizeBytes`. Undefined where a table that has slots is not inside the file behind
 * the header, or has more than `slotsMax` of them or an odd number.
 */
export function readHeader(bytes: Uint8Array, sizeBytes: number): CdbHeader | undefined {
  if (bytes.length < headerBytes) return undefined
  const positions = new Float64Array(tableCount)
  const slots = new Uint32Array(tableCount)
  let records = 0
  for (let table = 0; table < tableCount; table += 1) {
    const position = readU64(bytes, table * slotBytes)
    const count = readU64(bytes, table * slotBytes + 8)
    if (count === 0) continue
    // NaN fails each of these.
    const inside = position >= headerBytes && position + count * slotBytes <= sizeBytes
    if (!inside || !(count <= slotsMax) || count % 2 !== 0) return undefined
    positions[table] = position
    slots[table] = count
    records += count / 2
  }
  return { positions, slots, records }
}
