import type { Bytes } from './bytes.js'

const digits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Lower-case hexadecimal digits. */
export function encodeHex(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += digits[byte]
  return text
}

/** The bytes of hexadecimal digits, with or without `0x`; undefined where it is none. */
export function decodeHex(text: string): Bytes | undefined {
  const plain = text.replace(/^0x/, '')
  if (plain.length % 2 === 1 || !/^[0-9a-fA-F]*$/.test(plain)) return undefined
  return Uint8Array.from({ length: plain.length / 2 }, (_, at) =>
    Number.parseInt(plain.slice(2 * at, 2 * at + 2), 16),
  )
}
