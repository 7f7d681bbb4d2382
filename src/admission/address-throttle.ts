import type { Clock } from '../actor/clock.js'
import { LeakingCounts } from './leaking-counts.js'

/** Refusals that an address may collect without any effect: a page with its pictures is asked for before it could know. */
const graceRefusals = 50

/** So many are forgotten a second; where a flood's connections are all held, so many a second are still answered. */
const forgottenPerSecond = 50

/** For each refusal beyond the grace. */
const stepMs = 10

/** Thousands of connections are refused a hundred times a second each 10 s; longer would outlive the flood. */
const holdMaxMs = 10_000

/** What costs no tokens may be asked for so often by one address: far more than busy clients of nodes do, 5 % of a thread. */
const freePerSecond = 1000
const freeStepMs = 1
const freeHoldMaxMs = 1000

/** Who has no tokens and may pay: what he asks for is looked up, so that he hears its price, so often at once. */
const lookupsMax = 20
const lookupsPerSecond = 1

/**
 * Tells how much is done for somebody who asks for too much. For how long his connection may be left unread: refusals of an
 * address leak away; those that come faster make the next hold longer, until the connections of a flood, however many they are,
 * all wait: then as many are refused as are forgotten. And how often the network is asked for who was refused. Each thread
 * counts for itself.
 */
export class AddressThrottle {
  readonly #refusals: LeakingCounts
  readonly #free: LeakingCounts
  readonly #lookups: LeakingCounts

  constructor(clock: Clock) {
    const max = graceRefusals + holdMaxMs / stepMs
    this.#refusals = new LeakingCounts(clock, { leakPerSecond: forgottenPerSecond, max })
    const freeMax = freePerSecond + freeHoldMaxMs / freeStepMs
    this.#free = new LeakingCounts(clock, { leakPerSecond: freePerSecond, max: freeMax })
    this.#lookups = new LeakingCounts(clock, { leakPerSecond: lookupsPerSecond, max: lookupsMax })
  }

  /** Another answer to `address` is refused. Milliseconds, 0 where it has not been refused much. */
  refused(address: string): number {
    return Math.max(0, Math.floor(this.#refusals.add(address) - graceRefusals)) * stepMs
  }

  /** Another request of `address` that costs no tokens. Milliseconds, as `refused`; a burst of a second's worth is free. */
  passed(address: string): number {
    return Math.max(0, Math.floor(this.#free.add(address) - freePerSecond)) * freeStepMs
  }

  /** The network is to be asked for something, only to tell `address` what it costs. False: not so often. */
  mayLookUp(address: string): boolean {
    if (this.#lookups.of(address) > lookupsMax - 1) return false
    this.#lookups.add(address)
    return true
  }
}
