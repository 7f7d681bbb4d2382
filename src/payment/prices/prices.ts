import { type Clock, elapsing } from '../../actor/clock.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { Oracle } from './oracle.js'
import { wincOfMicroUsd } from './rates.js'

/** The size whose price is requested from the network: large, so that rounding does not matter. */
export const pricedBytes = 10 * 2 ** 30

/** Asks the network what so many bytes cost, in winston. */
export type NetworkPrice = (bytes: number) => Promise<bigint | Refusal>

export interface PriceOptions {
  /** Charged for each item besides its bytes: millionths of USD. */
  readonly itemMicroUsd: number
  /** An answer of the network counts for so long. */
  readonly keptMs: number
}

/** What bytes cost in winc: a share of the network's price for 10 GiB, rounded up, and an amount for each item. */
export class Prices {
  #known: { readonly winston: bigint; readonly ageMs: () => number } | undefined
  #asking: Promise<bigint | Refusal> | undefined

  constructor(
    private readonly network: NetworkPrice,
    private readonly oracle: Oracle,
    private readonly clock: Clock,
    private readonly options: PriceOptions,
  ) {}

  /** The price of one item of so many bytes. Refusals: `upstream`. */
  async ofItem(bytes: number): Promise<bigint | Refusal> {
    const winston = await this.#winston()
    if (isRefusal(winston)) return winston
    const rates = await this.oracle.rates()
    if (isRefusal(rates)) return rates
    const whole = BigInt(pricedBytes)
    const share = (winston * BigInt(bytes) + whole - 1n) / whole
    return share + wincOfMicroUsd(BigInt(this.options.itemMicroUsd), rates)
  }

  async #winston(): Promise<bigint | Refusal> {
    const known = this.#known
    const age = known === undefined ? Number.POSITIVE_INFINITY : known.ageMs()
    if (known !== undefined && age < this.options.keptMs) return known.winston
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    const fetched = await this.#asking
    // An old price is better than none for a while: it changes by some percent a day.
    if (isRefusal(fetched) && known !== undefined && age < this.options.keptMs * 8) return known.winston
    return fetched
  }

  async #ask(): Promise<bigint | Refusal> {
    const winston = await this.network(pricedBytes)
    if (isRefusal(winston)) return winston
    if (winston < 1n) return refuse('upstream', 'upstream', 'the nodes say that 10 GiB cost nothing')
    this.#known = { winston, ageMs: elapsing(this.clock) }
    return winston
  }
}
