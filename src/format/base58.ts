import type { Bytes } from './bytes.js'

/**
 * Base58 with the Bitcoin alphabet: the text form of Solana keys and addresses. For short values only (quadratic time). Not by
 * `@scure/base`, which would make the client's bundle larger by 1.3 KB gzipped; tests compare both.
 */

const textMaxLength = 128
const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** The base58 text of `bytes`; each leading zero byte is a leading `1`. */
export function encodeBase58(bytes: Uint8Array): string {
  let number = 0n
  for (const byte of bytes) number = number * 256n + BigInt(byte)
  let text = ''
  for (; number > 0n; number /= 58n) text = alphabet.charAt(Number(number % 58n)) + text
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return '1'.repeat(zeros < 0 ? bytes.length : zeros) + text
}

/** The bytes of a base58 text of at most `maxLength` characters, or undefined where it is none. */
export function decodeBase58(text: string, maxLength: number = textMaxLength): Bytes | undefined {
  if (text.length > maxLength) return undefined
  let number = 0n
  for (const char of text) {
    const value = alphabet.indexOf(char)
    if (value < 0) return undefined
    number = number * 58n + BigInt(value)
  }
  const digits: number[] = []
  for (; number > 0n; number >>= 8n) digits.unshift(Number(number & 0xffn))
  const zeros = [...text].findIndex((char) => char !== '1')
  return Uint8Array.from([...new Array<number>(zeros < 0 ? text.length : zeros).fill(0), ...digits])
}
