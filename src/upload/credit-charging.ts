import { type Clock, pause } from '../actor/clock.js'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import type { ItemHeader } from '../format/item.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { CreditsPort, Payer } from '../payment/port.js'
import { kyveAddress, nativeAddress, normalizedAddress } from '../proof/address.js'
import type { Environment, Table } from '../store/lmdb.js'
import { paymentAway, said } from './answers.js'
import { type Charged, type Charging, freeCharge, freeExhausted, type ItemCharge } from './charging.js'
import type { FreePools } from './free-pools.js'
import type { Uploader } from './uploader.js'

/** A client is told within a second that nobody can be asked for credits. */
const patienceMs = 900
const againMs = 2000
/** Billing goes by this number where the path names that network; the item itself says 3. */
const kyveType = 101

const none = new Uint8Array(0)

/** Takes what is free, and credits for the rest: held back before the item is kept, spent after. */
export class CreditCharging implements Charging {
  /** Items that were accepted and whose credits are not spent yet. */
  readonly #unsettled: Table
  /** Items whose credits are still to be given back: one that comes again waits for it, or it would lose what it pays anew. */
  readonly #refunding = new Set<Id>()

  constructor(
    private readonly pools: FreePools,
    private readonly credits: CreditsPort,
    private readonly environment: Environment,
    private readonly clock: Clock,
    private readonly closing: AbortSignal,
  ) {
    this.#unsettled = environment.table('unsettled')
    // What an earlier process left.
    for (const { key } of this.#unsettled.from(undefined, Number.MAX_SAFE_INTEGER))
      void this.#settle(idOfBytes(key))
  }

  async charge(header: ItemHeader, bytes: number, uploader: Uploader): Promise<ItemCharge> {
    const free = freeCharge(this.pools, header, bytes, uploader)
    if (free !== undefined) return free
    if (this.#refunding.has(header.id)) return paymentAway(header.id)
    const order = { ...payerOf(header, uploader), itemId: header.id, bytes }
    const reserved = await this.#inTime(this.credits.reserve(order))
    if (isRefusal(reserved)) {
      // It may have been carried out all the same.
      void this.#refund(header.id)
      return paymentAway(header.id)
    }
    if (!reserved.paid) return reserved.isUnknownWallet ? freeExhausted(bytes) : said.unpaid
    return {
      winc: reserved.winc,
      keep: (id) => this.#unsettled.put(idBytes(id), none),
      giveBack: () => this.#refund(header.id),
    }
  }

  settle(id: Id, { winc }: Charged): void {
    if (winc !== '0') void this.#settle(id)
  }

  async #settle(id: Id): Promise<void> {
    while (!this.closing.aborted) {
      const settled = await this.credits.settle(id)
      if (this.closing.aborted) return
      if (!isRefusal(settled)) {
        this.environment.write(() => this.#unsettled.remove(idBytes(id)))
        return
      }
      await pause(againMs, this.closing)
    }
  }

  async #refund(id: Id): Promise<void> {
    this.#refunding.add(id)
    while (!this.closing.aborted && isRefusal(await this.credits.refund(id))) {
      await pause(againMs, this.closing)
    }
    this.#refunding.delete(id)
  }

  #inTime<T>(answer: Promise<T | Refusal>): Promise<T | Refusal> {
    return new Promise((resolve, reject) => {
      const late = refuse('late', 'self', 'the payment service does not answer')
      const timer = this.clock.after(patienceMs, () => resolve(late))
      answer.then(resolve, reject).finally(() => timer.cancel())
    })
  }
}

/** Whose account pays for an item. */
export function payerOf({ signatureType, owner }: ItemHeader, { paidBy, token }: Uploader): Payer {
  const alias = normalizedAddress(owner)
  if (signatureType === 3 && token === 'kyve')
    return { address: kyveAddress(owner), signatureType: kyveType, paidBy }
  return { address: nativeAddress(signatureType, owner), signatureType, alias, paidBy }
}
