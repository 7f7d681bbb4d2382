/** The clocks are read once in so many steps (some 50 us). */
const stepsPerLook = 16

/** Counts milliseconds; only differences mean something. */
export interface Stopwatch {
  monotonic(): number
}

/** Twice the time of an effort is used up, at a place where nothing can be given that is right. */
export class OutOfEffort extends Error {
  override readonly name = 'OutOfEffort'
}

/**
 * What one request may still do: steps (look-ups of 2 to 10 us each), and time by a stopwatch, best one that counts the
 * processor time of this thread. Everything that is read is charged; nothing is refused in the middle of a look-up. Whoever
 * reads on and on asks `spent` between two look-ups, and stops at a place that it can name. What has no such place goes on to at
 * most twice the time (`lookUp`, `goOn`).
 */
export class Effort {
  #steps = 0
  #look = stepsPerLook
  #usedMs = 0
  /** Where the stopwatch stood when the work went on; undefined while it rests. */
  #since: number | undefined
  #isSpent = false

  constructor(
    private readonly stepsMax: number,
    private readonly timeMs: number,
    private readonly watch: Stopwatch,
  ) {
    this.#since = watch.monotonic()
  }

  /** Says that so many steps were taken, or are about to be. */
  charge(steps = 1): void {
    this.#steps += steps
    if (this.#steps < this.#look || this.#isSpent) return
    this.#look = this.#steps + stepsPerLook
    this.#isSpent = this.#steps > this.stepsMax || this.hasUsed(1)
  }

  /** Charges look-ups of something that cannot stop at a place, as of the values of a selection. Throws as `goOn` does. */
  lookUp(steps = 1): void {
    this.charge(steps)
    if (!this.#isSpent || this.#steps < this.#look) return
    this.#look = this.#steps + stepsPerLook
    this.goOn()
  }

  /** Throws an OutOfEffort where twice the time was used. */
  goOn(): void {
    if (this.hasUsed(2)) throw new OutOfEffort('twice the time was used')
  }

  /** Whether so many times the time was used. */
  protected hasUsed(times: number): boolean {
    return this.usedMs > times * this.timeMs || this.isOver(times)
  }

  /** Called now and then: whether it ends for another reason, or so many times what is allowed of something else was used. */
  protected isOver(_times: number): boolean {
    return false
  }

  /** True once steps or time are used up. It stays so. */
  get spent(): boolean {
    this.#isSpent ||= this.#steps >= this.stepsMax
    return this.#isSpent
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

/** An effort that is never spent, of work that nobody waits for. */
export function endlessEffort(): Effort {
  return new Effort(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, { monotonic: () => 0 })
}
