import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'

/** A full block on disk. */
interface Block {
  readonly position: number
  readonly bytes: number
}

/**
 * Many byte sequences that grow side by side in one temporary file: each has one block in memory, and full blocks go to the
 * file. What is written together is read together, so an entry never lies across two blocks. Memory: one block each.
 */
export class Chains {
  /** The blocks being filled, one behind the other. */
  readonly memory: Buffer
  readonly #used: Int32Array
  readonly #blocks: Block[][]
  /** Bytes of each chain that are in the file. */
  readonly #flushed: Float64Array
  #file: number | undefined
  #fileBytes = 0

  /** The file is made when the first block is full. `blockBytes` bounds an entry. */
  constructor(
    private readonly path: string,
    readonly count: number,
    private readonly blockBytes: number,
    memory: Buffer = Buffer.allocUnsafeSlow(count * blockBytes),
  ) {
    this.memory = memory
    this.#used = new Int32Array(count)
    this.#flushed = new Float64Array(count)
    this.#blocks = Array.from({ length: count }, () => [])
  }

  /** Makes room for an entry at the end of a chain: where in `memory` it is to be written at once. */
  reserve(chain: number, bytes: number): number {
    let used = this.#used[chain] as number
    if (used + bytes > this.blockBytes) {
      if (bytes > this.blockBytes) throw new RangeError(`an entry of ${bytes} bytes`)
      this.#flush(chain)
      used = 0
    }
    this.#used[chain] = used + bytes
    return chain * this.blockBytes + used
  }

  /** The last entry of a chain turned out to be so many bytes shorter than its room. */
  giveBack(chain: number, bytes: number): void {
    this.#used[chain] = (this.#used[chain] as number) - bytes
  }

  /** Bytes of a chain. */
  sizeOf(chain: number): number {
    return (this.#flushed[chain] as number) + (this.#used[chain] as number)
  }

  /** Bytes of a chain that are in memory: they begin at `chain * blockBytes`. */
  heldOf(chain: number): number {
    return this.#used[chain] as number
  }

  /** The blocks of a chain in order, each of whole entries; a view is valid until the next one is requested. */
  *read(chain: number): Generator<Buffer> {
    if (this.sizeOf(chain) > this.heldOf(chain)) yield* this.flushed(chain)
    const start = chain * this.blockBytes
    const used = this.#used[chain] as number
    if (used > 0) yield this.memory.subarray(start, start + used)
  }

  /** Those of its blocks that are in the file. */
  *flushed(chain: number): Generator<Buffer> {
    const block = Buffer.allocUnsafeSlow(this.blockBytes)
    for (const { position, bytes } of this.#blocks[chain] ?? []) {
      if (this.#file === undefined) throw new Error('blocks without a file')
      if (readSync(this.#file, block, 0, bytes, position) !== bytes) throw new Error(`${this.path} was cut`)
      yield block.subarray(0, bytes)
    }
  }

  #flush(chain: number): void {
    this.#file ??= openSync(this.path, 'wx+', 0o600)
    const bytes = this.#used[chain] as number
    const start = chain * this.blockBytes
    writeAll(this.#file, this.memory.subarray(start, start + bytes), this.#fileBytes)
    this.#blocks[chain]?.push({ position: this.#fileBytes, bytes })
    this.#fileBytes += bytes
    this.#flushed[chain] = (this.#flushed[chain] as number) + bytes
  }

  /** Lets go of everything and removes the file. */
  close(): void {
    if (this.#file === undefined) return
    closeSync(this.#file)
    unlinkSync(this.path)
    this.#file = undefined
  }
}

/** Writes all of `bytes` at `position`. Throws where the disk is full. */
export function writeAll(file: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(file, bytes, done, bytes.length - done, position + done)
  }
}
