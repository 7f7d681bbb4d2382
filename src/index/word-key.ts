/**
 * Words: what rows are found by. The key of a word, in whose order they stand:
 *
 *     field u8, bytes                                          of an owner, recipient or bundle
 *     field u8, length of the name (LEB128), name, value       of a tag: those of a name stand together, by their values
 */
export const wordField = { owner: 1, recipient: 2, parent: 3, tag: 4 } as const
export type Field = (typeof wordField)[keyof typeof wordField]

const dash = 0x2d
/** Where the dashes of a UUID are in its text. */
const dashes = [8, 13, 18, 23] as const
const uuidChars = 36

/** The key of an owner, recipient or bundle. */
export function fieldKey(of: Field, bytes: Uint8Array): Buffer {
  const key = Buffer.allocUnsafe(1 + bytes.length)
  key[0] = of
  key.set(bytes, 1)
  return key
}

/** The key of a tag, or what the keys of all tags of this name begin with whose value begins with `value`. */
export function tagKey(name: Uint8Array, value: Uint8Array): Buffer {
  const lengths = lengthBytes(name.length)
  const key = Buffer.allocUnsafe(1 + lengths + name.length + value.length)
  key[0] = wordField.tag
  let rest = name.length
  for (let at = 1; at <= lengths; at += 1) {
    key[at] = at < lengths ? (rest % 0x80) + 0x80 : rest
    rest = Math.floor(rest / 0x80)
  }
  key.set(name, 1 + lengths)
  key.set(value, 1 + lengths + name.length)
  return key
}

/** Bytes of a length as LEB128. */
export function lengthBytes(length: number): number {
  let bytes = 1
  for (let rest = length; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes += 1
  return bytes
}

/** Where the value begins in the key of a word (in `bytes` from `from` to `to`); `to` where the name is cut off. */
export function valueStart(bytes: Uint8Array, from: number, to: number): number {
  if (bytes[from] !== wordField.tag) return Math.min(from + 1, to)
  let at = from + 1
  let length = 0
  for (let scale = 1; at < to; scale *= 0x80) {
    const byte = bytes[at] as number
    at += 1
    length += (byte & 0x7f) * scale
    if (byte < 0x80) break
  }
  return Math.min(at + length, to)
}

/** Where the name begins in the key of a tag. */
export function nameStart(bytes: Uint8Array, from: number): number {
  let at = from + 1
  while ((bytes[at] as number) >= 0x80) at += 1
  return at + 1
}

/** The order of two words, or of parts of them: below zero where the first comes before. */
export function compareBytes(
  one: Uint8Array,
  oneFrom: number,
  oneTo: number,
  other: Uint8Array,
  otherFrom: number,
  otherTo: number,
): number {
  const shared = sharedBytes(one, oneFrom, oneTo, other, otherFrom, otherTo)
  const [left, right] = [oneFrom + shared, otherFrom + shared]
  if (left === oneTo || right === otherTo) return oneTo - oneFrom - (otherTo - otherFrom)
  return (one[left] as number) - (other[right] as number)
}

/** So many bytes both begin with. */
export function sharedBytes(
  one: Uint8Array,
  oneFrom: number,
  oneTo: number,
  other: Uint8Array,
  otherFrom: number,
  otherTo: number,
): number {
  const most = Math.min(oneTo - oneFrom, otherTo - otherFrom)
  let shared = 0
  while (shared < most && one[oneFrom + shared] === other[otherFrom + shared]) shared += 1
  return shared
}

/**
 * Copies a text without the dashes that a UUID has in its value, which begins at `value`; -1 where it has others, ends with one
 * of them, or is longer: else the end in `target`.
 */
export function withoutDashes(
  bytes: Uint8Array,
  from: number,
  to: number,
  value: number,
  target: Uint8Array,
  at: number,
): number {
  if (to - value > uuidChars) return -1
  let end = at
  let next = from
  for (const place of dashes) {
    const here = value + place
    if (here >= to) break
    if (bytes[here] !== dash || here === to - 1) return -1
    while (next < here) target[end++] = bytes[next++] as number
    next += 1
  }
  while (next < to) target[end++] = bytes[next++] as number
  return end
}

/** Puts back what `withoutDashes` left out; the end in `target`. `value`: where the value begins in both. */
export function withDashes(
  bytes: Uint8Array,
  from: number,
  to: number,
  value: number,
  target: Uint8Array,
  at: number,
): number {
  let end = at
  let next = from
  for (const [left, place] of dashes.entries()) {
    const here = value + place - left
    if (here >= to) break
    while (next < here) target[end++] = bytes[next++] as number
    target[end++] = dash
  }
  while (next < to) target[end++] = bytes[next++] as number
  return end
}
