import { utf8 } from '../format/bytes.js'

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

/** Head hashes of `blob<length>` that are kept: those of keys, targets, anchors and tags are used again and again. */
const headsMax = 1024
const hashBytes = 48

/** The rule over one implementation of SHA-384. All results have 48 bytes. */
export class DeepHashRule {
  readonly #heads: Uint8Array[] = []
  readonly #pair = new Uint8Array(2 * hashBytes)
  /** Most items have no target, no anchor or no tags. */
  readonly #empty: Uint8Array

  constructor(private readonly sha384: (bytes: Uint8Array) => Uint8Array) {
    this.#empty = this.blob(0, sha384(new Uint8Array(0)))
  }

  /** The hash of any element. Recursion is as deep as the value; its depth is set by the program, never by a client. */
  of(element: DeepHashElement): Uint8Array {
    if (!(element instanceof Uint8Array)) return this.begun(element.length, element)
    return element.length === 0 ? this.#empty : this.blob(element.length, this.sha384(element))
  }

  /** The hash of a blob of which only length and SHA-384 are known. */
  blob(length: number, hashed: Uint8Array): Uint8Array {
    if (length >= headsMax) return this.paired(this.sha384(utf8(`blob${length}`)), hashed)
    const head = this.#heads[length] ?? this.sha384(utf8(`blob${length}`))
    this.#heads[length] = head
    return this.paired(head, hashed)
  }

  /** The accumulator of a list of `count` elements after its first ones. Lists that begin alike share it. */
  begun(count: number, first: readonly DeepHashElement[]): Uint8Array {
    return this.continued(this.sha384(utf8(`list${count}`)), first)
  }

  /** The accumulator after more elements. */
  continued(begun: Uint8Array, elements: readonly DeepHashElement[]): Uint8Array {
    return elements.reduce<Uint8Array>((acc, element) => this.paired(acc, this.of(element)), begun)
  }

  /** The accumulator after one more blob of which only length and SHA-384 are known. */
  continuedBy(begun: Uint8Array, length: number, hashed: Uint8Array): Uint8Array {
    return this.paired(begun, this.blob(length, hashed))
  }

  /** SHA-384 of two hashes: hashing one buffer in one call takes half as long as feeding two to a hash. */
  paired(one: Uint8Array, other: Uint8Array): Uint8Array {
    this.#pair.set(one, 0)
    this.#pair.set(other, hashBytes)
    return this.sha384(this.#pair)
  }
}
