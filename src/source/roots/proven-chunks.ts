import { type FairSlots, gaveUp } from '../../actor/fair-slots.js'
import type { Requester } from '../../actor/requester.js'
import type { Chain } from '../../chain/chain.js'
import { ChunkCache, type ProvenChunk } from '../../chain/chunk-cache.js'
import { firstProven, proveInSpan } from '../../chain/chunk-proof.js'
import type { ChunkByte, WrittenChunks } from '../../chain/segment-chunks.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { usualStart } from '../../format/usual-cut.js'
import { equalBytes } from '../../proof/digest.js'
import { rulesetAt } from '../../proof/path.js'

/** Where a root transaction's data lies, and the root that its signature vouches for. */
export interface RootPlace {
  readonly id: Id
  readonly sizeBytes: number
  readonly dataRoot: Uint8Array
  /** Whether the id vouches for the data root: else it is the word of a node. */
  readonly isBound: boolean
  /** 1-based weave position of the first byte. */
  readonly weaveStart: number
}

export interface ProvenChunksParts {
  readonly chain: Pick<Chain, 'chunk'>
  /** Chunks requested at once, all transfers together, by turns of clients. */
  readonly turns: FairSlots
  /** Bytes of chunks and their proofs in memory. */
  readonly memoryMaxBytes: number
  /** Where chunks go that leave memory; absent: they are fetched anew. */
  readonly segments?: WrittenChunks
}

/** Bytes of a root that lie in the store as content, or soon will. */
interface KeptRange {
  readonly dataRoot: Uint8Array
  readonly start: number
  readonly end: number
}

interface Elsewhere {
  taken(chunk: ProvenChunk): void
  end(): void
}

function isWithin(chunk: ProvenChunk, { dataRoot, start, end }: KeptRange): boolean {
  return start <= chunk.start && chunk.end <= end && equalBytes(chunk.dataRoot, dataRoot)
}

/** Nodes that get a request for one chunk when the proof of what came does not hold. */
const forgeriesMax = 3

/** Chunks requested that nobody waits for yet. Each is one of those requested at once. */
const foreseenMax = 4

/**
 * The chunks of transactions' data on one thread. Each is fetched and proven once, for all readers, while it stays in memory and
 * then in segments. For a reader that goes from chunk to chunk the next one is fetched ahead.
 */
export class ProvenChunks {
  readonly #memory: ChunkCache
  readonly #flights = new Map<string, Flight>()
  readonly #keptRanges = new Set<KeptRange>()
  readonly #keptElsewhere = new WeakSet<ProvenChunk>()
  #foreseen = 0

