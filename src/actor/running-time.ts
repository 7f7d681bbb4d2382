import type { Clock, Timer } from './clock.js'

/**
 * A clock of which time goes on only while its thread runs: whoever judges others by it does not take the time for theirs in which
 * nothing could be read of them (a busy machine, a process that was stopped). It has to be asked at least each half `stepMaxMs`:
 * what passes between two questions counts as `stepMaxMs` at most.
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
