import { type Refusal, refuse } from './refusal.js'
import type { Tag } from './tag.js'

/**
 * Tags of a data item as ANS-104 writes them: an Avro array of records of two length-prefixed byte strings. Numbers
 * are zigzag varints. A block is a count and so many records; a negative count is followed by the block's size in
 * bytes; count 0 ends the array. An empty list may also be encoded as no bytes.
 */
export interface TagLimits {
  /** Most tags accepted. ANS-104 says 128. */
  readonly tagsMax: number
  /** Most bytes of the encoded array. */
  readonly tagBytesMax: number
}

/** ANS-104: 128 tags, names up to 1024 bytes, values up to 3072, two length bytes for each, and the blocks' counts. */
export const standardTagLimits: TagLimits = { tagsMax: 128, tagBytesMax: 128 * (1024 + 3072 + 4) + 64 }

/**
 * Ten groups of seven bits hold 64 bits; a longer number, or one with an unneeded last group, is a second encoding of
 * a number and refused.
 */
const varintBytesMax = 10

interface Cursor {
  readonly bytes: Uint8Array
  at: number
}

/**
 * Reads one zigzag varint: a safe integer, or undefined where it is cut off, overlong, or beyond 2^53.
 * Arithmetic is in doubles because shifts stop at 32 bits.
 */
function readInteger(cursor: Cursor): number | undefined {
  let value = 0
  let weight = 1
  for (let group = 0; group < varintBytesMax; group++) {
    const byte = cursor.bytes[cursor.at]
    if (byte === undefined) return undefined
    cursor.at++
    value += (byte & 0x7f) * weight
    if (value > Number.MAX_SAFE_INTEGER) return undefined
    if (byte < 0x80) {
      if (byte === 0 && group > 0) return undefined
      return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    }
    weight *= 128
  }
  return undefined
}

function readBytes(cursor: Cursor): Uint8Array | undefined {
  const length = readInteger(cursor)
  if (length === undefined || length < 0 || length > cursor.bytes.length - cursor.at) return undefined
  const bytes = cursor.bytes.subarray(cursor.at, cursor.at + length)
  cursor.at += length
  return bytes
}

/** A refusal of encoded tags; `at`: the byte where reading stopped. */
export type TagsRefusal = Refusal & { readonly at?: number }

function malformed(message: string, at: number): TagsRefusal {
  return { ...refuse('malformed', 'client', `tags: ${message}`), at }
}

/** Reads the records of one block into `tags`. Undefined: no error. */
function readBlock(cursor: Cursor, count: number, tags: Tag[]): TagsRefusal | undefined {
  let end: number | undefined
  if (count < 0) {
    const size = readInteger(cursor)
    if (size === undefined || size < 0) return malformed('a block has a malformed size', cursor.at)
    end = cursor.at + size
  }
  for (let i = Math.abs(count); i > 0; i--) {
    const name = readBytes(cursor)
    const value = name === undefined ? undefined : readBytes(cursor)
    if (name === undefined || value === undefined)
      return malformed(`tag ${tags.length} is cut off or malformed`, cursor.at)
    tags.push({ name, value })
  }
  return end === undefined || end === cursor.at
    ? undefined
    : malformed('a block is not as long as it says', cursor.at)
}

/**
 * The tags written in `bytes`, which must be the whole array and nothing more. Tags are views of `bytes`. Refuses
 * malformed and overlong numbers, cut-off and trailing bytes, and more than the limits allow.
 */
export function decodeTags(
  bytes: Uint8Array,
  limits: TagLimits = standardTagLimits,
): { readonly tags: Tag[] } | TagsRefusal {
  if (bytes.length > limits.tagBytesMax)
    return malformed(`more than ${limits.tagBytesMax} bytes`, limits.tagBytesMax)
  const tags: Tag[] = []
  if (bytes.length === 0) return { tags }
  const cursor: Cursor = { bytes, at: 0 }
  for (;;) {
    const count = readInteger(cursor)
    if (count === undefined) return malformed('a block has a malformed count', cursor.at)
    if (count === 0) break
    if (tags.length + Math.abs(count) > limits.tagsMax)
      return malformed(`more than ${limits.tagsMax} tags`, cursor.at)
    const refusal = readBlock(cursor, count, tags)
    if (refusal !== undefined) return refusal
  }
  return cursor.at === bytes.length ? { tags } : malformed('bytes after the end', cursor.at)
}

function writeInteger(into: number[], value: number): void {
  let rest = value < 0 ? -2 * value - 1 : 2 * value
  while (rest >= 128) {
    into.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  into.push(rest)
}

/** The tags as one block, the way every known client writes them: no bytes at all for no tags. */
export function encodeTags(tags: readonly Tag[]): Uint8Array {
  if (tags.length === 0) return new Uint8Array(0)
  const parts: Uint8Array[] = []
  const number = (value: number) => {
    const bytes: number[] = []
    writeInteger(bytes, value)
    parts.push(Uint8Array.from(bytes))
  }
  number(tags.length)
  for (const tag of tags) {
    number(tag.name.length)
    parts.push(tag.name)
    number(tag.value.length)
    parts.push(tag.value)
  }
  number(0)
  return Buffer.concat(parts)
}
