import { BoundedMap } from '../actor/bounded-map.js'
import { FairSlots } from '../actor/fair-slots.js'
import { isRefusal } from '../format/refusal.js'
import { signatureDigest, signerOf } from './authorization.js'
import type { PaymentOrder } from './cashier-messages.js'
import { isOfContract } from './lanes.js'

type SignedOrder = Pick<PaymentOrder, 'digest' | 'signature' | 'payer' | 'asker'>

/** Signers recovered in one turn of the event loop: below a millisecond of native code, 20 ms of the fallback. */
const eachTurn = 8
/** Payments that wait for that, of all clients and of one. */
const [waitingMax, eachMax] = [4000, 64]
/** A payment that is repeated is not recovered again. */
const rememberedMax = 4096

/**
 * Checks whether payments are signed by their payers, where the payer is a plain key. The client that sends most waits longest.
 * So a flood from any number of addresses delays the payments of others by some turns of the event loop only.
 */
export class Signers {
  readonly #slots = new FairSlots({ max: eachTurn, waitingMax, eachMax })
  /** By signature and digest; '' where the signature is of no key. */
  readonly #recovered = new BoundedMap<string, string>(rememberedMax)

  /**
   * `known`: digest of the signature by which the payment was taken before (`signatureDigest`). Only the chain can verify
   * signatures of contracts' wallets: here they are true until another one is known. `busy`: the signature was not checked,
   * because too many of this client wait.
   */
  async check(order: SignedOrder, known?: string): Promise<'true' | 'false' | 'busy'> {
    const { digest, signature, payer, asker } = order
    if (isOfContract(order))
      return known === undefined || known === signatureDigest(signature) ? 'true' : 'false'
    const name = `${signature} ${digest}`
    let signer = this.#recovered.get(name)
    if (signer === undefined) {
      const slot = await this.#slots.wait(asker)
      if (isRefusal(slot)) return 'busy'
      // Given back in the next turn: what the loop has to read comes in between.
      setImmediate(slot)
      signer = signerOf(Buffer.from(digest, 'hex'), Buffer.from(signature.slice(2), 'hex')) ?? ''
      this.#recovered.set(name, signer)
    }
    return signer === payer ? 'true' : 'false'
  }
}
