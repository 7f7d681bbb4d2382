import type { Clock, Timer } from '../actor/clock.js'

/** Something that waits for its client. */
export interface Watched {
  /** Monotonic milliseconds of the last byte that moved; kept by `Stalls`. */
  lastProgress: number
  /** Nothing moved for `stallMs`. Called once, after the watch has ended. */
  stalled(): void
  /** Ends the wait and what it is for, because another call threw. Never throws. */
  fail(error: unknown): void
  /** Called about once a second of a wait, with monotonic milliseconds. */
  keepAlive(nowMs: number): void
}

/**
 * How often a wait is looked at where `stallMs` is long. What is being sent to a client that takes nothing is read again then: so
 * content that was blocked meanwhile is broken off within this time.
 */
const lookEachMs = 1000

/** One coarse timer for every wait of a thread, instead of one each: a wait that ends soon costs two set operations. */
export class Stalls {
  readonly stallMs: number
  readonly #clock: Clock
  readonly #waiting = new Set<Watched>()
  readonly #timer: Timer

  constructor(stallMs: number, clock: Clock) {
    this.stallMs = stallMs
    this.#clock = clock
    this.#timer = clock.every(Math.max(10, Math.min(lookEachMs, stallMs / 4)), () => this.#look())
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

/** What one waiter meets is its own end, and nobody else's: a timer has no one above it to catch anything. */
export function attempt(watched: Pick<Watched, 'fail'>, act: () => void): void {
  try {
    act()
  } catch (error) {
    watched.fail(error)
  }
}
