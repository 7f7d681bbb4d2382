import { chunkSizeMax, nextChunkSize } from '../../format/chunk.js'
import { HashTree, type Leaf } from '../../proof/hash-tree.js'
import { digestBeside, hash256 } from '../hash.js'

/** The data root of `length` bytes that come in pieces. Chunks are hashed while the rest is on its way. */
export class RunningDataRoot {
  readonly #leaves: Promise<Leaf>[] = []
  #chunk: Uint8Array<ArrayBuffer>
  #filled = 0
  #came = 0

  constructor(private readonly length: number) {
    this.#chunk = new Uint8Array(nextChunkSize(length))
  }

  /** Not more than `length` bytes in all. */
  update(piece: Uint8Array): void {
    for (let at = 0; at < piece.length; ) {
      const taken = Math.min(this.#chunk.length - this.#filled, piece.length - at)
      this.#chunk.set(piece.subarray(at, at + taken), this.#filled)
      this.#filled += taken
      this.#came += taken
      at += taken
      if (this.#filled === this.#chunk.length) this.#next()
    }
  }

  #next(): void {
    const [chunk, end] = [this.#chunk, this.#came]
    const leaf = digestBeside('sha256', chunk).then((hash) => ({ hash, end }))
    // Awaited with the others when all bytes are here.
    leaf.catch((error) => error)
    this.#leaves.push(leaf)
    this.#chunk = new Uint8Array(nextChunkSize(this.length - this.#came))
    this.#filled = 0
  }

  /** Once, behind the last byte. */
  async root(): Promise<Uint8Array> {
    // Behind data whose last chunk is full stands a leaf of no bytes.
    if (this.length % chunkSizeMax === 0 || this.#leaves.length === 0) this.#next()
    return new HashTree(await Promise.all(this.#leaves), (bytes) => hash256(bytes)).root
  }
}
