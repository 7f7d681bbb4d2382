import { type HeldMemory, MemoryShare } from '../../actor/held-memory.js'
import type { Spool } from './spool.js'

export interface IntakeMemoryTerms {
  readonly memory: HeldMemory
  /** Whose item it is: an address range. */
  readonly client: () => string
  readonly spool: Spool
  /** Others need the memory: moves the spool to the disk (`Spool.spill`), or calls `leave`. */
  readonly move: () => void
}

/** What one item holds of memory while it comes: bytes, which go to the disk where memory is short. */
export class IntakeMemory {
  readonly #bytes: MemoryShare

  constructor(private readonly terms: IntakeMemoryTerms) {
    const { memory, client } = terms
    this.#bytes = new MemoryShare(memory, client, () => this.#move(), true)
  }

  /** Counts what the spool has now. False: there is no room, or `leave` was called. */
  update(): boolean {
    return this.#bytes.resize(this.terms.spool.memoryBytes) || this.#move()
  }

  #move(): boolean {
    this.terms.move()
    return this.#bytes.resize(this.terms.spool.memoryBytes)
  }

  /** From now on it makes no room for others: its bytes are at work. */
  pin(): void {
    this.#bytes.pin()
  }

  /** It holds nothing any more. */
  leave(): void {
    this.#bytes.leave()
  }
}
