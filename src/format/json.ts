export interface JsonBounds {
  /** Values at most: elements and members, at every depth. */
  readonly values: number
  /** Lists and objects inside of each other: 64 unless given. */
  readonly depth?: number
  /** Strings of 8 to 20 digits and nothing else: 2,000 unless given. */
  readonly integers?: number
}

/**
 * Versions of V8 before the mend of CVE-2026-21717 find such strings slowly in their table of strings where a stranger has chosen
 * them: 190 kB of JSON took 14 s. Shorter ones have no two with the same hash.
 */
const integersUsual = 2000
const [digitsMin, digitsMax] = [8, 20]
const [zero, nine] = [0x30, 0x39]
/** Characters of `\u0031`. */
const escapedDigit = 6

const [quote, comma, backslash] = [0x22, 0x2c, 0x5c]
const [listBegin, listEnd, objectBegin, objectEnd] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * The value that `text` is JSON of (RFC 8259); undefined where it is none, or is beyond the bounds. Parsing takes more than 100
 * bytes of memory for a byte of hostile text, so text of strangers above some 100 kB needs bounds.
 */
export function parsedJson(text: string, bounds?: JsonBounds): unknown {
  if (bounds !== undefined && !isJsonWithin(text, bounds)) return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** The same of text in UTF-8; undefined, too, where it is no UTF-8. */
export function parsedBytes(bytes: Uint8Array, bounds?: JsonBounds): unknown {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
  return parsedJson(text, bounds)
}

/** Whether a parser meets at most so many values in `text`, and at most so deep, before its end or an error of syntax. */
export function isJsonWithin(
  text: string,
  { values, depth = 64, integers = integersUsual }: JsonBounds,
): boolean {
  let left = values
  let integersLeft = integers
  let deep = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      const end = stringEnd(text, at)
      if (end < 0) return true
      if (areDigits(text, at + 1, end)) integersLeft -= 1
      at = end
    } else if (code === comma) left -= 1
    else if (code === listBegin || code === objectBegin) {
      left -= 1
      deep += 1
    } else if (code === listEnd || code === objectEnd) deep -= 1
    if (left < 0 || deep > depth || integersLeft < 0) return false
  }
  return true
}

/** Whether the characters from `start` to `end` are digits, escaped or not, and as many as count. */
function areDigits(text: string, start: number, end: number): boolean {
  if (end - start < digitsMin || end - start > digitsMax * escapedDigit) return false
  let count = 0
  for (let at = start; at < end; at += 1) {
    if (text.startsWith('\\u003', at)) at += escapedDigit - 1
    const code = text.charCodeAt(at)
    if (code < zero || code > nine) return false
    count += 1
  }
  return count >= digitsMin && count <= digitsMax
}

/** Index of the quote that ends the string which begins at `start`; -1 where none does. */
function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1
    while (text.charCodeAt(before) === backslash) before -= 1
    if ((end - before) % 2 === 1) return end
  }
  return -1
}

/** The fields of a JSON object that others have written; their values may be anything. */
export type JsonFields = Readonly<Record<string, unknown>>

/** The fields of a value of JSON: none where it is no object. */
export function jsonFields(value: unknown): JsonFields {
  return typeof value === 'object' && value !== null ? (value as JsonFields) : {}
}
