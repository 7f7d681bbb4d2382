import type { VarReader, VarWriter } from '../format/varbytes.js'

/**
 * How the text of a tag's value stands in a row, shorter than it is:
 *
 *     raw      length, bytes
 *     uuid     16 bytes; lower case, with its four dashes
 *     decimal  the number (LEB128); no leading zero, at most 15 digits
 *     id       32 bytes; 43 letters of base64url whose last two bits are zero
 *     hex      number of bytes, bytes; lower case, an even number of digits
 *     letters  number of letters, six bits each; letters of base64url
 */
export const shape = { raw: 0, uuid: 1, decimal: 2, id: 3, hex: 4, letters: 5 } as const
export type ValueShape = (typeof shape)[keyof typeof shape]

export const shapeMax: number = shape.letters

const isDigit = 1
const isHex = 2
const isLetter = 4
const decimalMax = 15
const dash = 0x2d
/** Shorter texts gain nothing. */
const shortMax = 3

const alphabet: Uint8Array = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')
const hexDigits: Uint8Array = Buffer.from('0123456789abcdef')
const sixBits = new Uint8Array(256)
const nibbles = new Uint8Array(256)
const classes = new Uint8Array(256)
for (const [value, letter] of alphabet.entries()) {
  sixBits[letter] = value
  classes[letter] = isLetter
}
for (const [value, digit] of hexDigits.entries()) {
  nibbles[digit] = value
  classes[digit] = isLetter | isHex | (value < 10 ? isDigit : 0)
}

/** Whether these bytes are all lower-case hexadecimal digits. */
export function areHex(bytes: Uint8Array, from: number, to: number): boolean {
  return (commonClasses(bytes, from, to) & isHex) !== 0
}

/** Whether these bytes are all letters of base64url. */
export function areLetters(bytes: Uint8Array, from: number, to: number): boolean {
  return (commonClasses(bytes, from, to) & isLetter) !== 0
}

function commonClasses(bytes: Uint8Array, from: number, to: number): number {
  let common = isDigit | isHex | isLetter
  for (let at = from; at < to && common !== 0; at += 1) common &= classes[bytes[at] as number] as number
  return common
}

function isDashAt(at: number): boolean {
  return at === 8 || at === 13 || at === 18 || at === 23
}

function isUuid(bytes: Uint8Array, from: number): boolean {
  for (let at = 0; at < 36; at += 1) {
    const byte = bytes[from + at] as number
    if (isDashAt(at) ? byte !== dash : ((classes[byte] as number) & isHex) === 0) return false
  }
  return true
}

/** The shortest shape of the text in `bytes` from `from` to `to`. */
export function shapeOf(bytes: Uint8Array, from: number, to: number): ValueShape {
  const size = to - from
  if (size === 0) return shape.raw
  if (size === 36 && isUuid(bytes, from)) return shape.uuid
  const common = commonClasses(bytes, from, to)
  const isNumber = (common & isDigit) !== 0 && size <= decimalMax && (size === 1 || bytes[from] !== 0x30)
  if (isNumber) return shape.decimal
  if (size <= shortMax || (common & isLetter) === 0) return shape.raw
  if ((common & isHex) !== 0 && size % 2 === 0) return shape.hex
  const isId = size === 43 && ((sixBits[bytes[to - 1] as number] as number) & 3) === 0
  return isId ? shape.id : shape.letters
}

/** Writes the text in a shape that `shapeOf` gave. */
export function writeShaped(
  out: VarWriter,
  how: ValueShape,
  bytes: Uint8Array,
  from: number,
  to: number,
): void {
  if (how === shape.decimal) {
    let value = 0
    for (let at = from; at < to; at += 1) value = value * 10 + (bytes[at] as number) - 0x30
    out.uint(value)
  } else if (how === shape.uuid) writeUuid(out, bytes, from)
  else if (how === shape.id) writeLetters(out, bytes, from, to, 32)
  else if (how === shape.hex) {
    out.uint((to - from) / 2)
    writeHex(out, bytes, from, to)
  } else if (how === shape.letters) {
    out.uint(to - from)
    writeLetters(out, bytes, from, to, lettersBytes(to - from))
  } else {
    out.uint(to - from)
    out.range(bytes, from, to)
  }
}

function writeUuid(out: VarWriter, bytes: Uint8Array, from: number): void {
  for (let at = 0; at < 36; at += 2) {
    if (isDashAt(at)) at += 1
    const high = nibbles[bytes[from + at] as number] as number
    out.u8((high << 4) | (nibbles[bytes[from + at + 1] as number] as number))
  }
}

/** Two digits a byte; an odd last one in the upper half. */
export function writeHex(out: VarWriter, bytes: Uint8Array, from: number, to: number): void {
  for (let at = from; at < to; at += 2) {
    const low = at + 1 < to ? (nibbles[bytes[at + 1] as number] as number) : 0
    out.u8(((nibbles[bytes[at] as number] as number) << 4) | low)
  }
}

/** Bytes of so many letters. */
export function lettersBytes(letters: number): number {
  return Math.ceil((letters * 6) / 8)
}

/** Six bits a letter, the first in the upper ones; no more than `size` bytes. */
export function writeLetters(
  out: VarWriter,
  bytes: Uint8Array,
  from: number,
  to: number,
  size = lettersBytes(to - from),
): void {
  let [held, bits, left] = [0, 0, size]
  for (let at = from; at < to; at += 1) {
    held = ((held << 6) | (sixBits[bytes[at] as number] as number)) & 0xffff
    bits += 6
    if (bits < 8) continue
    bits -= 8
    out.u8((held >>> bits) & 0xff)
    left -= 1
  }
  if (left > 0) out.u8((held << (8 - bits)) & 0xff)
}

