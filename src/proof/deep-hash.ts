import { nativeDeepHashing } from '../../native/digest/digest.js'
import { type RunningDigest, runningSha384, sha384 } from './digest.js'

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

/** The deep hash, 48 bytes. Recursion is as deep as the value; its depth is set by the program, never by a client. */
export function deepHash(element: DeepHashElement): Uint8Array {
  if (element instanceof Uint8Array)
    return element.length === 0 ? emptyBlob : blobHash(element.length, sha384(element))
  return beginList(element.length, element)
}

/** Hashes of `blob<length>` for small lengths, which are used again and again for keys, targets, anchors and tags. */
const heads: Uint8Array[] = []
const headsMax = 1024

function blobHash(length: number, hashed: Uint8Array): Uint8Array {
  if (length >= headsMax) return pairHash(sha384(Buffer.from(`blob${length}`)), hashed)
  const head = heads[length] ?? sha384(Buffer.from(`blob${length}`))
  heads[length] = head
  return pairHash(head, hashed)
}

const hashBytes = 48
const pair = Buffer.alloc(2 * hashBytes)

/** SHA-384 of two hashes: hashing one buffer in one call takes half as long as feeding two to a hash. */
function pairHash(one: Uint8Array, other: Uint8Array): Uint8Array {
  pair.set(one, 0)
  pair.set(other, hashBytes)
  return sha384(pair)
}

/** Most items have no target, no anchor or no tags. */
const emptyBlob = blobHash(0, sha384(new Uint8Array(0)))

function listStart(count: number): Uint8Array {
  return sha384(Buffer.from(`list${count}`))
}

/** The accumulator of a list of `count` elements after its first ones. Lists that begin alike share it. */
export function beginList(count: number, first: readonly DeepHashElement[]): Uint8Array {
  return appendAll(listStart(count), first)
}

/** From this size on node:crypto hashes a blob in less time than the addon, although it costs a call of its own. */
const smallMaxBytes = 1024

function appendAll(begun: Uint8Array, elements: readonly DeepHashElement[]): Uint8Array {
  if (nativeDeepHashing === undefined || !elements.every(isSmallBlob))
    return elements.reduce<Uint8Array>(append, begun)
  return nativeDeepHashing.deepen(begun, elements)
}

function isSmallBlob(element: DeepHashElement): element is Uint8Array {
  return element instanceof Uint8Array && element.length <= smallMaxBytes
}

function append(acc: Uint8Array, element: DeepHashElement): Uint8Array {
  return element instanceof Uint8Array && element.length > 0
    ? appendHashed(acc, element.length, sha384(element))
    : pairHash(acc, deepHash(element))
}

/** After one more blob of so many bytes, whose SHA-384 is known. */
function appendHashed(acc: Uint8Array, length: number, hashed: Uint8Array): Uint8Array {
  return nativeDeepHashing?.deepenBy(acc, hashed, length) ?? pairHash(acc, blobHash(length, hashed))
}

/** The deep hash of a list whose last element is a blob that arrives in pieces; its length is needed only at the end. */
export class StreamedDeepHash {
  #acc: Uint8Array
  readonly #blob: RunningDigest = runningSha384()
  #length = 0

  /** `leading`: all elements but the last; `begun` (`beginList`) stands for those in front of them. */
  constructor(leading: readonly DeepHashElement[], begun = beginList(leading.length + 1, [])) {
    this.#acc = appendAll(begun, leading)
  }

  /** Takes the next bytes of the last blob. */
  update(bytes: Uint8Array): void {
    this.#blob.update(bytes)
    this.#length += bytes.length
  }

  /** The deep hash of the whole list, 48 bytes. Once only. */
  digest(): Uint8Array {
    this.#acc = appendHashed(this.#acc, this.#length, this.#blob.digest())
    return this.#acc
  }
}
