import type { Clock, Timer } from '../actor/clock.js'

/** A transfer that waits for its client. */
export interface Watched {
  /** Monotonic milliseconds of the last byte that moved; kept by `Stalls`. */
  lastProgress: number
  /** Nothing moved for `stallMs`. Called once, after the watch has ended. */
  stalled(): void
  /** Ends the transfer, because another call threw. Never throws. */
  fail(error: unknown): void
  /** Called about once a second while it waits, with monotonic milliseconds. */
  keepAlive(nowMs: number): void
}

/**
 * How often waits are checked where `stallMs` is long. What is sent to a stalled client is read again at each check: so
 * content that is blocked meanwhile is broken off within this time.
 */
const lookEachMs = 1000

/** One coarse timer for all waits of a thread: a wait that ends soon costs two set operations, and no timer of its own. */
export class Stalls {
  readonly stallMs: number
  readonly #clock: Clock
  readonly #waiting = new Set<Watched>()
  readonly #timer: Timer

  constructor(stallMs: number, clock: Clock) {
    this.stallMs = stallMs
    this.#clock = clock
    // Judged one turn after the sockets were read, because this thread may not have run for a while.
    const look = (): unknown => setImmediate(() => setImmediate(() => this.#look()))
    this.#timer = clock.every(Math.max(10, Math.min(lookEachMs, stallMs / 4)), look)
  }

  /** Milliseconds of the clock by which waits are judged. */
  now(): number {
    return this.#clock.monotonic()
  }

  watch(watched: Watched): void {
    watched.lastProgress = this.#clock.monotonic()
    this.#waiting.add(watched)
  }

  moved(watched: Watched): void {
    watched.lastProgress = this.#clock.monotonic()
  }

  forget(watched: Watched): void {
    this.#waiting.delete(watched)
  }

  #look(): void {
    const now = this.#clock.monotonic()
    for (const watched of this.#waiting) {
      if (now - watched.lastProgress < this.stallMs) {
        attempt(watched, () => watched.keepAlive(now))
        continue
      }
      this.#waiting.delete(watched)
      attempt(watched, () => watched.stalled())
    }
  }

  close(): void {
    this.#timer.cancel()
    this.#waiting.clear()
  }
}

/** An exception ends only the one who waits: a timer has no caller that would catch it. */
export function attempt(watched: Pick<Watched, 'fail'>, act: () => void): void {
  try {
    act()
  } catch (error) {
    watched.fail(error)
  }
}