/** Puts `digits` digits from `bytes` into `target`. */
export function readHex(bytes: Uint8Array, at: number, digits: number, target: Uint8Array, to: number): void {
  for (let digit = 0; digit < digits; digit += 1) {
    const byte = bytes[at + (digit >>> 1)] as number
    target[to + digit] = hexDigits[digit % 2 === 0 ? byte >>> 4 : byte & 15] as number
  }
}

/** Puts `letters` letters from `bytes` into `target`; what is missing behind `size` bytes is zero. */
export function readLetters(
  bytes: Uint8Array,
  at: number,
  letters: number,
  target: Uint8Array,
  to: number,
  size = lettersBytes(letters),
): void {
  let [held, bits, next] = [0, 0, at]
  for (let letter = 0; letter < letters; letter += 1) {
    if (bits < 6) {
      held = ((held << 8) | (next < at + size ? (bytes[next] as number) : 0)) & 0xffff
      next += 1
      bits += 8
    }
    bits -= 6
    target[to + letter] = alphabet[(held >>> bits) & 63] as number
  }
}

/** The text in this shape: bytes of its own, or a view. */
export function readShaped(read: VarReader, how: ValueShape): Buffer {
  if (how === shape.raw) return read.block()
  if (how === shape.decimal) return digitsOf(read.uint())
  if (how === shape.uuid) return uuidText(read.bytes, passed(read, 16))
  if (how === shape.id) {
    const text = Buffer.allocUnsafe(43)
    readLetters(read.bytes, passed(read, 32), 43, text, 0, 32)
    return text
  }
  const count = read.uint()
  const packed = passed(read, how === shape.hex ? count : lettersBytes(count))
  const text = Buffer.allocUnsafe(how === shape.hex ? count * 2 : count)
  if (how === shape.hex) readHex(read.bytes, packed, count * 2, text, 0)
  else readLetters(read.bytes, packed, count, text, 0)
  return text
}

/** How many bytes `putShaped` takes at most, for each byte that is read; and for all of them together. */
export const shapedGrowth = 3
export const shapedRoom = 64

const digits = new Uint8Array(16)

/**
 * Puts the text in this shape into `target`, behind its length (LEB128). Gives where it ends. What is read counts `shapedGrowth`
 * times, and `shapedRoom` bytes must be there besides.
 */
export function putShaped(read: VarReader, how: ValueShape, target: Uint8Array, to: number): number {
  if (how === shape.raw) return putRaw(read, target, to)
  if (how === shape.decimal) {
    let [left, count] = [read.uint(), 0]
    do {
      digits[count] = 0x30 + (left % 10)
      left = Math.floor(left / 10)
      count += 1
    } while (left > 0)
    target[to] = count
    for (let at = 0; at < count; at += 1) target[to + 1 + at] = digits[count - 1 - at] as number
    return to + 1 + count
  }
  if (how === shape.uuid) {
    target[to] = 36
    putUuid(read.bytes, passed(read, 16), target, to + 1)
    return to + 37
  }
  if (how === shape.id) {
    target[to] = 43
    readLetters(read.bytes, passed(read, 32), 43, target, to + 1, 32)
    return to + 44
  }
  const count = read.uint()
  const size = how === shape.hex ? count * 2 : count
  const packed = passed(read, how === shape.hex ? count : lettersBytes(count))
  const start = putLength(target, to, size)
  if (how === shape.hex) readHex(read.bytes, packed, size, target, start)
  else readLetters(read.bytes, packed, size, target, start)
  return start + size
}

/** Length and bytes stand in the row as they are wanted. */
function putRaw(read: VarReader, target: Uint8Array, to: number): number {
  const from = read.at
  read.skip()
  const { at, bytes } = read
  for (let byte = from; byte < at; byte += 1) target[to + byte - from] = bytes[byte] as number
  return to + at - from
}

/** Puts a length (LEB128) into `target`. Gives where it ends. */
export function putLength(target: Uint8Array, to: number, length: number): number {
  let [left, at] = [length, to]
  for (; left >= 0x80; at += 1) {
    target[at] = (left & 0x7f) | 0x80
    left = Math.floor(left / 0x80)
  }
  target[at] = left
  return at + 1
}

/** Passes over bytes: where they begin. */
function passed(read: VarReader, count: number): number {
  const { at } = read
  read.pass(count)
  return at
}

function digitsOf(value: number): Buffer {
  const digits = String(value)
  const text = Buffer.allocUnsafe(digits.length)
  for (let at = 0; at < digits.length; at += 1) text[at] = digits.charCodeAt(at)
  return text
}

function uuidText(bytes: Uint8Array, start: number): Buffer {
  const text = Buffer.allocUnsafe(36)
  putUuid(bytes, start, text, 0)
  return text
}

function putUuid(bytes: Uint8Array, start: number, target: Uint8Array, to: number): void {
  for (let at = 0, from = start; at < 36; at += 2, from += 1) {
    if (isDashAt(at)) {
      target[to + at] = dash
      at += 1
    }
    readHex(bytes, from, 2, target, to + at)
  }
}

/** Passes over a text in this shape. */
export function skipShaped(read: VarReader, how: ValueShape): void {
  if (how === shape.decimal) read.uint()
  else if (how === shape.uuid) read.pass(16)
  else if (how === shape.id) read.pass(32)
  else if (how === shape.letters) read.pass(lettersBytes(read.uint()))
  else read.pass(read.uint())
}
