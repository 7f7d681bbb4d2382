import type { Hash } from 'node:crypto'
import { runningSha384, sha384 } from './digest.js'

/**
 * The deep hash of blobs and lists of them, over SHA-384: what signatures of format-2 transactions and of data items
 * sign.
 *
 *     blob  H(H("blob" + length) || H(bytes))
 *     list  acc = H("list" + count); for each element acc = H(acc || deepHash(element))
 *
 * Lengths are in bytes and counts in elements, as decimal text.
 */
export type DeepHashElement = Uint8Array | readonly DeepHashElement[]

/** The deep hash, 48 bytes. Recursion is as deep as the value, which callers make and not their clients. */
export function deepHash(element: DeepHashElement): Uint8Array {
  if (element instanceof Uint8Array) return blobHash(element.length, sha384(element))
  return element.reduce<Uint8Array>((acc, each) => sha384(acc, deepHash(each)), listStart(element.length))
}

function blobHash(length: number, hashed: Uint8Array): Uint8Array {
  return sha384(sha384(Buffer.from(`blob${length}`)), hashed)
}

function listStart(count: number): Uint8Array {
  return sha384(Buffer.from(`list${count}`))
}

/** The deep hash of a list whose last element is a blob that arrives in pieces; its length is needed only at the end. */
export class StreamedDeepHash {
  #acc: Uint8Array
  readonly #blob: Hash = runningSha384()
  #length = 0

  /** `leading`: all elements but the last. */
  constructor(leading: readonly DeepHashElement[]) {
    this.#acc = leading.reduce<Uint8Array>(
      (acc, each) => sha384(acc, deepHash(each)),
      listStart(leading.length + 1),
    )
  }

  /** Takes the next bytes of the last blob. */
  update(bytes: Uint8Array): void {
    this.#blob.update(bytes)
    this.#length += bytes.length
  }

  /** The deep hash of the whole list, 48 bytes. Once only. */
  digest(): Uint8Array {
    this.#acc = sha384(this.#acc, blobHash(this.#length, this.#blob.digest()))
    return this.#acc
  }
}
