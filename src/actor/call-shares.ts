import { partiesOf } from '../format/ip.js'
import type { Clock } from './clock.js'
import { countHeld, heldBy } from './party-counts.js'

const windowMs = 60_000
/** Networks whose requests are remembered; the one that was silent longest is forgotten first. */
const networksMax = 1000

interface Wanting {
  readonly atMs: number
  readonly provider: string
}

/**
 * Shares out few calls to a service of others by providers, and what a provider has by its networks (`partiesOf`). Each may cause
 * as many in a minute as an even share of all that want some, and one at least: so one that wants many leaves room for each
 * other one. Networks alone would not do: a few cheap machines at one host are in as many of them, and who has an IPv6 /32 has
 * 65,536. What it costs: clients of one provider are short of calls together.
 */
export class CallShares {
  /** When each network wanted a call last, the earliest first. */
  readonly #wanted = new Map<string, Wanting>()
  /** Networks of each provider in `#wanted`. */
  readonly #providers = new Map<string, number>()
  /** Calls of the last minute, the earliest first; they are as many as the service gets. */
  readonly #calls: { readonly atMs: number; readonly parties: readonly string[] }[] = []
  /** Calls of the last minute, by provider and by network. */
  readonly #counts = new Map<string, number>()

  constructor(
    private readonly perMinute: number,
    private readonly clock: Clock,
  ) {}

  /** Whether this client may cause a call now; `client`: an address, or empty for this program itself. */
  may(client: string): boolean {
    const nowMs = this.clock.monotonic()
    this.#forget(nowMs - windowMs)
    const [provider, network] = named(client)
    this.#drop(network)
    this.#wanted.set(network, { atMs: nowMs, provider })
    countHeld(this.#providers, provider, 1)
    const share = evenShare(this.perMinute, this.#providers.size)
    const ownShare = evenShare(share, heldBy(this.#providers, provider))
    return heldBy(this.#counts, provider) < share && heldBy(this.#counts, network) < ownShare
  }

  /** A call was made for this client. */
  called(client: string): void {
    const parties = named(client)
    this.#calls.push({ atMs: this.clock.monotonic(), parties })
    for (const name of parties) countHeld(this.#counts, name, 1)
  }

  #drop(network: string): void {
    const before = this.#wanted.get(network)
    if (before === undefined) return
    this.#wanted.delete(network)
    countHeld(this.#providers, before.provider, -1)
  }

  #forget(untilMs: number): void {
    for (const [network, { atMs }] of this.#wanted) {
      if (atMs >= untilMs && this.#wanted.size < networksMax) break
      this.#drop(network)
    }
    while (this.#calls[0] !== undefined && this.#calls[0].atMs < untilMs) {
      for (const name of this.#calls[0].parties) countHeld(this.#counts, name, -1)
      this.#calls.shift()
    }
  }
}

function evenShare(all: number, parties: number): number {
  return Math.max(1, Math.floor(all / parties))
}

/** Provider and network, by names that differ. */
function named(client: string): readonly [provider: string, network: string] {
  const [provider, network] = partiesOf(client)
  return [`provider ${provider}`, `network ${network}`]
}
