import { type HeldMemory, MemoryShare } from '../actor/held-memory.js'
import { bufferOf } from '../format/buffer-of.js'
import { Gathered } from '../format/gathered.js'
import { type Refusal, refuse } from '../format/refusal.js'

/** Bytes of all bodies that one thread gathers, beyond what is not counted: a few of the largest ones. */
export const gatheredMaxBytes = 64 * 1024 * 1024

export interface BodyTerms {
  readonly memory: HeldMemory
  /** Whose body it is. */
  readonly client: () => string
  readonly sizeMaxBytes: number
  /** The length that its sender states; undefined: it comes in chunks. */
  readonly announcedBytes: number | undefined
}

/** A body that a handler wants as a whole, while it comes: in one buffer, counted against what all of the thread may hold. */
export class GatheredBody {
  readonly #gathered: Gathered
  readonly #share: MemoryShare

  /** `drop`: the body makes room for others; `leave` is called then. */
  constructor(
    private readonly terms: BodyTerms,
    drop: () => void,
  ) {
    this.#share = new MemoryShare(terms.memory, terms.client, drop)
    this.#gathered = new Gathered(Math.min(terms.announcedBytes ?? terms.sizeMaxBytes, terms.sizeMaxBytes))
  }

  /** Copies a piece. A refusal: `too-large`; `busy` where there is no memory. */
  add(piece: Uint8Array): Refusal | undefined {
    const { sizeMaxBytes } = this.terms
    const gathered = this.#gathered
    if (gathered.sizeBytes + piece.length > sizeMaxBytes)
      return refuse('too-large', 'client', `the body is larger than ${sizeMaxBytes} bytes`)
    if (!this.#share.resize(gathered.roomWith(piece.length))) return noMemory
    gathered.add(piece)
    return undefined
  }

  /** All of it. */
  bytes(): Buffer {
    return bufferOf(this.#gathered.bytes())
  }

  /** Counts no more: it is whole, and its handler's, or given up. */
  leave(): void {
    this.#share.leave()
  }
}

/** There is no memory for the body, or others who hold less need it. */
export const noMemory = refuse('busy', 'self', 'too many large bodies come at the same time: try again')
