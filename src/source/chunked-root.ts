import type { FairSlots } from '../actor/fair-slots.js'
import type { Chain } from '../chain/chain.js'
import { chunkSizeMax, chunkSizeMin, nextChunkSize } from '../format/chunk.js'
import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { proveChunk, rulesetAt } from '../proof/path.js'
import type { RootBytes } from './root-bytes.js'

export interface ChunkedRootParts {
  readonly chain: Pick<Chain, 'chunk'>
  /** Shared by all transfers: chunks asked at once. */
  readonly turns: FairSlots
  /** Chunks asked ahead of what was taken, for one stream: each holds at most 256 KiB and its proof. */
  readonly aheadMax: number
}

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

/** Nodes asked for one chunk when the proof of what came does not hold. */
const forgeriesMax = 3

/** Chunks kept for the next stream: headers of bundles and items are read in small steps out of the same chunk. */
const recentMax = 4

interface ProvenChunk {
  readonly start: number
  readonly bytes: Uint8Array
}

/**
 * Where the chunk that holds byte `at` ends, if the data was cut in the usual way: only a guess for reading ahead, since
 * nothing forbids another cut.
 */
export function usualEnd(at: number, sizeBytes: number): number {
  const base = Math.floor(at / chunkSizeMax) * chunkSizeMax
  const before = sizeBytes - (base - chunkSizeMax)
  // The last two chunks share what is left, so that neither is tiny; the border between them is off the grid.
  if (base > 0 && before > chunkSizeMax && before < chunkSizeMax + chunkSizeMin) return sizeBytes
  const end = base + nextChunkSize(sizeBytes - base)
  return at < end ? end : sizeBytes
}

/** A transaction's data out of chunks from nodes: each is proven against the data root before a byte of it is given. */
export class ChunkedRoot implements RootBytes {
  readonly proven: boolean
  readonly trusted = true
  readonly id: Id
  readonly sizeBytes: number
  readonly #recent: ProvenChunk[] = []

  constructor(
    private readonly place: RootPlace,
    private readonly parts: ChunkedRootParts,
  ) {
    this.id = place.id
    this.sizeBytes = place.sizeBytes
    this.proven = place.isBound
  }

  async *stream(
    start: number,
    end: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array | Refusal, undefined> {
    const leave = new AbortController()
    const either = AbortSignal.any([signal, leave.signal])
    const ahead = new Map<number, Promise<ProvenChunk | Refusal>>()
    try {
      for (let at = start; at < end; ) {
        const near = this.#recent.find((one) => one.start <= at && at < one.start + one.bytes.length)
        if (near === undefined) this.#askAhead(ahead, at, end, either)
        const chunk = near ?? (await (ahead.get(at) ?? this.#ask(at, either)))
        if (isRefusal(chunk)) {
          yield chunk
          return undefined
        }
        if (near === undefined) this.#remember(chunk)
        const next = chunk.start + chunk.bytes.length
        yield chunk.bytes.subarray(at - chunk.start, Math.min(end, next) - chunk.start)
        at = next
        for (const asked of ahead.keys()) if (asked < at) ahead.delete(asked)
      }
      return undefined
    } finally {
      leave.abort()
    }
  }

  async close(): Promise<void> {
    this.#recent.length = 0
  }

  #remember(chunk: ProvenChunk): void {
    this.#recent.push(chunk)
    if (this.#recent.length > recentMax) this.#recent.shift()
  }

  #askAhead(
    ahead: Map<number, Promise<ProvenChunk | Refusal>>,
    at: number,
    end: number,
    signal: AbortSignal,
  ): void {
    for (let guess = at; guess < end && ahead.size < this.parts.aheadMax; ) {
      if (!ahead.has(guess)) ahead.set(guess, this.#ask(guess, signal))
      guess = usualEnd(guess, this.sizeBytes)
    }
  }

  #ask(at: number, signal: AbortSignal): Promise<ProvenChunk | Refusal> {
    return this.parts.turns.run(async () => {
      for (let attempt = 1; ; attempt += 1) {
        const found = await this.#askOnce(at, signal)
        const forged = isRefusal(found) && found.refused === 'forged'
        if (!forged || attempt === forgeriesMax || signal.aborted) return found
      }
    })
  }

  async #askOnce(at: number, signal: AbortSignal): Promise<ProvenChunk | Refusal> {
    const weaveOffset = this.place.weaveStart + at
    const answer = await this.parts.chain.chunk(weaveOffset, signal)
    if (isRefusal(answer)) return answer
    const proven = proveChunk({
      chunk: answer.chunk,
      dataPath: answer.dataPath,
      dataRoot: this.place.dataRoot,
      dataSize: this.sizeBytes,
      offset: at,
      ruleset: rulesetAt(weaveOffset),
    })
    return isRefusal(proven) ? proven : { start: proven.start, bytes: answer.chunk }
  }
}
