import { networkOfAddress } from '../format/ip.js'
import type { Clock } from './clock.js'

const windowMs = 60_000
/** Networks whose requests are remembered; the one that was silent longest is forgotten first. */
const networksMax = 1000

/**
 * Shares out few calls to a service of others by networks (`partiesOf`). A network may cause as many in a minute as an even share
 * of all that want some, and one at least: so one that wants many leaves room for each other one.
 */
export class CallShares {
  /** When each network wanted a call last, the earliest first. */
  readonly #wanted = new Map<string, number>()
  /** Calls of the last minute, the earliest first; they are as many as the service gets. */
  readonly #calls: { readonly atMs: number; readonly network: string }[] = []
  readonly #counts = new Map<string, number>()

  constructor(
    private readonly perMinute: number,
    private readonly clock: Clock,
  ) {}

  /** Whether this client may cause a call now; `client`: an address, or empty for this program itself. */
  may(client: string): boolean {
    const nowMs = this.clock.monotonic()
    this.#forget(nowMs - windowMs)
    const network = networkOfAddress(client)
    this.#wanted.delete(network)
    this.#wanted.set(network, nowMs)
    const share = Math.max(1, Math.floor(this.perMinute / this.#wanted.size))
    return (this.#counts.get(network) ?? 0) < share
  }

  /** A call was made for this client. */
  called(client: string): void {
    const network = networkOfAddress(client)
    this.#calls.push({ atMs: this.clock.monotonic(), network })
    this.#counts.set(network, (this.#counts.get(network) ?? 0) + 1)
  }

  #forget(untilMs: number): void {
    for (const [network, atMs] of this.#wanted) {
      if (atMs >= untilMs && this.#wanted.size < networksMax) break
      this.#wanted.delete(network)
    }
    while (this.#calls[0] !== undefined && this.#calls[0].atMs < untilMs) {
      const { network } = this.#calls[0]
      this.#calls.shift()
      const left = (this.#counts.get(network) ?? 1) - 1
      if (left > 0) this.#counts.set(network, left)
      else this.#counts.delete(network)
    }
  }
}
