import { BloomFilter } from '../bloom-filter.js'

/** Digests of one generation; two take 1 MiB. */
const generationMax = 262_144

/**
 * What went from the store lately. Says yes by mistake once in some thousand times: that payload is kept longer than the
 * others.
 */
export class Ghosts {
  #young = new BloomFilter(generationMax)
  #old = new BloomFilter(1)

  add(digest: Uint8Array): void {
    if (this.#young.count >= generationMax) {
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
