import type { Log } from '../../actor/log.js'
import { isRefusal } from '../../format/refusal.js'
import {
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'
import type { MoveOrder } from '../../ledger/transfer.js'
import { historyRecord } from '../books/accounts.js'
import { cardDayKind, dayRecord } from '../books/days.js'
import { duePurchase } from '../books/due-purchases.js'
import { revenue } from '../books/reservation.js'
import { accountOf, type Wallets } from '../books/wallets.js'
import { isDenied } from '../credits-port.js'
import { type Gift, giftAccount, giftKind } from '../letters/gifts.js'
import { giftMail } from '../letters/outbox.js'
import type { Promotions } from '../prices/promotions.js'
import type { QuoteIds } from '../prices/quote-ids.js'
import type { CardEvent, CardProvider } from './card-provider.js'
import { type CardQuote, quoteChanged, quoteEnded, readQuote } from './card-quote.js'
import { quoteKind as kind } from './unpaid-quotes.js'

/** Payment of the provider to its quote: what is taken back is named by the payment only. */
const paymentKind = 'card-payment'
/** Payments that were taken back before they were reported: events come in any order. */
const takenKind = 'card-taken-back'
/** What is known of each dispute (`DisputeState`). */
const disputeKind = 'card-dispute'
type DisputeState = 'withdrawn' | 'reinstated'
/** The card may be charged this long before the provider reports it. */
export const chargedLateMs = 5 * 60_000

type QuoteEvent = Exclude<CardEvent, { kind: 'other' }>

export interface CardEventParts {
  readonly ledger: MoneyLedger
  readonly wallets: Wallets
  readonly promotions: Promotions
  readonly provider: CardProvider
  readonly now: () => number
  /** As `ConfirmedTime.now`. */
  readonly confirmed: () => number
  readonly log: Log
  /** Called with a purchase whose payment was credited. May reject: the record of due purchases repeats the call. */
  readonly bought?: (nonce: string) => Promise<unknown>
  /** The winc that such a purchase has spent; undefined: it has not ended. */
  readonly spentOn: (nonce: string) => Promise<bigint | undefined>
}

/** Carries out what the provider reports of payments: each is credited once, sent back, or taken back. */
export class CardEvents {
  constructor(
    private readonly parts: CardEventParts,
    private readonly ids: Pick<QuoteIds, 'isOwn'>,
  ) {}

  /** Carries out an event of the provider: credits or takes back. Events may be repeated, late, and in any order. */
  async handle(event: CardEvent): Promise<void> {
    if (event.kind === 'other') return
    for (let tries = 0; tries < 20; tries += 1) {
      const stored = await this.parts.ledger.record(kind, await this.#quoteOf(event))
      if (stored === undefined) {
        if (event.kind === 'disputed' && !(await this.#recordDispute(event))) continue
        if (event.kind === 'reinstated' && !(await this.#forgetDispute(event.payment))) continue
        if (event.kind === 'paid' && (await this.ids.isOwn(event.quoteId)))
          return this.#refundExpired(event.payment)
        this.parts.log.warn({ event }, 'a card payment belongs to no quote: nothing is credited for it')
        return
      }
      const quote = readQuote(stored)
      if (!(await this.#carryOut(stored, quote, event))) continue
      if (event.kind === 'paid' && quote.purchase !== undefined) await this.#bought(quote.purchase.nonce)
      return
    }
    throw new Error(`the card payment ${event.payment} could not be recorded`)
  }

  /** False: the quote has changed meanwhile. */
  #carryOut(stored: LedgerRecord, quote: CardQuote, event: QuoteEvent): Promise<boolean> {
    switch (event.kind) {
      case 'paid':
        return this.#creditPaid(stored, quote, event)
      case 'disputed':
        return this.#takeBackDisputed(stored, quote, event)
      case 'reinstated':
        return this.#giveBack(stored, quote, event)
    }
  }

  /** Buys a name. The payment is credited in any case; a failed purchase is repeated in the background. */
  async #bought(nonce: string): Promise<void> {
    try {
      await this.parts.bought?.(nonce)
    } catch (error) {
      this.parts.log.error(
        { err: error, nonce },
        'a name that is paid for could not be bought yet: tried again later',
      )
    }
  }

  /** Refunds a payment whose quote expired and was removed. */
  async #refundExpired(payment: string): Promise<void> {
    const { ledger, log } = this.parts
    if ((await ledger.record(takenKind, payment)) !== undefined) return
    log.warn({ payment }, 'a card payment is refunded: its quote was over long ago')
    await this.#refund(payment)
    const value = JSON.stringify('the quote was over')
    await ledger.commit({ transfers: [], records: [{ kind: takenKind, key: payment, value }] })
  }

  /** Refunds a payment. The provider does it once, however often it is requested. */
  async #refund(payment: string): Promise<void> {
    const sent = await this.parts.provider.refund(payment)
    if (isRefusal(sent))
      throw new Error(`the card payment ${payment} could not be sent back: ${sent.message}`)
  }

  async #quoteOf({ quoteId, payment }: QuoteEvent): Promise<string> {
    if (quoteId !== '') return quoteId
    const found = await this.parts.ledger.record(paymentKind, payment)
    return found === undefined ? '' : (JSON.parse(found.value) as string)
  }

  /** Records a dispute before its payment is reported. False where the payment was credited meanwhile: its quote is known now. */
  async #recordDispute({ payment, reason }: CardEvent & { kind: 'disputed' }): Promise<boolean> {
    const { ledger } = this.parts
    if (payment === '' || (await ledger.record(takenKind, payment)) !== undefined) return true
    const uncredited = { kind: paymentKind, key: payment, value: undefined, expected: 0 }
    const taken = { kind: takenKind, key: payment, value: JSON.stringify(reason), expected: 0 }
    return !isRejected(await ledger.commit({ transfers: [], records: [uncredited, taken] }))
  }

  /** A dispute that was won before its payment is reported: the payment is credited as any other. False: it changed meanwhile. */
  async #forgetDispute(payment: string): Promise<boolean> {
    const taken = await this.parts.ledger.record(takenKind, payment)
    if (taken === undefined) return true
    const record = { kind: takenKind, key: payment, value: undefined, expected: taken.version }
    return !isRejected(await this.parts.ledger.commit({ transfers: [], records: [record] }))
  }

  async #creditPaid(
    stored: LedgerRecord,
    quote: CardQuote,
    event: CardEvent & { kind: 'paid' },
  ): Promise<boolean> {
    const { ledger, confirmed, promotions, wallets } = this.parts
    if (quote.state !== 'open' && quote.state !== 'refunding') return true
    const { payment } = event
    const taken = await ledger.record(takenKind, payment)
    if (taken !== undefined) {
      const next: CardQuote = { ...quote, state: 'disputed', payment, why: JSON.parse(taken.value) as string }
      return !isRejected(await ledger.commit({ transfers: [], records: quoteEnded(stored, next) }))
    }
    if (quote.state === 'refunding') return this.#refundQuote(stored, quote)
    // The time of the charge counts, not that of the event: the service may have been down meanwhile.
    const isLate = quote.expiresMs + chargedLateMs < (event.paidMs ?? confirmed())
    const isOther = event.amount !== quote.amount || event.currency !== quote.currency
    const { wallet } = await wallets.resolveGuarded(quote.destination)
    const uses = await promotions.usedBy(quote.codes, quote.id, wallet)
    if (isLate || isOther || isDenied(uses)) {
      const why = isLate ? 'the quote was over' : isDenied(uses) ? uses.text : 'it is another amount'
      // Recorded before it is requested: another service of this ledger may credit the same payment at this moment.
      await ledger.commit({
        transfers: [],
        records: [quoteChanged(stored, { ...quote, state: 'refunding', payment, why })],
      })
      return false
    }
    const { transfers, records } = await this.#creditOrder(quote, payment)
    const named = { kind: paymentKind, key: payment, value: JSON.stringify(quote.id) }
    const untaken = { kind: takenKind, key: payment, value: undefined, expected: 0 }
    const paid = quoteEnded(stored, { ...quote, state: 'paid', payment })
    return !isRejected(
      await ledger.commit({ transfers, records: [...paid, named, untaken, ...uses, ...records] }),
    )
  }

  /** Requests the refund that was decided. It is repeated with each event of the payment until the provider confirms it. */
  async #refundQuote(stored: LedgerRecord, quote: CardQuote): Promise<boolean> {
    const { id, payment = '', why } = quote
    this.parts.log.warn({ quote: id, payment, why }, 'a card payment is refunded')
    await this.#refund(payment)
    const records = quoteEnded(stored, { ...quote, state: 'refunded' })
    return !isRejected(await this.parts.ledger.commit({ transfers: [], records }))
  }

  async #creditOrder(
    quote: CardQuote,
    payment: string,
  ): Promise<{ readonly transfers: readonly MoveOrder[]; readonly records: readonly RecordChange[] }> {
    const { provider, now, wallets } = this.parts
    const { id, winc, promotedWinc, destination, destinationType, giftMessage } = quote
    const isGift = destinationType === 'email'
    const { wallet, conditions } = await wallets.resolveGuarded(destination)
    const credit = isGift ? giftAccount(id) : accountOf(wallet)
    const about = {
      type: 'fiat',
      paymentAmount: String(quote.amount),
      currencyType: quote.currency,
      receiptId: id,
      paymentProvider: provider.name,
      payment,
      wincCredited: winc,
      ...(giftMessage === undefined ? {} : { giftMessage }),
    }
    const facts = { kind: 'posted', credit, reference: id, about } as const
    const paid = BigInt(winc) - BigInt(promotedWinc)
    const reason = isGift ? 'gifted_payment' : 'payment'
    const all: MoveOrder[] = [
      { ...facts, id: `card:${id}`, debit: `source:${provider.name}`, amount: paid, reason },
      {
        ...facts,
        id: `card:${id}:promotion`,
        debit: 'promotions',
        amount: BigInt(promotedWinc),
        reason: 'promotion',
      },
    ]
    const transfers = all.filter(({ amount }) => amount > 0n)
    const [first] = transfers
    const gift: Gift = {
      id,
      email: destination,
      winc,
      state: 'open',
      createdMs: now(),
      ...(giftMessage === undefined ? {} : { giftMessage }),
    }
    const kept: RecordChange[] = isGift
      ? [{ kind: giftKind, key: id, value: JSON.stringify(gift), expected: 0 }, ...giftMail(gift)]
      : first === undefined
        ? []
        : [historyRecord(wallet, now(), first.id), ...conditions]
    const due = quote.purchase === undefined ? [] : [duePurchase(quote.purchase.nonce)]
    return { transfers, records: [...kept, ...due, dayRecord(cardDayKind, now(), id)] }
  }

  /** What the name has cost that the payment was for. Throws while that is open: the event is repeated. */
  async #spentOn({ id, winc, purchase }: CardQuote): Promise<bigint> {
    if (purchase === undefined) return 0n
    await this.#bought(purchase.nonce)
    const spent = await this.parts.spentOn(purchase.nonce)
    if (spent === undefined)
      throw new Error(`the name that the quote ${id} pays for is being bought: the dispute waits`)
    return spent < BigInt(winc) ? spent : BigInt(winc)
  }

  /** Takes the credits back after a dispute, also where they are spent. */
  async #takeBackDisputed(
    stored: LedgerRecord,
    quote: CardQuote,
    event: CardEvent & { kind: 'disputed' },
  ): Promise<boolean> {
    const { ledger, provider, log } = this.parts
    const { dispute = quote.id, payment, reason } = event
    // A refund of ours is under way, or was made.
    if (quote.state === 'refunded' || (event.isRefund && quote.state !== 'paid')) return true
    if ((await ledger.record(disputeKind, dispute)) !== undefined) return true
    const noted = disputeRecord(dispute, 'withdrawn', 0)
    if (quote.state === 'disputed')
      return !isRejected(await ledger.commit({ transfers: [], records: [noted] }))
    log.warn({ quote: quote.id, payment, reason }, 'a card payment was taken back')
    const next: CardQuote = { ...quote, state: 'disputed', payment, why: reason }
    // Reported before the payment itself or before its refund: it is not credited.
    if (quote.state === 'open' || quote.state === 'refunding')
      return !isRejected(
        await ledger.commit({ transfers: [], records: [...quoteEnded(stored, next), noted] }),
      )
    const { holder, records } = await this.#holderOf(quote, 'open', 'withdrawn')
    const spent = await this.#spentOn(quote)
    const facts = { kind: 'posted', credit: `source:${provider.name}`, reason: 'chargeback' } as const
    const back = { ...facts, reference: quote.id, mayOverdraw: true } as const
    const id = chargebackOf(quote, dispute)
    const parts: MoveOrder[] = [
      { ...back, id, debit: holder, amount: BigInt(quote.winc) - spent },
      // Whoever pays names the wallet: what was spent for the name was never there to be used otherwise.
      { ...back, id: `${id}:purchase`, debit: revenue, amount: spent },
    ]
    const transfers = parts.filter(({ amount }) => amount > 0n)
    const changes = [quoteChanged(stored, next), noted, ...records]
    return !isRejected(await ledger.commit({ transfers, records: changes }))
  }

  /** Gives the credits back that a dispute took, which was won. */
  async #giveBack(
    stored: LedgerRecord,
    quote: CardQuote,
    event: CardEvent & { kind: 'reinstated' },
  ): Promise<boolean> {
    const { ledger, provider, log } = this.parts
    const { dispute = quote.id, payment } = event
    const known = await ledger.record(disputeKind, dispute)
    if (known !== undefined && JSON.parse(known.value) === 'reinstated') return true
    // Kept also where it comes first: then the withdrawal takes nothing.
    const noted = disputeRecord(dispute, 'reinstated', known?.version ?? 0)
    const id = chargebackOf(quote, dispute)
    const [taken, bought] = [await ledger.transfer(id), await ledger.transfer(`${id}:purchase`)]
    if (quote.state !== 'disputed' || (taken === undefined && bought === undefined)) {
      if (known !== undefined)
        log.error(
          { quote: quote.id, payment },
          'a dispute was won, and nothing was taken for it: compare by hand',
        )
      return !isRejected(await ledger.commit({ transfers: [], records: [noted] }))
    }
    log.warn({ quote: quote.id, payment }, 'a card payment came back: its dispute was won')
    const { holder, records } = await this.#holderOf(quote, 'withdrawn', 'open')
    const facts = { kind: 'posted', debit: `source:${provider.name}`, reason: 'chargeback_reversed' } as const
    const transfers = [
      { ...facts, id: `${id}:reversed`, credit: holder, amount: taken?.amount ?? 0n },
      { ...facts, id: `${id}:purchase:reversed`, credit: revenue, amount: bought?.amount ?? 0n },
    ].flatMap((move) => (move.amount > 0n ? [{ ...move, reference: quote.id }] : []))
    const { why: _, ...paid } = quote
    const changes = [quoteChanged(stored, { ...paid, state: 'paid', payment }), noted, ...records]
    return !isRejected(await ledger.commit({ transfers, records: changes }))
  }

  /** The account that has the credits of a quote, and what changes with it: a gift that nobody has redeemed becomes `next`. */
  async #holderOf(
    quote: CardQuote,
    from: Gift['state'],
    next: Gift['state'],
  ): Promise<{ readonly holder: string; readonly records: readonly RecordChange[] }> {
    const { ledger, wallets } = this.parts
    const stored = quote.destinationType === 'email' ? await ledger.record(giftKind, quote.id) : undefined
    const gift = stored === undefined ? undefined : (JSON.parse(stored.value) as Gift)
    if (stored !== undefined && gift?.state === from) {
      const value = JSON.stringify({ ...gift, state: next })
      const records = [{ kind: giftKind, key: quote.id, value, expected: stored.version }]
      return { holder: giftAccount(quote.id), records }
    }
    const { wallet, conditions } = await wallets.resolveGuarded(gift?.redeemedBy ?? quote.destination)
    return { holder: accountOf(wallet), records: conditions }
  }
}

/** `expected`: the version of the record in whose place it comes; 0: there is none. */
function disputeRecord(dispute: string, state: DisputeState, expected: number): RecordChange {
  return { kind: disputeKind, key: dispute, value: JSON.stringify(state), expected }
}

/** Names what one dispute took. */
function chargebackOf({ id }: CardQuote, dispute: string): string {
  return dispute === id ? `chargeback:${id}` : `chargeback:${id}:${dispute}`
}
