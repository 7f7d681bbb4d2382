import type { Clock } from '../../actor/clock.js'
import { signatureDigest } from '../../admission/authorization.js'
import { isOfContract } from '../../admission/lanes.js'
import { OutwardTurns } from '../../admission/outward-turns.js'
import { isUnreadable, type Presented, paymentName, type ReadPayment } from '../../admission/presented.js'
import type { Refusal } from '../../format/refusal.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import type { Transfer } from '../../ledger/transfer.js'
import { findReservation, isSpent } from '../books/paid-items.js'
import { isReserved } from '../books/reservation.js'
import type { Reservations } from '../books/reservations.js'
import { identifierConflict, type UsdcAnswer, type UsdcOrder } from '../credits-port.js'
import { readSaleBeneficiary, type SaleBeneficiary } from './sale-beneficiary.js'
import { usdcTransferId } from './usdc-transfers.js'
import type { X402Processor } from './x402-processor.js'

/** To an order of an upload service for an item that is another one's. */
export const acceptedElsewhere: Readonly<Record<'spent' | 'held', UsdcAnswer>> = {
  spent: {
    status: 409,
    json: { error: 'accepted_elsewhere', message: 'another upload service has accepted this item' },
    lines: '',
    elsewhere: 'spent',
  },
  held: {
    status: 503,
    json: { error: 'accepted_elsewhere', message: 'another upload service is about to accept this item' },
    lines: '\r\nRetry-After: 5',
    elsewhere: 'held',
  },
}

/** Further facts of the transfer of a payment for an item, by which it is found again. `signed`: as in `SettledPayment`. */
export function saleFactsOf({ sale, bytes }: SaleBeneficiary, signed?: string): Record<string, string> {
  if (sale === undefined) return {}
  const facts = { request: sale.request, owner: sale.owner, bytes: String(bytes) }
  return signed === undefined ? facts : { ...facts, signed }
}

export interface FirstSalesParts {
  readonly ledger: Pick<MoneyLedger, 'transfer' | 'record' | 'endingsOf'>
  readonly reservations: Pick<Reservations, 'refundLeft'>
  readonly clock: Clock
}

/** Questions whether a payment was settled: most come to nothing, and anybody can cause them. */
const soldTurns = { perSecond: 20, burst: 64 }

/**
 * Knows which sale came first, of those with one payment or one identifier. An item that an upload service signs itself has
 * another id each time: so the same request, which comes again to any service of the ledger, is known by these.
 */
export class FirstSales {
  readonly #turns: OutwardTurns

  constructor(
    private readonly parts: FirstSalesParts,
    private readonly processor: Pick<X402Processor, 'requested' | 'identified' | 'network' | 'x402'>,
  ) {
    this.#turns = new OutwardTurns(soldTurns, parts.clock)
  }

  /**
   * The answer to an order whose payment or identifier another item had first. Undefined: it is the first, or not the payer's.
   * `credited`: the service that sold the other item is gone and has not accepted it. The payment is credits of its wallet.
   */
  async answerTo(order: UsdcOrder, read: ReadPayment): Promise<UsdcAnswer | 'credited' | undefined> {
    if (isUnreadable(read)) return undefined
    const first = await this.#firstOf(order, read)
    if (first === undefined) return undefined
    return 'status' in first ? first : this.#repeated(first, order, read.version)
  }

