import type { HeldMemory, MemoryHolder } from '../actor/held-memory.js'
import { Gathered } from '../format/gathered.js'
import { type Refusal, refuse } from '../format/refusal.js'

/** Of all bodies that one thread is gathering, beyond what is not counted: a few of the largest ones. */
export const gatheredMaxBytes = 64 * 1024 * 1024
/** So much of each body is not counted: there are no more of them than requests under way. */
const uncountedBytes = 16 * 1024

export interface BodyTerms {
  readonly memory: HeldMemory
  /** Whose body it is. */
  readonly client: () => string
  readonly sizeMaxBytes: number
  /** By its sender's word; undefined: it comes in chunks. */
  readonly announcedBytes: number | undefined
}

/** A body that a handler wants as a whole, while it comes: in one buffer, counted against what all of the thread may hold. */
export class GatheredBody {
  readonly #gathered: Gathered
  #holder: MemoryHolder | undefined

  /** `drop`: the body makes room for others; `leave` is called then. */
  constructor(
    private readonly terms: BodyTerms,
    private readonly drop: () => void,
  ) {
    this.#gathered = new Gathered(Math.min(terms.announcedBytes ?? terms.sizeMaxBytes, terms.sizeMaxBytes))
  }

  /** Copies a piece. A refusal: `too-large`; `busy` where there is no memory. */
  add(piece: Uint8Array): Refusal | undefined {
    const { memory, client, sizeMaxBytes } = this.terms
    const gathered = this.#gathered
    if (gathered.sizeBytes + piece.length > sizeMaxBytes)
      return refuse('too-large', 'client', `the body is larger than ${sizeMaxBytes} bytes`)
    const roomBytes = gathered.roomWith(piece.length)
    if (roomBytes > uncountedBytes && roomBytes > gathered.roomBytes) {
      this.#holder ??= memory.enter(client(), this.drop)
      if (!memory.grow(this.#holder, roomBytes - this.#holder.weight)) return noMemory
    }
    gathered.add(piece)
    return undefined
  }

  /** All of it. */
  bytes(): Buffer {
    const bytes = this.#gathered.bytes()
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** Counts no more: it is whole, and its handler's, or given up. */
  leave(): void {
    if (this.#holder !== undefined) this.terms.memory.leave(this.#holder)
  }
}

/** There is no memory for the body, or others who hold less need it. */
export const noMemory = refuse('busy', 'self', 'too many large bodies come at the same time: try again')
