import type { Clock } from '../actor/clock.js'
import { LeakingCounts } from './leaking-counts.js'

/**
 * Refusals of one address that have no effect: a browser requests a page with all its pictures before it sees the
 * first refusal.
 */
const graceRefusals = 50

/**
 * The count of refusals shrinks by so many a second. Where all connections of a flood are held, so many requests a
 * second are still answered.
 */
const forgottenPerSecond = 50

/** For each refusal beyond the grace. */
const stepMs = 10

/**
 * With 10 s, thousands of connections together get at most some hundred refusals a second; with a longer delay clients
 * would be held long after the flood ended.
 */
const delayMaxMs = 10_000

/**
 * Requests a second that cost no tokens and are allowed for one address: far more than busy clients of nodes make,
 * and 5 % of a thread.
 */
const freePerSecond = 1000
const freeStepMs = 1
const freeDelayMaxMs = 1000

/**
 * A client without tokens may pay, so content is looked up on the network to quote its price: so often in a burst, and
 * a second.
 */
const lookupsMax = 20
const lookupsPerSecond = 1

/**
 * Limits the work for an address that sends too many requests. It decides for how long a connection is left unread. The count of
 * refusals of an address shrinks at a fixed rate, and faster refusals make the next pause longer. In the end all connections of a
 * flood wait, and refusals are only as frequent as the count shrinks. It also limits the requests to the network for a refused
 * client. Each thread counts separately.
 */
export class AddressThrottle {
  readonly #refusals: LeakingCounts
  readonly #free: LeakingCounts
  readonly #lookups: LeakingCounts

  constructor(clock: Clock) {
    const max = graceRefusals + delayMaxMs / stepMs
    this.#refusals = new LeakingCounts(clock, { leakPerSecond: forgottenPerSecond, max })
    const freeMax = freePerSecond + freeDelayMaxMs / freeStepMs
    this.#free = new LeakingCounts(clock, { leakPerSecond: freePerSecond, max: freeMax })
    this.#lookups = new LeakingCounts(clock, { leakPerSecond: lookupsPerSecond, max: lookupsMax })
  }

  /**
   * Counts a refusal to `address`. Returns for how many milliseconds its connection is left unread; 0 after few
   * refusals.
   */
  refused(address: string): number {
    return Math.max(0, Math.floor(this.#refusals.add(address) - graceRefusals)) * stepMs
  }

  /**
   * Counts a request of `address` that costs no tokens. Returns milliseconds as `refused` does; a burst of as many as
   * are allowed in a second gives 0.
   */
  passed(address: string): number {
    return Math.max(0, Math.floor(this.#free.add(address) - freePerSecond)) * freeStepMs
  }

  /** Whether content may be looked up on the network only to quote `address` its price; counts it. False: too often. */
  mayLookUp(address: string): boolean {
    if (this.#lookups.of(address) > lookupsMax - 1) return false
    this.#lookups.add(address)
    return true
  }
}
