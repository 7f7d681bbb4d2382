import type { Clock, Timer } from './clock.js'

/**
 * A clock that advances only while its thread runs, so that clients do not pay for time in which nothing was read from them (a
 * busy machine, a stopped process). The time between two calls counts as `stepMaxMs` at most, so call it twice as often.
 */
export class RunningTime implements Clock {
  #atMs: number
  #lostMs = 0

  constructor(
    private readonly clock: Clock,
    private readonly stepMaxMs: number,
  ) {
    this.#atMs = clock.monotonic()
  }

  /** Milliseconds; only differences have a meaning. */
  monotonic(): number {
    const now = this.clock.monotonic()
    this.#lostMs += Math.max(0, now - this.#atMs - this.stepMaxMs)
    this.#atMs = now
    return now - this.#lostMs
  }

  /** The time of day, with all that was lost. */
  now(): number {
    return this.clock.now()
  }

  after(ms: number, act: () => void): Timer {
    return this.clock.after(ms, act)
  }

  every(ms: number, act: () => void): Timer {
    return this.clock.every(ms, act)
  }
}
