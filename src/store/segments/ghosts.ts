import { BloomFilter } from '../bloom-filter.js'

/** Digests of one generation at most; two take 1 MiB. */
const generationMax = 262_144

/** Fewer would be forgotten before anybody could ask again. */
const generationMin = 256

/**
 * What went from the store lately: about as many payloads as it holds, or everything that ever went would count as wanted. Says
 * yes by mistake once in some thousand times: that payload is kept longer than the others.
 */
export class Ghosts {
  #young = new BloomFilter(generationMax)
  #old = new BloomFilter(1)

  #most = generationMax

  /** Says how many payloads the store holds. */
  resize(payloads: number): void {
    this.#most = Math.min(Math.max(payloads >> 1, generationMin), generationMax)
  }

  add(digest: Uint8Array): void {
    if (this.#young.count >= this.#most) {
      this.#old = this.#young
      this.#young = new BloomFilter(generationMax)
    }
    const [first, second] = pairOf(digest)
    this.#young.add(first, second)
  }

  has(digest: Uint8Array): boolean {
    const [first, second] = pairOf(digest)
    return this.#young.has(first, second) || this.#old.has(first, second)
  }
}

function pairOf(digest: Uint8Array): [first: number, second: number] {
  const view = new DataView(digest.buffer, digest.byteOffset, digest.byteLength)
  return [view.getUint32(0), view.getUint32(4)]
}
