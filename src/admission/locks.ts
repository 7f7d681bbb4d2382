import { isAlive, ownHolder } from './lock-holder.js'

/** Attempts before a waiter sleeps: a holder that is running is done long before. */
const spinsMax = 300

/**
 * Between two tries after that: long enough for the holder to be scheduled again, and short, because the waiting
 * thread has other requests to serve.
 */
const stepMs = 0.1

/** After so many tries a waiter looks whether the holder was terminated; it costs a read of /proc. */
const triesMax = 250

/**
 * Locks in memory that threads share, for work of a few hundred instructions that cannot throw. `cells`, a power of two of
 * them, are zero at first. A cell that is held has the number of its holder (lock-holder.ts). A lock is taken over only from a
 * thread that has ended. A thread without a processor, or stopped, keeps its lock, because it may write when it runs again. A
 * thread holds one lock at a time. native/server/buckets.h takes the same locks.
 */
export class Locks {
  readonly #mask: number

  /** `holder`: of the thread that uses this object. */
  constructor(
    private readonly cells: Int32Array,
    private readonly holder = ownHolder(),
  ) {
    this.#mask = cells.length - 1
  }

  /** Takes the lock that these bits choose, and returns its number. */
  take(bits: number): number {
    const at = bits & this.#mask
    if (Atomics.compareExchange(this.cells, at, 0, this.holder) !== 0) this.#contend(at)
    return at
  }

  /** Frees what the last `take` took. */
  release(at: number): void {
    Atomics.store(this.cells, at, 0)
  }

  /** The holder is either running and done soon, or waits for a processor: then sleeping gives it this one. */
  #contend(at: number): void {
    for (let spins = 0; spins < spinsMax; spins += 1) {
      if (Atomics.compareExchange(this.cells, at, 0, this.holder) === 0) return
    }
    for (let tries = 1; ; tries += 1) {
      const before = Atomics.compareExchange(this.cells, at, 0, this.holder)
      if (before === 0) return
      const isLeft = tries % triesMax === 0 && !isAlive(before)
      if (isLeft && Atomics.compareExchange(this.cells, at, before, this.holder) === before) return
      Atomics.wait(this.cells, at, before, stepMs)
    }
  }
}
