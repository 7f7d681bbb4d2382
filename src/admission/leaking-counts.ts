import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'

export interface LeakOptions {
  /** Subtracted from every count each second. */
  readonly leakPerSecond: number
  /** No count grows beyond it. */
  readonly max: number
}

/** Names remembered, about 150 bytes each; the one counted first is forgotten first. */
const namesMax = 4096

interface Count {
  value: number
  atMs: number
}

/** Leaky buckets by name (of clients), in bounded memory: counts that shrink at a fixed rate. */
export class LeakingCounts {
  readonly #counts = new BoundedMap<string, Count>(namesMax)

  constructor(
    private readonly clock: Clock,
    private readonly options: LeakOptions,
  ) {}

  /** One more. What the count is now, this one included: 1 or more. */
  add(name: string): number {
    const now = this.clock.monotonic()
    const known = this.#counts.get(name)
    if (known === undefined) {
      this.#counts.set(name, { value: 1, atMs: now })
      return 1
    }
    known.value = Math.min(this.options.max, this.#left(known, now) + 1)
    known.atMs = now
    return known.value
  }

  /** One less: it was counted in vain. */
  less(name: string): void {
    const known = this.#counts.get(name)
    if (known === undefined) return
    const now = this.clock.monotonic()
    known.value = Math.max(0, this.#left(known, now) - 1)
    known.atMs = now
  }

  /** What the count is now. */
  of(name: string): number {
    const known = this.#counts.get(name)
    return known === undefined ? 0 : this.#left(known, this.clock.monotonic())
  }

  #left({ value, atMs }: Count, now: number): number {
    return Math.max(0, value - ((now - atMs) * this.options.leakPerSecond) / 1000)
  }
}
