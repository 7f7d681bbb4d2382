/** A price that somebody was told, and until when it is good (ms of the monotonic clock). */
interface Told {
  readonly units: bigint
  readonly untilMs: number
}

/** Keys that are remembered; the one that was told longest ago goes first. */
const keysMax = 10_000
/** Prices of one key: they change every few minutes at most. */
const toldMax = 64

/**
 * Prices that were told by a key. Each is good until its own end: to be told a higher price later makes a lower one last no
 * longer, or whoever asks again and again would pay the lowest price that there ever was.
 */
export class OfferedPrices {
  /** Rising prices, each with a later end than the one before. */
  readonly #told = new Map<string, readonly Told[]>()

  constructor(private readonly now: () => number) {}

  /** A price is told, and is good for so long: of one key always the same time. */
  tell(key: string, units: bigint, forMs: number): void {
    const untilMs = this.now() + forMs
    // All of one key are good for as long, so that this one ends last.
    const lower = this.#good(key).filter((one) => one.units < units)
    this.#told.delete(key)
    // The youngest last.
    this.#told.set(key, [...lower, { units, untilMs }].slice(-toldMax))
    const [oldest] = this.#told.keys()
    if (this.#told.size > keysMax && oldest !== undefined) this.#told.delete(oldest)
  }

  /** The lowest price that is still good; undefined: none is. */
  least(key: string): bigint | undefined {
    // They rise.
    return this.#good(key)[0]?.units
  }

  #good(key: string): readonly Told[] {
    const now = this.now()
    return (this.#told.get(key) ?? []).filter(({ untilMs }) => untilMs > now)
  }
}
