import { hashBlocks } from '../../native/digest/digest.js'
import { chunkSizeMax, chunkSizes } from '../format/chunk.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { type RunningDigest, runningSha256, sha256 } from './digest.js'
import { type Leaf, MerkleTree } from './merkle.js'

/**
 * The data root of a payload of known size that arrives in pieces of any length. Holds no bytes of it, only one leaf
 * per chunk. The root is that of the usual way to cut (format/chunk.ts); senders may cut the data in other ways, so a
 * different root does not prove the bytes wrong, but an equal one proves them right.
 */
export class DataRootHasher {
  readonly #leaves: Leaf[] = []
  readonly #sizes: Iterator<number, void, void>
  #chunk: RunningDigest = runningSha256()
  /** Bytes that the current chunk still needs; undefined after the last chunk. */
  #missing: number | undefined
  #received = 0

  constructor(readonly sizeBytes: number) {
    this.#sizes = chunkSizes(sizeBytes)
    this.#missing = this.#sizes.next().value ?? undefined
  }

  /** Takes the next bytes. Bytes beyond the size are only counted. */
  update(bytes: Uint8Array): void {
    const before = this.#received
    this.#received += bytes.length
    const usable = Math.min(bytes.length, this.sizeBytes - before)
    for (let at = 0; at < usable && this.#missing !== undefined; ) {
      if (this.#missing === chunkSizeMax && usable - at >= chunkSizeMax) {
        at += this.#takeWhole(bytes.subarray(at, usable), before + at)
        continue
      }
      const take = Math.min(this.#missing, usable - at)
      this.#chunk.update(bytes.subarray(at, at + take))
      at += take
      this.#missing -= take
      if (this.#missing === 0) this.#close(before + at)
    }
  }

  /** Takes the chunks of full size that `bytes` begins with, which stand at `start`: two of them are hashed at once. */
  #takeWhole(bytes: Uint8Array, start: number): number {
    let whole = 0
    for (; this.#missing === chunkSizeMax && whole + chunkSizeMax <= bytes.length; whole += chunkSizeMax) {
      this.#missing = this.#sizes.next().value ?? undefined
    }
    const hashes = hashBlocks(bytes.subarray(0, whole), chunkSizeMax)
    for (let at = 0; at < hashes.length; at += 32) {
      this.#leaves.push({
        hash: hashes.subarray(at, at + 32),
        end: start + (at / 32 + 1) * chunkSizeMax,
      })
    }
    return whole
  }

  #close(end: number): void {
    this.#leaves.push({ hash: this.#chunk.digest(), end })
    this.#chunk = runningSha256()
    this.#missing = this.#sizes.next().value ?? undefined
  }

  /** The tree over all chunks, the empty last one included; refused when more or fewer bytes came than announced. */
  finish(): MerkleTree | Refusal {
    if (this.#received !== this.sizeBytes) {
      return refuse('forged', 'upstream', `${this.#received} bytes came, not ${this.sizeBytes}`)
    }
    if (this.#missing === 0) this.#close(this.sizeBytes)
    return new MerkleTree(this.#leaves)
  }
}

/** The tree over the chunks of `data`. */
export function dataTree(data: Uint8Array): MerkleTree {
  const leaves: Leaf[] = []
  let end = 0
  for (const size of chunkSizes(data.length)) {
    leaves.push({ hash: sha256(data.subarray(end, end + size)), end: end + size })
    end += size
  }
  return new MerkleTree(leaves)
}

/**
 * The tree over the data of a format-1 transaction, which the network cuts itself: every 256 KiB, with no regard to how
 * small the last piece gets.
 */
export function inlineDataTree(data: Uint8Array): MerkleTree {
  const leaves: Leaf[] = []
  for (let start = 0; start <= data.length; start += chunkSizeMax) {
    const end = Math.min(start + chunkSizeMax, data.length)
    leaves.push({ hash: sha256(data.subarray(start, end)), end })
  }
  return new MerkleTree(leaves)
}
