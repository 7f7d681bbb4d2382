import type { Clock, Timer } from '../actor/clock.js'

/** Something that waits for its client. */
export interface Watched {
  /** Monotonic milliseconds of the last byte that moved; kept by `Stalls`. */
  lastProgress: number
  /** Nothing moved for `stallMs`. Called once, after the watch has ended. */
  stalled(): void
  /** Called each few seconds of a wait, with monotonic milliseconds. */
  keepAlive(nowMs: number): void
}

/** How often a wait is looked at where `stallMs` is long. */
const lookEachMs = 4000

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
        watched.keepAlive(now)
        continue
      }
      this.#waiting.delete(watched)
      watched.stalled()
    }
  }

  close(): void {
    this.#timer.cancel()
    this.#waiting.clear()
  }
}
