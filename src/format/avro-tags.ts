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

/**
 * ANS-104: 128 tags, names up to 1024 bytes, values up to 3072, two length bytes for each, and the blocks' counts. Clients and
 * upload services take 4,096 bytes in all. What opens bundles on the network (`processStream` of arbundles) has no such bound,
 * so items with more are on chain and in the indexes of others. They are indexed here, too.
 */
export const standardTagLimits: TagLimits = { tagsMax: 128, tagBytesMax: 128 * (1024 + 3072 + 4) + 64 }

/** `at` may be behind the end: what is read there is zero. */
interface Cursor {
  readonly bytes: Uint8Array
  at: number
}

/**
 * Reads one zigzag varint of any length; one that is cut off is continued by zeros. In doubles, because shifts stop at
 * 32 bits: beyond 2^53 it is inexact, and not a number where hundreds of groups are empty.
 */
function readInteger(cursor: Cursor): number {
  let value = 0
  let weight = 1
  for (;;) {
    const byte = cursor.bytes[cursor.at++] ?? 0
    value += (byte & 0x7f) * weight
    if (byte < 0x80) return value % 2 === 1 ? -(value + 1) / 2 : value / 2
    weight *= 128
  }
}

/** The bytes, or why they cannot be read. */
function readBytes(cursor: Cursor): Uint8Array | string {
  const length = readInteger(cursor)
  if (!(length >= 0)) return 'has a negative length (or none that is a number)'
  if (length > cursor.bytes.length - cursor.at) return 'is cut off'
  const bytes = cursor.bytes.subarray(cursor.at, cursor.at + length)
  cursor.at += length
  return bytes
}

/** A refusal of encoded tags; `at`: the byte where reading stopped. */
export type TagsRefusal = Refusal & { readonly at?: number }

function malformed(message: string, at: number): TagsRefusal {
  return { ...refuse('malformed', 'client', `tags: ${message}`), at }
}

/**
 * The tags written in `bytes`, as views of them, or a refusal of what is cut off or more than the limits allow. The
 * network has items in other forms than `encodeTags` writes, signed over just these bytes, and this reads of them what
 * the network's usual library (arbundles) reads: the end of the bytes ends the array, too; bytes behind its end and the
 * sizes of blocks mean nothing; a number may have needless groups. The one difference: a name or value of a negative
 * length, at which that library goes backwards, is refused, because the same bytes could become any number of tags.
 */
export function decodeTags(
  bytes: Uint8Array,
  limits: TagLimits = standardTagLimits,
): { readonly tags: Tag[] } | TagsRefusal {
  if (bytes.length > limits.tagBytesMax)
    return malformed(`more than ${limits.tagBytesMax} bytes`, limits.tagBytesMax)
  const tags: Tag[] = []
  const cursor: Cursor = { bytes, at: 0 }
  for (;;) {
    const count = readInteger(cursor)
    if (count === 0 || Number.isNaN(count)) return { tags }
    if (tags.length + Math.abs(count) > limits.tagsMax)
      return malformed(`more than ${limits.tagsMax} tags`, Math.min(cursor.at, bytes.length))
    // The size of a block with a negative count.
    if (count < 0) readInteger(cursor)
    for (let left = Math.abs(count); left > 0; left--) {
      const { at } = cursor
      const name = readBytes(cursor)
      const value = typeof name === 'string' ? name : readBytes(cursor)
      if (typeof name === 'string' || typeof value === 'string')
        return malformed(`tag ${tags.length} ${value}`, Math.min(at, bytes.length))
      tags.push({ name, value })
    }
  }
}

/** Writes one zigzag varint at `at`; returns where it ends. */
function writeInteger(into: Uint8Array, at: number, value: number): number {
  let rest = value < 0 ? -2 * value - 1 : 2 * value
  let end = at
  for (; rest >= 128; rest = Math.floor(rest / 128)) into[end++] = (rest % 128) + 128
  into[end++] = rest
  return end
}

/** A zigzag varint of its own. */
export function encodedInteger(value: number): Uint8Array {
  const bytes = new Uint8Array(8)
  return bytes.subarray(0, writeInteger(bytes, 0, value))
}

/** Bytes that the number of a count or length takes at most: it is below 2^31. */
const integerBytesMax = 5

/** The tags as one block, the way every known client writes them: no bytes at all for no tags. */
export function encodeTags(tags: readonly Tag[]): Uint8Array {
  if (tags.length === 0) return new Uint8Array(0)
  let size = integerBytesMax + 1
  for (const { name, value } of tags) size += name.length + value.length + 2 * integerBytesMax
  const bytes = new Uint8Array(size)
  let at = writeInteger(bytes, 0, tags.length)
  for (const { name, value } of tags) {
    at = writeInteger(bytes, at, name.length)
    bytes.set(name, at)
    at = writeInteger(bytes, at + name.length, value.length)
    bytes.set(value, at)
    at += value.length
  }
  return bytes.slice(0, at + 1)
}
