import type { Clock, Timer } from '../actor/clock.js'
import { Ticks } from './residence.js'

/** Rounds without a use after which all ticks for which a belief lasts come at once: an idle thread wakes up less often. */
const unusedRounds = 32

/** Counts ticks: one by one while there are uses, and else together. */
export class TickPace {
  #timer: Timer
  #isSlow = false
  #isUsed = false
  #unused = 0

  /** `act` runs each `tickMs`, after one tick, or less often, after all that come together. */
  constructor(
    private readonly ticks: Ticks,
    private readonly tickMs: number,
    private readonly clock: Clock,
    private readonly act: (passedTicks: number) => void,
  ) {
    this.#timer = this.#started()
  }

  /** To be called with each use. */
  used(): void {
    this.#isUsed = true
    if (this.#isSlow) this.#change(false)
  }

  cancel(): void {
    this.#timer.cancel()
  }

  #turn(): void {
    const ticks = this.#isSlow ? Ticks.lasting : 1
    for (let tick = 0; tick < ticks; tick += 1) this.ticks.next()
    this.act(ticks)
    this.#unused = this.#isUsed ? 0 : this.#unused + 1
    this.#isUsed = false
    if (!this.#isSlow && this.#unused >= unusedRounds) this.#change(true)
  }

  #change(isSlow: boolean): void {
    this.#isSlow = isSlow
    this.#unused = 0
    this.#timer.cancel()
    this.#timer = this.#started()
  }

  #started(): Timer {
    return this.clock.every((this.#isSlow ? Ticks.lasting : 1) * this.tickMs, () => this.#turn())
  }
}
