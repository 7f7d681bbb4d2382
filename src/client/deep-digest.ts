import { joined, utf8 } from './bytes.js'
import { digestOf, hash384, type RunningHash, runningHash } from './hash.js'

/** Bytes, or a list of such. */
export type DeepElement = Uint8Array | readonly DeepElement[]

/**
 * The deep hash over SHA-384 that data items, transactions and receipts sign, 48 bytes.
 *
 *     blob  H(H("blob" + length) || H(bytes))
 *     list  acc = H("list" + count); for each element acc = H(acc || deepDigest(element))
 */
export function deepDigest(element: DeepElement): Uint8Array {
  if (element instanceof Uint8Array) return blobDigest(element.length, hash384(element))
  return begunDigest(element.length, element)
}

function blobDigest(length: number, hashed: Uint8Array): Uint8Array {
  return hash384(joined(hash384(utf8(`blob${length}`)), hashed))
}

/** What a list of `count` elements hashes to after the first of them: `endedDigest` goes on from there. */
export function begunDigest(count: number, first: readonly DeepElement[]): Uint8Array {
  return continued(hash384(utf8(`list${count}`)), first)
}

function continued(begun: Uint8Array, elements: readonly DeepElement[]): Uint8Array {
  return elements.reduce<Uint8Array>((acc, each) => hash384(joined(acc, deepDigest(each))), begun)
}

/** The hash of a begun list with one more element, and a last blob of which only length and SHA-384 are known. */
export function endedDigest(begun: Uint8Array, element: DeepElement, last: PayloadDigest): Uint8Array {
  return hash384(joined(continued(begun, [element]), blobDigest(last.length, last.hashed)))
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
