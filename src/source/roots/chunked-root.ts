import { setMaxListeners } from 'node:events'
import type { ProvenChunk } from '../../chain/chunk-cache.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { usualEnd } from '../../format/usual-cut.js'
import type { ProvenChunks, RootPlace } from './proven-chunks.js'
import type { RootBytes } from './root-bytes.js'

export interface ChunkedRootParts {
  readonly chunks: ProvenChunks
  /** Chunks requested ahead of what was taken, for one stream: each holds at most 256 KiB and its proof. */
  readonly aheadMax: number
}

type Outcome = ProvenChunk | Refusal

/** A transaction's data out of chunks from nodes: each is proven against the data root before a byte of it is given. */
export class ChunkedRoot implements RootBytes {
  readonly proven: boolean
  readonly trusted = true
  readonly id: Id
  readonly sizeBytes: number
  readonly height?: number

  constructor(
    private readonly place: RootPlace,
    private readonly parts: ChunkedRootParts,
    height?: number,
    /** By whose turns its chunks are fetched; absent: this program's own. */
    private readonly client?: string,
  ) {
    this.id = place.id
    this.sizeBytes = place.sizeBytes
    this.proven = place.isBound
    if (height !== undefined) this.height = height
  }

  /** Where all of it lies in one chunk that is here. */
  near(start: number, end: number): Uint8Array | undefined {
    return this.parts.chunks.near(this.place, start, end)
  }

  async *stream(
    start: number,
    end: number,
    signal: AbortSignal,
    isKept = false,
  ): AsyncGenerator<Uint8Array | Refusal, undefined> {
    const { client } = this
    const { chunks } = this.parts
    const ahead = new Map<number, Promise<Outcome>>()
    let leave: AbortController | undefined
    const elsewhere = isKept ? chunks.keepingElsewhere(this.place, start, end) : undefined
    try {
      let either = signal
      for (let at = start; at < end; ) {
        let chunk: Outcome | undefined = chunks.find(this.place, at)
        if (chunk === undefined) {
          if (leave === undefined) {
            leave = new AbortController()
            either = AbortSignal.any([signal, leave.signal])
            setMaxListeners(0, either)
          }
          this.#askAhead(ahead, at, end, either)
          chunk = await (ahead.get(at) ?? chunks.take(this.place, at, { client, signal: either }))
        }
        if (isRefusal(chunk)) {
          yield chunk
          return undefined
        }
        elsewhere?.taken(chunk)
        yield chunk.chunk.subarray(at - chunk.start, Math.min(end, chunk.end) - chunk.start)
        at = chunk.end
        for (const start of ahead.keys()) if (start < at) ahead.delete(start)
      }
      return undefined
    } finally {
      leave?.abort()
      elsewhere?.end()
    }
  }

  async close(): Promise<void> {
    // Its chunks are everybody's.
  }

  #askAhead(ahead: Map<number, Promise<Outcome>>, at: number, end: number, signal: AbortSignal): void {
    const { chunks, aheadMax } = this.parts
    for (let guess = at; guess < end && ahead.size < aheadMax; ) {
      if (!ahead.has(guess)) ahead.set(guess, chunks.take(this.place, guess, { client: this.client, signal }))
      guess = usualEnd(guess, this.sizeBytes)
    }
  }
}
