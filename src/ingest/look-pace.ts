import type { Clock } from '../actor/clock.js'

export interface LookPaceOptions {
  /** Looks in a second while they find something, and while they find nothing. */
  readonly perSecond: number
  readonly leastPerSecond: number
  /** Looks that begin together: what wakes this program up once serves all of them. */
  readonly together: number
}

/** Share of the youngest look in what is expected of the next: the last thirty or so count. */
const youngest = 1 / 32

/** One look of so many that finds something is worth the full rate. */
const worthwhile = 4

/**
 * How many looks may be begun that are guesses, by what the last ones found. An id that nobody named as a transaction mostly is
 * none, and then each look at it is a request in vain; where many of them are, all are found at the full rate.
 */
export class LookPace {
  #left: number
  #atMs: number
  /** The part of looks that find something, as expected now. */
  #found = 1

  constructor(
    private readonly options: LookPaceOptions,
    private readonly clock: Clock,
  ) {
    this.#left = options.together
    this.#atMs = clock.monotonic()
  }

  /** Looks in a second by what is expected now. */
  get perSecond(): number {
    const { perSecond, leastPerSecond } = this.options
    const least = Math.min(leastPerSecond, perSecond)
    return least + (perSecond - least) * Math.min(1, this.#found * worthwhile)
  }

  /** Milliseconds until the next looks may be begun; 0: now. */
  get waitMs(): number {
    this.#refill()
    // Thousandths of a look are what rounding leaves.
    const missing = this.options.together - this.#left
    return missing <= 1e-3 ? 0 : Math.ceil((missing / this.perSecond) * 1000)
  }

  /** So many looks begin. */
  begin(looks: number): void {
    this.#refill()
    this.#left -= looks
  }

  /** So many looks were answered, and found so much. */
  learn(looks: number, found: number): void {
    this.#refill()
    for (let at = 0; at < looks; at += 1) this.#found += ((at < found ? 1 : 0) - this.#found) * youngest
  }

  #refill(): void {
    const now = this.clock.monotonic()
    this.#left = Math.min(this.options.together, this.#left + ((now - this.#atMs) / 1000) * this.perSecond)
    this.#atMs = now
  }
}
