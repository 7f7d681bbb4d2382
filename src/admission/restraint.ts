import type { Clock } from '../actor/clock.js'

/** Refusals that an address may collect without any effect: a page with its pictures is asked for before it could know. */
const graceRefusals = 50

/** So many are forgotten a second; where a flood's connections are all held, so many a second are still answered. */
const forgottenPerSecond = 50

/** For each refusal beyond the grace. */
const stepMs = 10

/** Thousands of connections are refused a hundred times a second each 10 s; longer would outlive the flood. */
const holdMaxMs = 10_000
const refusalsMax = graceRefusals + holdMaxMs / stepMs

/** Addresses remembered by one thread, about 150 bytes each; the one refused first is forgotten first. */
const addressesMax = 4096

interface Asking {
  refusals: number
  atMs: number
}

/**
 * Tells for how long the connection of somebody who was refused may be left unread. Refusals of an address leak away; those
 * that come faster make the next hold longer, until the connections of a flood, however many they are, all wait: then
 * as many are refused as are forgotten. Each thread counts for itself.
 */
export class Restraint {
  readonly #asking = new Map<string, Asking>()

  constructor(private readonly clock: Clock) {}

  /** Another answer to `address` is refused. Milliseconds, 0 where it has not been refused much. */
  refused(address: string): number {
    const now = this.clock.monotonic()
    const known = this.#asking.get(address)
    if (known === undefined) {
      this.#remember(address, now)
      return 0
    }
    const left = known.refusals - ((now - known.atMs) * forgottenPerSecond) / 1000
    known.refusals = Math.min(refusalsMax, Math.max(0, left) + 1)
    known.atMs = now
    return Math.max(0, Math.floor(known.refusals - graceRefusals)) * stepMs
  }

  #remember(address: string, now: number): void {
    if (this.#asking.size >= addressesMax) {
      const [oldest] = this.#asking.keys()
      if (oldest !== undefined) this.#asking.delete(oldest)
    }
    this.#asking.set(address, { refusals: 1, atMs: now })
  }
}