  /** The transfer that has paid for the first sale; an answer: there is none to be repeated, or not yet. */
  async #firstOf({ sale, itemId }: UsdcOrder, read: Presented): Promise<Transfer | UsdcAnswer | undefined> {
    const payment = paymentName(read)
    if (sale === undefined || payment === undefined) return undefined
    const settled = await this.#transferOf(payment)
    if (settled !== undefined) {
      const { about } = settled
      // What has paid for another request is answered as a used payment.
      const isAgain = about.itemId !== itemId && about.request === sale.request
      return isAgain && this.#isOfPayer(read, about.signed) ? settled : undefined
    }
    const { identifier, authorization } = read
    // Identifiers stand on no chain: where nobody here can check the signature, to know it suffices for the receipt.
    if (identifier === undefined || !(isOfContract(read) || this.#isSigned(read))) return undefined
    const first = await this.processor.identified(authorization.from.toLowerCase(), identifier)
    if (first === undefined || first.itemId === itemId) return undefined
    if (first.request !== sale.request) return identifierConflict
    const paid = await this.#transferOf(first.payment)
    return paid ?? { ...acceptedElsewhere.held, first: 'pending' }
  }

  /**
   * Whether a payment that its payer has signed has paid, or is about to pay, for an item of so many bytes or more. Clients have
   * turns, because anybody can sign payments that are worth nothing, and the ledger has other work. Refused `busy`: nobody has
   * looked, and it may have.
   */
  async isSold(
    read: ReadPayment,
    { bytes, asker }: Pick<UsdcOrder, 'bytes' | 'asker'>,
  ): Promise<boolean | Refusal> {
    if (isUnreadable(read)) return false
    const payment = paymentName(read)
    if (payment === undefined || !(isOfContract(read) || this.#isSigned(read))) return false
    const crowded = await this.#turns.wait(asker)
    if (crowded !== undefined) return crowded
    const sold = await this.#soldFor(payment)
    const isSold = sold !== undefined && sold.bytes >= bytes && this.#isOfPayer(read, sold.signed)
    if (isSold) this.#turns.noteUseful(asker)
    return isSold
  }

  /** Bytes of the item that a payment has paid for, or is about to, and what is kept of its signature. */
  async #soldFor(
    payment: string,
  ): Promise<{ readonly bytes: number; readonly signed: string | undefined } | undefined> {
    const settled = await this.#transferOf(payment)
    if (settled !== undefined) {
      const { bytes, signed } = settled.about
      return bytes === undefined ? undefined : { bytes: Number(bytes), signed }
    }
    const requested = await this.processor.requested(payment)
    const sold = requested && readSaleBeneficiary(requested.beneficiary)
    return sold?.sale === undefined ? undefined : { bytes: sold.bytes, signed: requested?.signed }
  }

  /**
   * Names of payments are public on the chain, and so are the signatures of those that were settled. Who has never seen one
   * must not learn what it has bought. `signed`: what is kept of the signature that was good; only the chain can check one of a
   * contract's wallet.
   */
  #isOfPayer(read: Presented, signed: string | undefined): boolean {
    return signed === signatureDigest(read.signature) || this.#isSigned(read)
  }

  #isSigned(read: Presented): boolean {
    return this.processor.x402.isSignedByPayer(read)
  }

  #transferOf(payment: string): Promise<Transfer | undefined> {
    return this.parts.ledger.transfer(usdcTransferId(payment))
  }

  async #repeated(
    { id, reference: transaction, about }: Transfer,
    { notAccepted }: Pick<UsdcOrder, 'notAccepted'>,
    version: 1 | 2,
  ): Promise<UsdcAnswer | 'credited'> {
    const { ledger, reservations, clock } = this.parts
    const { payer = '', itemId = '', owner = '', tokenQuantity: units = '' } = about
    const held = (await findReservation(ledger, itemId))?.reservation
    if (held !== undefined && !isReserved(held)) return 'credited'
    const isHeld = isReserved(held) && !(await isSpent(ledger, itemId, held))
    // No other service can accept that item, because the one that is gone has signed it. It may have accepted it before.
    const mayRefund = isHeld && notAccepted === itemId
    if (mayRefund && (await reservations.refundLeft(itemId, clock.now()))) return 'credited'
    return {
      ...acceptedElsewhere[isHeld ? 'held' : 'spent'],
      first: {
        payment: id.slice(usdcTransferId('').length),
        transaction,
        payer,
        network: this.processor.network,
        lines: this.processor.x402.receipt(version, { success: true, transaction, payer }),
        itemId,
        owner,
        units,
      },
    }
  }
}
