/** An offered price, and its end (ms of the monotonic clock). */
interface OfferedPrice {
  readonly units: bigint
  readonly untilMs: number
}

/** Keys that are kept; the one with the oldest offer is dropped first. */
const keysMax = 10_000
/** Prices of one key: they change every few minutes at most. */
const offersMax = 64

/**
 * Offered prices by key. Each is valid until its own end. A later offer does not prolong a lower one, or a client that repeats
 * its request would always pay the lowest price so far.
 */
export class OfferedPrices {
  /** Rising prices, each with a later end than the one before. */
  readonly #offers = new Map<string, readonly OfferedPrice[]>()

  constructor(private readonly now: () => number) {}

  /** Notes an offered price and its time; all offers of one key have the same time. */
  note(key: string, units: bigint, forMs: number): void {
    const untilMs = this.now() + forMs
    // All of one key are good for as long, so that this one ends last.
    const lower = this.#good(key).filter((one) => one.units < units)
    this.#offers.delete(key)
    // The youngest last.
    this.#offers.set(key, [...lower, { units, untilMs }].slice(-offersMax))
    const [oldest] = this.#offers.keys()
    if (this.#offers.size > keysMax && oldest !== undefined) this.#offers.delete(oldest)
  }

  /** The lowest price that is still good; undefined: none is. */
  least(key: string): bigint | undefined {
    // They rise.
    return this.#good(key)[0]?.units
  }

  #good(key: string): readonly OfferedPrice[] {
    const now = this.now()
    return (this.#offers.get(key) ?? []).filter(({ untilMs }) => untilMs > now)
  }
}
