import type { Clock } from '../actor/clock.js'
import { networkOfAddress, providerOfAddress } from '../format/ip.js'
import { signerOf } from './authorization.js'
import { LeakingCounts } from './leaking-counts.js'
import type { PaymentOrder } from './settlement-messages.js'

/**
 * Recovering a signer takes 1 to 3 ms: more a second are refused, so that invalid signatures cannot use up the
 * thread's time.
 */
const recoveriesPerSecond = 100

/**
 * Of them for one client, for its network and for its provider, whether the signatures are good or not: so many at once, and so
 * many a second in the long run. All of one provider leave a part for others.
 */
const shares = [
  { of: (address: string) => address, max: 25, perSecond: 10 },
  { of: networkOfAddress, max: 50, perSecond: 25 },
  { of: providerOfAddress, max: 60, perSecond: 50 },
] as const

/** Tells whether payments are signed by those who are to pay, where a plain key is to have signed. */
export class Signers {
  readonly #shares
  #second = 0
  #recoveries = 0

  constructor(private readonly clock: Clock) {
    this.#shares = shares.map(({ of, max, perSecond }) => {
      return { of, max, counts: new LeakingCounts(clock, { leakPerSecond: perSecond, max }) }
    })
  }

  /** `busy`: it was not looked at. */
  check({ digest, signature, payer, asker }: PaymentOrder): 'true' | 'false' | 'busy' {
    const hasMost = this.#shares.some(({ of, max, counts }) => counts.of(of(asker)) > max - 1)
    if (hasMost || !this.#mayRecover()) return 'busy'
    for (const { of, counts } of this.#shares) counts.add(of(asker))
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
