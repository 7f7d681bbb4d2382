import type { Clock } from '../actor/clock.js'
import { signerOf } from './authorization.js'
import { LeakingCounts } from './leaking-counts.js'
import type { PaymentOrder } from './settlement-messages.js'

/**
 * Recovering a signer takes 1 to 3 ms: more a second are refused, so that invalid signatures cannot use up the
 * thread's time.
 */
const recoveriesPerSecond = 100

/** Of them for one client, whether its signatures are good or not: so many at once, and so many a second in the long run. */
const eachMax = 25
const eachPerSecond = 10

/** Tells whether payments are signed by those who are to pay, where a plain key is to have signed. */
export class Signers {
  readonly #each: LeakingCounts
  #second = 0
  #recoveries = 0

  constructor(private readonly clock: Clock) {
    this.#each = new LeakingCounts(clock, { leakPerSecond: eachPerSecond, max: eachMax })
  }

  /** `busy`: it was not looked at. */
  check({ digest, signature, payer, asker }: PaymentOrder): 'true' | 'false' | 'busy' {
    if (this.#each.of(asker) > eachMax - 1 || !this.#mayRecover()) return 'busy'
    this.#each.add(asker)
    const signer = signerOf(Buffer.from(digest, 'hex'), Buffer.from(signature.slice(2), 'hex'))
    return signer === payer ? 'true' : 'false'
  }

  #mayRecover(): boolean {
    const second = Math.floor(this.clock.monotonic() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#recoveries = 0
    }
    this.#recoveries += 1
    return this.#recoveries <= recoveriesPerSecond
  }
}
