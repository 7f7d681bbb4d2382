import { base58 } from '@scure/base'

/** Base58 with the Bitcoin alphabet: the text form of Solana keys and addresses. For short values only (quadratic time). */

const textMaxLength = 128

/** The base58 text of `bytes`; each leading zero byte is a leading `1`. */
export function encodeBase58(bytes: Uint8Array): string {
  return base58.encode(bytes)
}

/** The bytes of a base58 text of at most 128 characters, or undefined where it is none. */
export function decodeBase58(text: string): Uint8Array | undefined {
  if (text.length > textMaxLength) return undefined
  try {
    return base58.decode(text)
  } catch {
    // The library throws at a character that is not in the alphabet, and for no other reason.
    return undefined
  }
}
