/** A holder that was not run for so long was ended in the middle: its lock is taken over. */
const deadHolderMs = 5000

/**
 * Locks in memory that threads share, for work of a few hundred instructions that cannot throw. `cells`, a power of two of
 * them, are zero at first.
 */
export class Locks {
  readonly #mask: number

  constructor(
    private readonly cells: Int32Array,
    private readonly deadMs = deadHolderMs,
  ) {
    this.#mask = cells.length - 1
  }

  /** Takes the lock that these bits choose, and returns its number. */
  take(bits: number): number {
    const at = bits & this.#mask
    if (Atomics.compareExchange(this.cells, at, 0, 1) !== 0) this.#contend(at)
    return at
  }

  release(at: number): void {
    Atomics.store(this.cells, at, 0)
  }

  /** The holder either runs, for a moment more, or waits for a processor: then let it have this one. */
  #contend(at: number): void {
    for (let spins = 0; spins < 300; spins += 1) {
      if (Atomics.compareExchange(this.cells, at, 0, 1) === 0) return
    }
    for (let waitedMs = 0; waitedMs < this.deadMs; waitedMs += 1) {
      Atomics.wait(this.cells, at, 1, 1)
      if (Atomics.compareExchange(this.cells, at, 0, 1) === 0) return
    }
  }
}
