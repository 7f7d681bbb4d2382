import { randomBytes } from 'node:crypto'

/**
 * The same holding for so long: its thread was ended in the middle. One that is only slow needs less than a microsecond of a
 * processor, and gets that much sooner; where it does not after all, one bucket is counted wrong once.
 */
const deadHolderMs = 250

/** Tries before a waiter gives its processor away: a holder that runs is done long before. */
const spinsMax = 300

/** Between two tries after that: what a holder needs to be run again, and no more, for whoever waits serves others too. */
const stepMs = 0.1

/**
 * Locks in memory that threads share, for work of a few hundred instructions that cannot throw. `cells`, a power of two of
 * them, are zero at first. A cell that is held has the number of its holding, each time another one: so of several who wait for a
 * dead holder only the first takes its lock over, and a holder that was slow does not free what is another's by now. A thread
 * holds one lock at a time.
 */
export class Locks {
  readonly #mask: number
  /** Two threads hold under the same number once in billions of times, and it matters only at the same cell at once. */
  #holding = randomBytes(4).readInt32LE(0)

  constructor(
    private readonly cells: Int32Array,
    private readonly deadMs = deadHolderMs,
  ) {
    this.#mask = cells.length - 1
  }

  /** Takes the lock that these bits choose, and returns its number. */
  take(bits: number): number {
    const at = bits & this.#mask
    this.#holding = (this.#holding + 1) | 0 || 1
    if (Atomics.compareExchange(this.cells, at, 0, this.#holding) !== 0) this.#contend(at)
    return at
  }

  /** Frees what the last `take` took. */
  release(at: number): void {
    Atomics.compareExchange(this.cells, at, this.#holding, 0)
  }

  /** The holder either runs, for a moment more, or waits for a processor: then let it have this one. */
  #contend(at: number): void {
    for (let spins = 0; spins < spinsMax; spins += 1) {
      if (Atomics.compareExchange(this.cells, at, 0, this.#holding) === 0) return
    }
    let seen = 0
    for (let waits = 0; ; waits += 1) {
      const before = Atomics.compareExchange(this.cells, at, 0, this.#holding)
      if (before === 0) return
      if (before !== seen) {
        seen = before
        waits = 0
      } else if (waits * stepMs >= this.deadMs) {
        if (Atomics.compareExchange(this.cells, at, seen, this.#holding) === seen) return
      }
      Atomics.wait(this.cells, at, before, stepMs)
    }
  }
}