  constructor(private readonly parts: ProvenChunksParts) {
    this.#memory = new ChunkCache(parts.memoryMaxBytes, (left) => {
      if (!this.#isKeptElsewhere(left)) parts.segments?.put(left)
    })
  }

  /** Bytes held. */
  get bytes(): number {
    return this.#memory.bytes
  }

  /** The chunk with byte `at` (from 0) of the root's data, where it is in memory. */
  find({ dataRoot, sizeBytes, weaveStart }: RootPlace, at: number): ProvenChunk | undefined {
    return this.#memory.find(dataRoot, sizeBytes, at, rulesetAt(weaveStart + at))
  }

  /** The bytes of the root's data from `start` to `end`, where they lie in one chunk that is here. */
  near(place: RootPlace, start: number, end: number): Uint8Array | undefined {
    const chunk = this.find(place, start)
    if (chunk === undefined) return this.parts.segments?.near(byteOf(place, start), end - start)
    return end > chunk.end ? undefined : chunk.chunk.subarray(start - chunk.start, end - chunk.start)
  }

  /**
   * All bytes of a range are being written into the store, as content, until `end` of the answer is called: chunks in it need not
   * be kept once more. `taken` of it hears of each chunk that was.
   */
  keepingElsewhere({ dataRoot }: RootPlace, start: number, end: number): Elsewhere {
    const range = { dataRoot, start, end }
    this.#keptRanges.add(range)
    return {
      taken: (chunk) => {
        if (isWithin(chunk, range)) this.#keptElsewhere.add(chunk)
      },
      end: () => this.#keptRanges.delete(range),
    }
  }

  #isKeptElsewhere(chunk: ProvenChunk): boolean {
    if (this.#keptElsewhere.has(chunk)) return true
    for (const range of this.#keptRanges) if (isWithin(chunk, range)) return true
    return false
  }

  /**
   * The chunk with byte `at` of the root's data, fetched where it is not here. Whoever asks meanwhile for a byte of it waits for
   * the same answer, and the question is given up when the last of them left. It waits by turns of the
   * client that came first. Refusals as `Chain.chunk` has them, and `forged`.
   */
  async take(place: RootPlace, at: number, { client, signal }: Requester): Promise<ProvenChunk | Refusal> {
    // Data may be cut in another way than usual: then what others wait for is another chunk, and this byte is requested itself.
    for (const key of [
      this.#keyOf(place, usualStart(at, place.sizeBytes)),
      `${this.#keyOf(place, at)} alone`,
    ]) {
      const here = this.find(place, at)
      if (here !== undefined) return here
      const running = this.#flights.get(key)
      const flight =
        running === undefined || running.isGivenUp ? this.#begin(key, place, at, client) : running
      const found = await flight.join(signal)
      if (isRefusal(found) || (found.start <= at && at < found.end)) return found
    }
    throw new Error(`a chunk was proven to hold byte ${at}, and does not`)
  }

  #keyOf({ dataRoot, sizeBytes, weaveStart }: RootPlace, at: number): string {
    return `${Buffer.from(dataRoot).toString('latin1')} ${sizeBytes} ${weaveStart} ${at}`
  }

  #begin(key: string, place: RootPlace, at: number, client: string | undefined): Flight {
    const flight = new Flight((signal) => this.#bring(place, at, { client, signal }))
    this.#flights.set(key, flight)
    void flight.over.then(() => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key)
    })
    return flight
  }

  async #bring(place: RootPlace, at: number, requester: Requester): Promise<ProvenChunk | Refusal> {
    const kept = await this.#fromSegments(place, at)
    if (kept !== undefined) return this.#memory.put(kept)
    const found = await this.parts.turns.run(async () => {
      for (let attempt = 1; ; attempt += 1) {
        if (requester.signal.aborted) return gaveUp
        const once = await this.#askOnce(place, at, requester)
        const isForged = isRefusal(once) && once.refused === 'forged'
        if (!isForged || attempt === forgeriesMax) return once
      }
    }, requester.client)
    if (isRefusal(found)) return found
    this.#foresee(place, found, requester.client)
    return this.#memory.put(found)
  }

  async #fromSegments(place: RootPlace, at: number): Promise<ProvenChunk | undefined> {
    try {
      return await this.parts.segments?.take(byteOf(place, at))
    } catch {
      return undefined // the disk refuses: nodes have the same bytes
    }
  }

  async #askOnce(place: RootPlace, at: number, requester: Requester): Promise<ProvenChunk | Refusal> {
    const { dataRoot, sizeBytes, weaveStart: start } = place
    const offset = start + at
    const found = await firstProven(this.parts.chain, offset, requester, (chunk) =>
      proveInSpan(chunk, { dataRoot, sizeBytes, start }, offset),
    )
    return isRefusal(found) ? found : found.proven
  }

  #has(place: RootPlace, at: number): boolean {
    return this.find(place, at) !== undefined || this.parts.segments?.has(byteOf(place, at)) === true
  }

  /**
   * Fetches the next chunk ahead where the previous chunk is here too, because related items of a bundle are adjacent. At most
   * one for each requested chunk, where slots are free.
   */
  #foresee(place: RootPlace, { start, end }: ProvenChunk, client: string | undefined): void {
    const { turns } = this.parts
    if (start === 0 || end >= place.sizeBytes || this.#foreseen >= foreseenMax) return
    if (turns.isFull(client) || this.find(place, start - 1) === undefined || this.#has(place, end)) return
    const key = this.#keyOf(place, usualStart(end, place.sizeBytes))
    if (this.#flights.has(key)) return
    this.#foreseen += 1
    // Nobody waits for it, so nobody leaves: the chain's own patience ends it.
    void this.#begin(key, place, end, client)
      .join()
      .then(() => {
        this.#foreseen -= 1
      })
  }
}

function byteOf({ dataRoot, sizeBytes, weaveStart }: RootPlace, offset: number): ChunkByte {
  return { dataRoot, dataSize: sizeBytes, offset, ruleset: rulesetAt(weaveStart + offset) }
}

/** One chunk on its way, and how many wait for it. */
class Flight {
  readonly over: Promise<unknown>
  readonly #outcome: Promise<ProvenChunk | Refusal>
  readonly #abort = new AbortController()
  #waiting = 0

  /** Everybody left before it came. */
  get isGivenUp(): boolean {
    return this.#abort.signal.aborted
  }

  constructor(bring: (signal: AbortSignal) => Promise<ProvenChunk | Refusal>) {
    this.#outcome = bring(this.#abort.signal)
    this.over = this.#outcome.catch(() => 'thrown where it is awaited')
  }

  /** What came of it, or `gaveUp` when `signal` fires first. The last one who leaves ends it. */
  join(signal?: AbortSignal): Promise<ProvenChunk | Refusal> {
    if (signal?.aborted === true) return Promise.resolve(gaveUp)
    this.#waiting += 1
    if (signal === undefined) return this.#outcome
    return new Promise((resolve, reject) => {
      const left = (): void => {
        this.#waiting -= 1
        if (this.#waiting === 0) this.#abort.abort()
        resolve(gaveUp)
      }
      signal.addEventListener('abort', left, { once: true })
      const arrived = (): void => signal.removeEventListener('abort', left)
      this.#outcome.then(resolve, reject).finally(arrived)
    })
  }
}
