import type { Clock } from './clock.js'

/** A clock that ran as evenly as the monotonic one for so long is believed: a wrong one is set right soon after a start. */
const agreedMs = 10 * 60_000
/** Clocks that were set differ by more than this from one look to the next. */
const setMs = 5000

/**
 * The time of day for what cannot be undone. A clock may be hours ahead when a machine starts, and set right seconds later; one
 * of two machines that share a store may be ahead for long. What is over is refused by the plain clock at once. It is ended,
 * removed or given back only when this time has come, which is never later than the plain clock.
 */
export class ConfirmedTime {
  /** The other clock less the monotonic one. */
  #otherAheadMs: number | undefined
  /** The time of day less the monotonic clock, at the last look. */
  #aheadMs = Number.NaN
  #evenSinceMs = 0
  /** The same where it was believed last. */
  #confirmedAheadMs: number | undefined

  /** `other`: the time by the clock of the store that several machines share. */
  constructor(
    private readonly clock: Pick<Clock, 'now' | 'monotonic'>,
    private readonly other?: () => Promise<number>,
  ) {
    this.now()
  }

  /** Reads the other clock; called now and then. Rejects where it cannot be read: the last reading counts on. */
  async refresh(): Promise<void> {
    if (this.other === undefined) return
    // From before the question: a thread that is held up meanwhile would put the other clock behind this one, and what is over
    // by this one would not end for as long.
    const beganMs = this.clock.monotonic()
    const otherMs = await this.other()
    this.#otherAheadMs = otherMs - beganMs
    this.now()
  }

  #earliest(): number {
    const { clock } = this
    return Math.min(clock.now(), clock.monotonic() + (this.#otherAheadMs ?? Number.POSITIVE_INFINITY))
  }

  /**
   * Whole milliseconds since 1970; negative infinity while no time is confirmed. While a clock that was set is watched, it goes
   * on by the monotonic clock. `sinceMs`: for the end of what began at that time of day.
   */
  now(sinceMs = Number.NEGATIVE_INFINITY): number {
    const [nowMs, monotonicMs] = [this.#earliest(), this.clock.monotonic()]
    const aheadMs = nowMs - monotonicMs
    if (!(Math.abs(aheadMs - this.#aheadMs) <= setMs)) this.#evenSinceMs = monotonicMs
    this.#aheadMs = aheadMs
    const isRead = this.other === undefined || this.#otherAheadMs !== undefined
    if (isRead && monotonicMs - this.#evenSinceMs >= agreedMs) this.#confirmedAheadMs = aheadMs
    // An error of the clock has no part in how long ago something was that began while it ran evenly.
    if (isRead && sinceMs >= this.#evenSinceMs + aheadMs) return Math.floor(nowMs)
    if (this.#confirmedAheadMs === undefined) return Number.NEGATIVE_INFINITY
    return Math.floor(Math.min(nowMs, monotonicMs + this.#confirmedAheadMs))
  }
}
