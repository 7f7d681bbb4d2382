import type { Clock } from '../actor/clock.js'
import { addressBytes } from './compact-peers.js'

export interface TurnsOptions {
  readonly windowMs: number
  /** In a window, of one source. */
  readonly each: number
  /** In a window, of all together: also what the table of sources can grow to. */
  readonly all: number
}

/** Who an address belongs to as far as limits go: of IPv6 its /64, which one machine may have all of. */
export function sourceOf(address: string): string {
  const bytes = addressBytes(address)
  if (bytes === undefined) return address
  return bytes.length === 16 ? bytes.toString('hex', 0, 8) : bytes.join('.')
}

/** So many turns in each stretch of time, for each who asks and for all of them. */
export class Turns {
  readonly #taken = new Map<string, number>()
  #all = 0
  #window = -1

  constructor(
    private readonly options: TurnsOptions,
    private readonly clock: Clock,
  ) {}

  /** Whether there is a turn left; takes it. */
  take(who: string): boolean {
    const { windowMs, each, all } = this.options
    const window = Math.floor(this.clock.monotonic() / windowMs)
    if (window !== this.#window) {
      this.#window = window
      this.#taken.clear()
      this.#all = 0
    }
    const taken = this.#taken.get(who) ?? 0
    if (taken >= each || this.#all >= all) return false
    this.#taken.set(who, taken + 1)
    this.#all += 1
    return true
  }
}
