import type { Clock } from '../actor/clock.js'
import { partiesOf } from '../format/ip.js'
import { signerOf } from './authorization.js'
import { LeakingCounts } from './leaking-counts.js'
import type { PaymentOrder } from './settlement-messages.js'

/**
 * Recovering a signer takes 1 to 3 ms: more a second are refused, so that invalid signatures cannot use up the
 * thread's time.
 */
const recoveriesPerSecond = 100

/**
 * Of them for one provider, one network of it and one client (`partiesOf`): so many at once, and so many a second in the long
 * run. Good and bad signatures count alike. All of one provider leave a part for others.
 */
const shares = [
  { max: 60, perSecond: 50 },
  { max: 50, perSecond: 25 },
  { max: 25, perSecond: 10 },
] as const

/** Tells whether payments are signed by those who are to pay, where a plain key is to have signed. */
export class Signers {
  readonly #shares
  #second = 0
  #recoveries = 0

  constructor(private readonly clock: Clock) {
    this.#shares = shares.map(({ max, perSecond }) => {
      return { max, counts: new LeakingCounts(clock, { leakPerSecond: perSecond, max }) }
    })
  }

  /** `busy`: it was not looked at. */
  check({ digest, signature, payer, asker }: PaymentOrder): 'true' | 'false' | 'busy' {
    const parties = partiesOf(asker)
    const hasMost = this.#shares.some(({ max, counts }, at) => counts.of(parties[at] ?? asker) > max - 1)
    if (hasMost || !this.#mayRecover()) return 'busy'
    for (const [at, { counts }] of this.#shares.entries()) counts.add(parties[at] ?? asker)
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
