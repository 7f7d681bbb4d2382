import { type Parties, partiesOf } from '../format/ip.js'
import type { Full } from './fair-line.js'
import { type Fullness, HoldingRule } from './holding-rule.js'
import { countHeld, heldBy } from './party-counts.js'

/** Gives a place back; calling it again does nothing. */
export type ReleaseShare = () => void

/**
 * Places for clients, named by their addresses, as many of each as `HoldingRule` gives. Nobody waits for one. A client without a
 * name is this program itself, which may hold all, as in `FairSlots`.
 */
export class FreeShares {
  readonly #clients = new Map<string, number>()
  readonly #networks = new Map<string, number>()
  readonly #providers = new Map<string, number>()
  readonly #rule: HoldingRule
  #taken = 0

  /** `eachMax`: places of one client at most, where that is less than half. */
  constructor(
    private readonly max: number,
    private readonly eachMax: number = max,
  ) {
    this.#rule = new HoldingRule(max, max / 2)
  }

  /** `max` places, of which one client may have a quarter: for requests of which one client needs few at a time. */
  static quarters(max: number): FreeShares {
    return new FreeShares(max, Math.max(1, max >> 2))
  }

  /**
   * A place, to be given back; or why there is none: all are taken, or the client, its network or its provider has its share.
   * `parties`: those of the client, for whoever has them already.
   */
  take(client: string, parties: Parties = partiesOf(client)): ReleaseShare | Full {
    const full = this.fullness(client, parties)
    if (full === undefined) return this.force(client, parties)
    return full === 'all' ? 'all' : 'client'
  }

  /** Whose share is used up, so that there is no place for one more of this client; undefined: there is one. */
  fullness(client: string, [provider, network]: Parties = partiesOf(client)): Fullness | undefined {
    const own = heldBy(this.#clients, client)
    if (own >= this.eachMax) return 'client'
    const isAll = this.#taken >= this.max
    if (client === '') return isAll ? 'all' : undefined
    const isFull = (level: Exclude<Fullness, 'all'>, places: number): boolean =>
      this.#rule.isFull(level, places, this.#taken)
    if (isFull('client', own)) return 'client'
    if (isFull('network', heldBy(this.#networks, network))) return 'network'
    if (isFull('provider', heldBy(this.#providers, provider))) return 'provider'
    return isAll ? 'all' : undefined
  }

  /** A place, though there may be none: for one that takes over another's. */
  force(client: string, [provider, network]: Parties = partiesOf(client)): ReleaseShare {
    const add = (change: 1 | -1): void => {
      this.#taken += change
      countHeld(this.#clients, client, change)
      countHeld(this.#networks, network, change)
      countHeld(this.#providers, provider, change)
    }
    add(1)
    let isHeld = true
    return () => {
      if (isHeld) add(-1)
      isHeld = false
    }
  }
}
