import { partiesOf } from '../format/ip.js'
import type { Clock } from './clock.js'

export interface RateWindowOptions {
  readonly windowMs: number
  /** In a window, of one network (`partiesOf`). */
  readonly each: number
  /** In a window, of all together: also half of what the table of networks and providers can grow to. */
  readonly all: number
}

/** The second half of all is for networks that have taken less than this part of what each may have. */
const modestPart = 10

/**
 * Limits how often something may be done in each window of time, for each network and for all together. Networks that take all
 * they may use up half of what all may have; the other half is left for those that want little, and the last quarter for those of
 * other providers: anybody can rent many networks of one.
 */
export class RateWindow {
  readonly #taken = new Map<string, number>()
  #all = 0
  #window = -1

  constructor(
    private readonly options: RateWindowOptions,
    private readonly clock: Clock,
  ) {}

  /** True where the limits allow one more of this address in this window; counts it. */
  take(address: string): boolean {
    const { windowMs, each, all } = this.options
    const window = Math.floor(this.clock.monotonic() / windowMs)
    if (window !== this.#window) {
      this.#window = window
      this.#taken.clear()
      this.#all = 0
    }
    const [provider, network] = partiesOf(address)
    const keys = { network: `n ${network}`, provider: `p ${provider}` }
    const taken = (key: string): number => this.#taken.get(key) ?? 0
    const modest = Math.max(1, Math.floor(each / modestPart))
    if (this.#all >= all || taken(keys.network) >= (this.#all * 2 < all ? each : modest)) return false
    if (this.#all * 4 >= all * 3 && taken(keys.provider) >= modest) return false
    for (const key of Object.values(keys)) this.#taken.set(key, taken(key) + 1)
    this.#all += 1
    return true
  }
}
