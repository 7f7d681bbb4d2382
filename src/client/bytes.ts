import type { Bytes } from '../format/bytes.js'

export { type Bytes, joined, sameBytes, textOfBytes, utf8 } from '../format/bytes.js'

/** The same bytes as a type that WebCrypto and fetch take: copied only where the memory is shared. */
export function plainBytes(bytes: Uint8Array): Bytes {
  return bytes.buffer instanceof ArrayBuffer ? (bytes as Bytes) : new Uint8Array(bytes)
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const values = new Map([...alphabet].map((char, value) => [char, value]))

/** Base64url without padding (RFC 4648 section 5). */
export function toBase64url(bytes: Uint8Array): string {
  const parts: string[] = []
  let text = ''
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at
    const group = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
    text += alphabet.charAt(group >> 18) + alphabet.charAt((group >> 12) & 63)
    if (left > 1) text += alphabet.charAt((group >> 6) & 63)
    if (left > 2) text += alphabet.charAt(group & 63)
    if (text.length > 8192) {
      parts.push(text)
      text = ''
    }
  }
  return parts.join('') + text
}

/** The bytes of a canonical base64url text, or undefined: one with padding or stray bits at its end is another spelling. */
export function fromBase64url(text: string): Bytes | undefined {
  const stray = text.length % 4
  if (stray === 1) return undefined
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4))
  let at = 0
  let group = 0
  let bits = 0
  for (const char of text) {
    const value = values.get(char)
    if (value === undefined) return undefined
    group = ((group << 6) | value) & 0xfff
    bits += 6
    if (bits < 8) continue
    bits -= 8
    bytes[at++] = (group >> bits) & 0xff
  }
  return (group & ((1 << bits) - 1)) === 0 ? bytes : undefined
}

/** Standard base64 with padding, as headers and JSON of others have it. */
export function toBase64(bytes: Uint8Array): string {
  const text = toBase64url(bytes).replaceAll('-', '+').replaceAll('_', '/')
  return text + '='.repeat((4 - (text.length % 4)) % 4)
}

/** The bytes of standard base64, padded or not; undefined where it is none. */
export function fromBase64(text: string): Bytes | undefined {
  return fromBase64url(text.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_'))
}

const hexDigits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Lower-case hexadecimal digits. */
export function toHex(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += hexDigits[byte]
  return text
}

/** The bytes of hexadecimal digits, with or without `0x`; undefined where it is none. */
export function fromHex(text: string): Bytes | undefined {
  const digits = text.replace(/^0x/, '')
  if (digits.length % 2 === 1 || !/^[0-9a-fA-F]*$/.test(digits)) return undefined
  return Uint8Array.from({ length: digits.length / 2 }, (_, at) =>
    Number.parseInt(digits.slice(2 * at, 2 * at + 2), 16),
  )
}

const base58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Base58 as Bitcoin and Solana write keys. */
export function toBase58(bytes: Uint8Array): string {
  let number = 0n
  for (const byte of bytes) number = number * 256n + BigInt(byte)
  let text = ''
  for (; number > 0n; number /= 58n) text = base58.charAt(Number(number % 58n)) + text
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return '1'.repeat(zeros < 0 ? bytes.length : zeros) + text
}

/** The bytes of a base58 text of at most 128 characters; undefined where it is none. */
export function fromBase58(text: string): Bytes | undefined {
  if (text.length > 128) return undefined
  let number = 0n
  for (const char of text) {
    const value = base58.indexOf(char)
    if (value < 0) return undefined
    number = number * 58n + BigInt(value)
  }
  const digits: number[] = []
  for (; number > 0n; number >>= 8n) digits.unshift(Number(number & 0xffn))
  const zeros = [...text].findIndex((char) => char !== '1')
  return Uint8Array.from([...new Array<number>(zeros < 0 ? text.length : zeros).fill(0), ...digits])
}

/** Whether a text has the form of an id: 43 characters of canonical base64url. */
export function isContentId(text: string): boolean {
  return /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/.test(text)
}
