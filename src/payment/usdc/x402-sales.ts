import type { Clock } from '../../actor/clock.js'
import { isDenial, type SettledPayment } from '../../admission/admission-port.js'
import type { Quote } from '../../admission/payment-offer.js'
import type { PaymentRecord } from '../../admission/payment-records.js'
import {
  isUnreadable,
  type Presented,
  paymentName,
  type ReadPayment,
  readPayment,
} from '../../admission/presented.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import type { Transfer } from '../../ledger/transfer.js'
import { lesser } from '../books/credits.js'
import { type Orderer, paidPrefix } from '../books/reservation.js'
import type { Reservations } from '../books/reservations.js'
import {
  isDenied,
  type UsdcAnswer,
  type UsdcFinished,
  type UsdcGood,
  type UsdcOrder,
  type UsdcOutcome,
  type UsdcPaid,
  type UsdcPort,
  type UsdcWanted,
} from '../credits-port.js'
import type { Prices } from '../prices/prices.js'
import type { Quotes } from '../prices/quotes.js'
import { creditedTransfer } from './credited-transfer.js'
import { acceptedElsewhere, FirstSales, saleFactsOf } from './first-sales.js'
import { OfferedPrices } from './offered-prices.js'
import type { OwnedPayments } from './owned-payments.js'
import { isSaleOf, readSaleBeneficiary, saleBeneficiaryOf } from './sale-beneficiary.js'
import { usdcSource, usdcTransferId } from './usdc-transfers.js'
import { answerOfDenial, type X402Processor } from './x402-processor.js'

export interface X402SalesParts {
  readonly ledger: MoneyLedger
  readonly reservations: Pick<
    Reservations,
    'reservePayment' | 'paidFor' | 'takenElsewhere' | 'finish' | 'refundLeft'
  >
  readonly owned: Pick<OwnedPayments, 'own'>
  readonly prices: Pick<Prices, 'ofItem'>
  readonly quotes: Pick<Quotes, 'ofToken'>
  readonly clock: Clock
}

const mebibyte = 2 ** 20

const used = { error: 'payment_already_used', message: 'this payment has paid for something else' }
const credited = { error: 'payment_credited', message: 'this payment has become credits of its wallet' }

/** It may have paid for an item: with an offer a client would pay a second time. */
const unknownNow: UsdcAnswer = {
  status: 503,
  json: { error: 'payment_service_unavailable', message: 'busy: retry with the same payment' },
  lines: '\r\nRetry-After: 2',
}

/** A payment that came in for an item, whatever became of it since. */
export interface ReceivedUsdc extends Omit<UsdcPaid, 'paid' | 'winc'> {
  /** What the payment was worth. */
  readonly winc: bigint
  /** The part of the payment that became credits at once. */
  readonly creditedWinc: bigint
}

/** Sells single items for USDC. What is paid is in the ledger, reserved for its item, from the moment in which it is settled. */
export class X402Sales implements UsdcPort {
  /** Prices change while a client signs what it was offered: by bytes. */
  readonly #offered: OfferedPrices
  /** And while the body comes that a payment was looked at for: by payment and bytes. */
  readonly #looked: OfferedPrices
  readonly #first: FirstSales

  constructor(
    private readonly parts: X402SalesParts,
    private readonly processor: X402Processor,
  ) {
    this.#offered = new OfferedPrices(parts.clock.monotonic)
    this.#looked = new OfferedPrices(parts.clock.monotonic)
    this.#first = new FirstSales(parts, processor)
  }

  async units(bytes: number): Promise<{ readonly units: string; readonly network: string } | Refusal> {
    const units = await this.processor.unitsOf(bytes)
    return isRefusal(units) ? units : { units: String(units), network: this.processor.network }
  }

  async offer({ fault, ...wanted }: Parameters<UsdcPort['offer']>[0]): Promise<UsdcAnswer | Refusal> {
    const units = await this.processor.unitsOf(wanted.bytes)
    if (isRefusal(units)) return units
    this.#offered.note(String(wanted.bytes), units, goodMs(wanted.bytes))
    return answerOfDenial(this.processor.x402.offer(quoteOf(wanted, units), fault))
  }

