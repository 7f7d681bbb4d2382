import { chunkSizeMax } from '../format/chunk.js'
import type { Ruleset } from '../proof/path.js'

/** A chunk with its proof, found true by `ruleset`. */
export interface ProvenChunk {
  readonly chunk: Uint8Array
  readonly dataPath: Uint8Array
  readonly dataRoot: Uint8Array
  readonly dataSize: number
  /** Where it lies in the data, `end` exclusive. */
  readonly start: number
  readonly end: number
  readonly ruleset: Ruleset
}

/** What an entry takes beside its bytes: three arrays with their buffers, its key and its place. */
export const chunkEntryBytes = 1024

/** Most chunks kept for one range of 256 KiB: data that is cut in the usual way has two at most. */
const perStretchMax = 4

/**
 * Proven chunks in memory (LRU). The key is the data root and not the position in the weave, so that a fork cannot
 * make an entry wrong, and chunks that are not mined yet can be kept.
 */
export class ChunkCache {
  readonly #stretches = new Map<string, readonly ProvenChunk[]>()
  #bytes = 0

  /**
   * `maxBytes` of chunks, proofs, and what an entry takes beside them; a chunk that reaches over two stretches counts twice.
   * `onLeft` hears of chunks for which there is no room any more.
   */
  constructor(
    private readonly maxBytes: number,
    private readonly onLeft: (chunk: ProvenChunk) => void = () => undefined,
  ) {}

  get bytes(): number {
    return this.#bytes
  }

  /** The chunk that holds byte `offset` (from 0) of the data, proven under exactly these rules. */
  find(dataRoot: Uint8Array, dataSize: number, offset: number, ruleset: Ruleset): ProvenChunk | undefined {
    const key = keyOf(dataRoot, dataSize, Math.floor(offset / chunkSizeMax))
    const chunks = this.#stretches.get(key)
    const found = chunks?.find((one) => one.start <= offset && offset < one.end && one.ruleset === ruleset)
    if (chunks === undefined || found === undefined) return undefined
    this.#stretches.delete(key)
    this.#stretches.set(key, chunks)
    return found
  }

  /** Returns what is kept. Its bytes lie in memory of their own, without a larger buffer that held them. */
  put(given: ProvenChunk): ProvenChunk {
    const chunk = withOwnBytes(given)
    const first = Math.floor(chunk.start / chunkSizeMax)
    const last = Math.floor((chunk.end - 1) / chunkSizeMax)
    for (let stretch = first; stretch <= last; stretch += 1) this.#put(chunk, stretch)
    while (this.#bytes > this.maxBytes) {
      const [oldest] = this.#stretches.keys()
      if (oldest === undefined) break
      const left = this.#stretches.get(oldest) ?? []
      this.#drop(oldest)
      for (const one of left) this.onLeft(one)
    }
    return chunk
  }

  #put(chunk: ProvenChunk, stretch: number): void {
    const key = keyOf(chunk.dataRoot, chunk.dataSize, stretch)
    const others = (this.#stretches.get(key) ?? []).filter(
      (one) => one.start !== chunk.start || one.ruleset !== chunk.ruleset,
    )
    this.#drop(key)
    const chunks = [...others.slice(1 - perStretchMax), chunk]
    this.#stretches.set(key, chunks)
    for (const one of chunks) this.#bytes += weightOf(one)
  }

  #drop(key: string): void {
    for (const one of this.#stretches.get(key) ?? []) this.#bytes -= weightOf(one)
    this.#stretches.delete(key)
  }
}

function weightOf({ chunk, dataPath }: ProvenChunk): number {
  return chunk.length + dataPath.length + chunkEntryBytes
}

function withOwnBytes(chunk: ProvenChunk): ProvenChunk {
  const { chunk: bytes, dataPath, dataRoot } = chunk
  return { ...chunk, chunk: ownBytes(bytes), dataPath: ownBytes(dataPath), dataRoot: ownBytes(dataRoot) }
}

/** A copy where they lie in a buffer of more than twice their size, for example in the pool of `Buffer`. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength > 2 * bytes.length ? Uint8Array.from(bytes) : bytes
}

function keyOf(dataRoot: Uint8Array, dataSize: number, stretch: number): string {
  return `${Buffer.from(dataRoot).toString('latin1')}/${dataSize}/${stretch}`
}
