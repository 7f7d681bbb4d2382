import type { Clock } from './clock.js'

export interface RateWindowOptions {
  readonly windowMs: number
  /** In a window, of one source. */
  readonly each: number
  /** In a window, of all together: also what the table of sources can grow to. */
  readonly all: number
}

/** The second half of all is for sources that have taken less than this part of what each may have. */
const modestPart = 10

/**
 * Limits how often something may be done in each window of time, for each source and for all sources together. Sources that take
 * all they may use up half of what all may have; the other half is left for those who want little.
 */
export class RateWindow {
  readonly #taken = new Map<string, number>()
  #all = 0
  #window = -1

  constructor(
    private readonly options: RateWindowOptions,
    private readonly clock: Clock,
  ) {}

  /** True where the limits allow one more in this window; counts it. */
  take(who: string): boolean {
    const { windowMs, each, all } = this.options
    const window = Math.floor(this.clock.monotonic() / windowMs)
    if (window !== this.#window) {
      this.#window = window
      this.#taken.clear()
      this.#all = 0
    }
    const taken = this.#taken.get(who) ?? 0
    const most = this.#all * 2 < all ? each : Math.max(1, Math.floor(each / modestPart))
    if (taken >= most || this.#all >= all) return false
    this.#taken.set(who, taken + 1)
    this.#all += 1
    return true
  }
}
