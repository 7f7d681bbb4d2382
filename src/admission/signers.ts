import type { Clock } from '../actor/clock.js'
import { plainSignatureBytes, signerOf } from './authorization.js'
import { LeakingCounts } from './leaking-counts.js'
import type { PaymentOrder } from './settlement-protocol.js'

/** Recovering a signer takes 1 to 3 ms: more a second are turned away, so that nonsense leaves the thread its time. */
const recoveriesPerSecond = 100

/** False signatures that a client may bring at once, and of which one a second is forgotten: honest ones are not kept out. */
const falseMax = 20

/** Tells whether payments are signed by those who are to pay. */
export class Signers {
  readonly #false: LeakingCounts
  #second = 0
  #recoveries = 0

  constructor(private readonly clock: Clock) {
    this.#false = new LeakingCounts(clock, { leakPerSecond: 1, max: falseMax })
  }

  /** `busy`: it was not looked at. */
  check({ digest, signature, payer, client }: PaymentOrder): 'true' | 'false' | 'busy' {
    const bytes = Buffer.from(signature.slice(2), 'hex')
    // Longer ones are of contracts' wallets: only the chain can tell, and the facilitator asks it.
    if (bytes.length > plainSignatureBytes) return 'true'
    if (this.#false.of(client) > falseMax - 1 || !this.#mayRecover()) return 'busy'
    if (signerOf(Buffer.from(digest, 'hex'), bytes) === payer) return 'true'
    this.#false.add(client)
    return 'false'
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
