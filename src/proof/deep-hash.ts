import { nativeDeepHashing } from '../../native/digest/digest.js'
import { type DeepHashElement, DeepHashRule } from './deep-hash-rule.js'
import { type RunningDigest, runningSha384, sha384 } from './digest.js'

export type { DeepHashElement } from './deep-hash-rule.js'

const rule = new DeepHashRule((bytes) => sha384(bytes))

/** The deep hash, 48 bytes. */
export function deepHash(element: DeepHashElement): Uint8Array {
  return element instanceof Uint8Array ? rule.of(element) : beginList(element.length, element)
}

/** The accumulator of a list of `count` elements after its first ones. Lists that begin alike share it. */
export function beginList(count: number, first: readonly DeepHashElement[]): Uint8Array {
  return appendAll(rule.begun(count, []), first)
}

/** From this size on node:crypto hashes a blob in less time than the addon, although it costs a call of its own. */
const smallMaxBytes = 1024

function appendAll(begun: Uint8Array, elements: readonly DeepHashElement[]): Uint8Array {
  if (nativeDeepHashing === undefined) return rule.continued(begun, elements)
  if (elements.every(isSmallBlob)) return nativeDeepHashing.deepen(begun, elements)
  return elements.reduce<Uint8Array>(append, begun)
}

function isSmallBlob(element: DeepHashElement): element is Uint8Array {
  return element instanceof Uint8Array && element.length <= smallMaxBytes
}

function append(acc: Uint8Array, element: DeepHashElement): Uint8Array {
  return element instanceof Uint8Array && element.length > 0
    ? appendHashed(acc, element.length, sha384(element))
    : rule.paired(acc, deepHash(element))
}

/** After one more blob of so many bytes, whose SHA-384 is known. */
function appendHashed(acc: Uint8Array, length: number, hashed: Uint8Array): Uint8Array {
  return nativeDeepHashing?.deepenBy(acc, hashed, length) ?? rule.continuedBy(acc, length, hashed)
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