  async look(order: UsdcOrder): Promise<UsdcGood | UsdcAnswer | Refusal> {
    const read = readPayment(order.header, order.version)
    const quote = await this.#quote(order, read)
    if (isRefusal(quote)) return quote
    const outcome = await this.processor.x402.look(read, quote, buyerOf(order, read))
    if (typeof outcome === 'object') {
      // Another service may have settled it: its own item is requested again for its receipt. What was settled stands on the
      // chain with its signature, so it counts for nobody.
      const isSold = await this.#first.isSold(read, order)
      if (isRefusal(isSold)) return unknownNow
      return isSold ? { good: true, units: '0' } : answerOfDenial(outcome)
    }
    // It is paid when the body is here. Looked at again, the price is good no longer than it was: only its first look counts.
    const key = lookedKey(order, read)
    if (key !== undefined && this.#looked.least(key) === undefined)
      this.#looked.note(key, quote.units, goodMs(order.bytes))
    if (outcome === 'made') return { good: true, units: '0' }
    const price = await this.processor.unitsOf(order.bytes)
    return { good: true, units: String(isRefusal(price) ? quote.units : lesser(price, quote.units)) }
  }

  async pay(order: UsdcOrder): Promise<UsdcPaid | UsdcAnswer | Refusal> {
    // Nothing is settled for an item that is accepted elsewhere.
    const other = await this.parts.reservations.takenElsewhere(order.itemId, this.#orderer(order))
    if (other !== undefined) return acceptedElsewhere[other]
    const read = readPayment(order.header, order.version)
    const repeated = await this.#first.answerTo(order, read)
    if (repeated !== undefined) return this.#answer(repeated, order)
    const received = await this.#settle(order, read)
    if (isRefusal(received)) return received
    // At the same moment another service may have been first.
    if ('status' in received)
      return this.#answer((await this.#first.answerTo(order, read)) ?? received, order)
    const paid = await this.#paid(received, order)
    if (paid === undefined) return this.#answer('credited', order)
    return typeof paid === 'string' ? acceptedElsewhere[paid] : paid
  }

  async #answer(answer: UsdcAnswer | 'credited', order: UsdcOrder): Promise<UsdcAnswer | Refusal> {
    return answer === 'credited' ? this.offer({ ...wantedOf(order), fault: credited }) : answer
  }

  #orderer({ service, isAccepting }: Pick<Orderer, 'service' | 'isAccepting'>): Orderer {
    return { service, isAccepting, atMs: this.parts.clock.now() }
  }

  /** Settles the payment, once. An answer: nothing of it came in, or for something else. */
  settle(order: UsdcOrder): Promise<ReceivedUsdc | UsdcAnswer | Refusal> {
    return this.#settle(order, readPayment(order.header, order.version))
  }

