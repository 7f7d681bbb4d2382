import { type HeldMemory, MemoryShare } from '../../actor/held-memory.js'
import type { Spool } from './spool.js'

export interface IntakeMemoryTerms {
  readonly memory: HeldMemory
  /** Whose item it is: an address range. */
  readonly client: () => string
  readonly spool: Spool
  /** Others need the memory: moves the spool to the disk (`Spool.spill`), or calls `leave`. */
  readonly move: () => void
  /** Others need the memory of what was read of a bundle, which cannot move: ends the item, and calls `leave`. */
  readonly drop: () => void
}

/** What one item holds of memory while it comes: bytes, which go to the disk where memory is short, and tables of bundles. */
export class IntakeMemory {
  readonly #bytes: MemoryShare
  readonly #tables: MemoryShare

  constructor(private readonly terms: IntakeMemoryTerms) {
    const { memory, client, drop } = terms
    this.#bytes = new MemoryShare(memory, client, () => this.#move(), true)
    this.#tables = new MemoryShare(memory, client, drop)
  }

  /** Counts what the spool has now, and so many bytes of tables. False: there is no room, or `leave` was called. */
  hold(tableBytes: number): boolean {
    const isHeld = this.#bytes.hold(this.terms.spool.memoryBytes) || this.#move()
    return isHeld && this.#tables.hold(tableBytes)
  }

  #move(): boolean {
    this.terms.move()
    return this.#bytes.hold(this.terms.spool.memoryBytes)
  }

  /** From now on it makes no room for others: its bytes are at work. */
  settle(): void {
    this.#bytes.settle()
    this.#tables.settle()
  }

  /** It holds nothing any more. */
  leave(): void {
    this.#bytes.leave()
    this.#tables.leave()
  }
}
