/** Bytes and texts with nothing but what browsers, workers, Node, Deno and Bun all have. */

export type Bytes = Uint8Array<ArrayBuffer>

/**
 * A copy of `bytes` from `start` to `end` in memory of its own. `slice` of a Buffer does not copy but shares the
 * memory, and the memory of a stream or a mapped file is reused or gone later.
 */
export function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.subarray(start, end))
}

/** All parts behind each other, in memory of their own. */
export function joined(...parts: readonly Uint8Array[]): Bytes {
  let size = 0
  for (const part of parts) size += part.length
  const whole = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** Whether both hold the same bytes. For public values: it ends at the first difference. */
export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false
  for (let at = 0; at < one.length; at += 1) if (one[at] !== other[at]) return false
  return true
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Short texts of ASCII are the most, and a loop is faster for them than the call of a codec. */
const shortMax = 48

/** UTF-8 of a text. */
export function utf8(text: string): Bytes {
  const { length } = text
  if (length > shortMax) return encoder.encode(text) as Bytes
  const bytes = new Uint8Array(length)
  for (let at = 0; at < length; at += 1) {
    const code = text.charCodeAt(at)
    if (code > 0x7f) return encoder.encode(text) as Bytes
    bytes[at] = code
  }
  return bytes
}

/** The text of UTF-8 bytes; malformed sequences become U+FFFD. */
export function textOfBytes(bytes: Uint8Array): string {
  const { length } = bytes
  if (length > shortMax) return decoder.decode(bytes)
  let text = ''
  for (let at = 0; at < length; at += 1) {
    const code = bytes[at] as number
    if (code > 0x7f) return decoder.decode(bytes)
    text += String.fromCharCode(code)
  }
  return text
}