  async #settle(order: UsdcOrder, read: ReadPayment): Promise<ReceivedUsdc | UsdcAnswer | Refusal> {
    const name = isUnreadable(read) ? undefined : paymentName(read)
    const known = name === undefined ? undefined : await this.parts.ledger.transfer(usdcTransferId(name))
    if (known !== undefined) return this.#receivedBy(known, order, read as Presented)
    // Of something else: nothing is waited for.
    const requested = name === undefined ? undefined : await this.#requested(name)
    if (requested !== undefined && !isSaleOf(requested.beneficiary, { ...order.sale, itemId: order.itemId }))
      return this.offer({ ...wantedOf(order), fault: used })
    const quote = await this.#quote(order, read)
    if (isRefusal(quote)) return quote
    const paid = await this.processor.x402.settle(read, quote, buyerOf(order, read))
    if (isDenial(paid)) return answerOfDenial(paid)
    const transfer = await creditedTransfer(this.parts.ledger, () => this.processor.cashier, paid.payment)
    return this.#receivedBy(transfer, order, read as Presented)
  }

  async outcome(sale: Parameters<UsdcPort['outcome']>[0]): Promise<UsdcOutcome> {
    const { payment, itemId } = sale
    const transfer = await this.parts.ledger.transfer(usdcTransferId(payment))
    if (transfer !== undefined) {
      const received = await this.#received(transfer, itemId, '')
      const paid = received && (await this.#paid(received, sale))
      if (typeof paid === 'object') return sale.isAccepting === true ? { ...paid, isKept: true } : paid
      return { paid: false, state: paid === 'held' ? 'open' : 'other' }
    }
    const requested = await this.#requested(payment)
    if (requested !== undefined)
      return { paid: false, state: isSaleOf(requested.beneficiary, sale) ? 'open' : 'other' }
    return { paid: false, state: this.processor.cashier.find(payment) === undefined ? 'unknown' : 'failed' }
  }

  /** The record of a payment that may still come, here or at another service. A failure that may be none is looked at again. */
  async #requested(payment: string): Promise<Pick<PaymentRecord, 'beneficiary'> | undefined> {
    const record = this.processor.cashier.find(payment)
    return record !== undefined && record.state !== 'failed' ? record : this.processor.requested(payment)
  }

  finish({ itemId, bytes }: Parameters<UsdcPort['finish']>[0]): Promise<UsdcFinished | Refusal> {
    return this.parts.reservations.finish(itemId, bytes)
  }

  own(claim: Parameters<UsdcPort['own']>[0]): ReturnType<UsdcPort['own']> {
    return this.parts.owned.own(claim)
  }

  /** Reserves settled money for the item that it pays for. Called by `creditSettled` until it does not throw. */
  async reserveSettled(
    beneficiary: string,
    payment: string,
    { units, payer, transaction, signed }: SettledPayment,
  ): Promise<'credited' | 'known'> {
    const id = usdcTransferId(payment)
    if ((await this.parts.ledger.transfer(id)) !== undefined) return 'known'
    const sold = readSaleBeneficiary(beneficiary)
    const { mode, itemId, bytes, address = payer, service } = sold
    const quote = await this.parts.quotes.ofToken('base-usdc', BigInt(units))
    if (isRefusal(quote)) throw new Error(quote.message)
    if (isDenied(quote)) throw new Error(quote.text)
    const amount = BigInt(quote.winc)
    const price = mode === 'rest' ? await this.parts.prices.ofItem(bytes) : amount
    if (isRefusal(price)) throw new Error(price.message)
    const { usdEquivalent } = quote
    const about = {
      type: 'x402',
      itemId,
      payer,
      tokenQuantity: units,
      usdEquivalent,
      ...saleFactsOf(sold, signed),
    }
    return this.parts.reservations.reservePayment({
      itemId,
      bytes,
      address,
      reserved: price < amount ? price : amount,
      ...this.#orderer(service === undefined ? {} : { service }),
      incoming: {
        id,
        kind: 'posted',
        debit: usdcSource,
        credit: paidPrefix + payment,
        amount,
        reason: 'x402_payg',
        reference: transaction,
        about,
      },
    })
  }

  /** The amount of a payment: the present or a recent price, or more where the payer gives more. */
  async #quote(order: UsdcOrder, read: ReadPayment): Promise<Quote | Refusal> {
    const price = await this.processor.unitsOf(order.bytes)
    if (isRefusal(price)) return price
    const key = lookedKey(order, read)
    const looked = key === undefined ? undefined : this.#looked.least(key)
    const offered = this.#offered.least(String(order.bytes)) ?? price
    const least = lesser(lesser(price, offered), looked ?? price)
    const given = isUnreadable(read) ? price : BigInt(read.authorization.value)
    return quoteOf(order, given >= least && given <= this.processor.most ? given : price)
  }

  async #receivedBy(
    transfer: Transfer,
    order: UsdcOrder,
    { version }: Presented,
  ): Promise<ReceivedUsdc | UsdcAnswer | Refusal> {
    const { reference: transaction, about } = transfer
    const lines = this.processor.x402.receipt(version, {
      success: true,
      transaction,
      payer: about.payer ?? '',
    })
    return (
      (await this.#received(transfer, order.itemId, lines)) ?? this.offer({ ...wantedOf(order), fault: used })
    )
  }

  /** Undefined: it has paid for something else. */
  async #received(
    { id, amount, reference, about }: Transfer,
    itemId: string,
    lines: string,
  ): Promise<ReceivedUsdc | undefined> {
    if (about.itemId !== itemId || about.type !== 'x402') return undefined
    return {
      payment: id.slice(usdcTransferId('').length),
      transaction: reference,
      lines,
      payer: about.payer ?? '',
      network: this.processor.network,
      winc: amount,
      creditedWinc: (await this.parts.ledger.transfer(`${id}:rest`))?.amount ?? 0n,
    }
  }

  /**
   * Undefined: what is reserved for the item now does not pay for so many bytes, whatever this payment once was. A word: it is
   * another upload service's.
   */
  async #paid(
    { creditedWinc: _, ...facts }: ReceivedUsdc,
    order: Pick<UsdcOrder, 'itemId' | 'bytes'> & Pick<Orderer, 'service' | 'isAccepting'>,
  ): Promise<UsdcPaid | 'spent' | 'held' | undefined> {
    const winc = await this.parts.reservations.paidFor(order.itemId, order.bytes, this.#orderer(order))
    return typeof winc === 'bigint' ? { ...facts, paid: true, winc: String(winc) } : winc
  }
}

/** Seconds within which a payment is good: a large body takes its time. */
function timeoutOf(bytes: number): number {
  if (bytes > 100 * mebibyte) return 3600
  return bytes > 10 * mebibyte ? 1800 : 300
}

/** Time for which an offered price is valid. */
function goodMs(bytes: number): number {
  return 1000 * (timeoutOf(bytes) + 60)
}

/** What a payment was looked at for; undefined: it cannot be read. */
function lookedKey({ bytes }: UsdcOrder, read: ReadPayment): string | undefined {
  return isUnreadable(read) ? undefined : `${paymentName(read)} ${bytes}`
}

function wantedOf({ bytes, resource, mimeType }: UsdcWanted): UsdcWanted {
  return { bytes, resource, mimeType }
}

function quoteOf(wanted: UsdcWanted, units: bigint): Quote {
  const { bytes } = wanted
  const description = `Permanent storage of ${bytes} bytes`
  return { ...wantedOf(wanted), units, description, timeoutSeconds: timeoutOf(bytes) }
}

function buyerOf(order: UsdcOrder, read: ReadPayment): { beneficiary: string; asker: string } {
  return { beneficiary: saleBeneficiaryOf(order, read), asker: order.asker }
}
