import { type DeepHashElement, DeepHashRule } from '../proof/deep-hash-rule.js'
import { digestOf, hash384, type RunningHash, runningHash } from './hash.js'

/** The deep hash over the platform's SHA-384. */
export const deepHashing = new DeepHashRule((bytes) => hash384(bytes))

/** The deep hash that data items, transactions and receipts sign, 48 bytes. */
export function deepDigest(element: DeepHashElement): Uint8Array {
  return deepHashing.of(element)
}

/** SHA-384 of a payload and its length: all that a deep hash needs of it. */
export interface PayloadDigest {
  readonly hashed: Uint8Array
  readonly length: number
}

/** Reads pieces to their end. */
export async function payloadDigest(pieces: AsyncIterable<Uint8Array>): Promise<PayloadDigest> {
  const hash: RunningHash = runningHash('sha384')
  let length = 0
  for await (const piece of pieces) {
    hash.update(piece)
    length += piece.length
  }
  return { hashed: hash.digest(), length }
}

/** The same of bytes at hand. */
export async function payloadDigestOf(bytes: Uint8Array): Promise<PayloadDigest> {
  return { hashed: await digestOf('sha384', bytes), length: bytes.length }
}
