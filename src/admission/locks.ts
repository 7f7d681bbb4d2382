import { randomBytes } from 'node:crypto'

/**
 * A lock that is held for so long was left by a thread that was terminated. A slow holder needs less than a
 * microsecond of a processor and gets it much sooner. If it does not, one bucket is counted wrongly once.
 */
const deadHolderMs = 250

/** Attempts before a waiter sleeps: a holder that is running is done long before. */
const spinsMax = 300

/**
 * Between two tries after that: long enough for the holder to be scheduled again, and short, because the waiting
 * thread has other requests to serve.
 */
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

  /** The holder is either running and done soon, or waits for a processor: then sleeping gives it this one. */
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
