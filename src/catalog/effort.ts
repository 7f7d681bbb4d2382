/** The clocks are read once in so many steps (some 50 us). */
const stepsPerLook = 16

/** Counts milliseconds; only differences mean something. */
export interface Stopwatch {
  monotonic(): number
}

/**
 * What one request may still do: steps (look-ups of 2 to 10 us each), and time by a stopwatch, best one that counts the
 * processor time of this thread. Everything that is read is charged; nothing is refused in the middle of a look-up. Whoever
 * reads on and on asks `spent` between two look-ups, and stops at a place that it can name.
 */
export class Effort {
  #steps = 0
  #look = stepsPerLook
  #usedMs = 0
  /** Where the stopwatch stood when the work went on; undefined while it rests. */
  #since: number | undefined
  #isOver = false

  /** `isOver` is called now and then: true ends the effort, for a reason of the caller's. */
  constructor(
    private readonly stepsMax: number,
    private readonly timeMs: number,
    private readonly watch: Stopwatch,
    private readonly isOver: () => boolean = () => false,
  ) {
    this.#since = watch.monotonic()
  }

  /** Says that so many steps were taken, or are about to be. */
  charge(steps = 1): void {
    this.#steps += steps
    if (this.#steps < this.#look || this.#isOver) return
    this.#look = this.#steps + stepsPerLook
    this.#isOver = this.#steps > this.stepsMax || this.usedMs > this.timeMs || this.isOver()
  }

  /** True once steps or time are used up. It stays so. */
  get spent(): boolean {
    this.#isOver ||= this.#steps >= this.stepsMax
    return this.#isOver
  }

  /** Steps charged so far. */
  get steps(): number {
    return this.#steps
  }

  /** Time used so far, without that in which it rested. */
  get usedMs(): number {
    return this.#usedMs + (this.#since === undefined ? 0 : this.watch.monotonic() - this.#since)
  }

  /** The thread does something else from here on. */
  rest(): void {
    this.#usedMs = this.usedMs
    this.#since = undefined
  }

  /** The thread works on it again. A new effort begins like this. */
  resume(): void {
    this.#since ??= this.watch.monotonic()
  }
}
