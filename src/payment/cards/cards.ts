import type { Clock } from '../../actor/clock.js'
import { OutwardTurns } from '../../admission/outward-turns.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { RecordChange } from '../../ledger/ledger-port.js'
import { type Denied, isDenied } from '../credits-port.js'
import { QuoteIds } from '../prices/quote-ids.js'
import { type Quotes, quoteLifeMs } from '../prices/quotes.js'
import { type CardEventParts, CardEvents, chargedLateMs } from './card-events.js'
import type { CardEvent, CardProvider, PaymentSession, SessionWish } from './card-provider.js'
import { type CardQuote, readQuote } from './card-quote.js'
import {
  quoteKind as kind,
  oldestDueMs,
  removeUnpaidQuotes,
  type UnpaidQuote,
  unpaidMark,
} from './unpaid-quotes.js'

/** Sessions that are begun at the provider. It has a limit for all requests: Stripe a hundred requests a second. */
const sessionTurns = { perSecond: 20, burst: 60, eachPerMinute: 60 }

export interface CardWish extends Omit<SessionWish, 'quoteId' | 'amount' | 'expiresMs'> {
  /** IP address of who begins the payment. */
  readonly client: string
  readonly destination: string
  readonly destinationType: string
  readonly amount: bigint
  readonly codes: readonly string[]
  readonly giftMessage?: string
  readonly purchase?: CardQuote['purchase']
  /** Written together with the quote. */
  readonly kept?: readonly RecordChange[]
}

export interface CardParts extends CardEventParts {
  readonly quotes: Quotes
  readonly clock: Clock
}

/**
 * Card payments: `openSession` promises a quote, the provider charges the card and reports it (`CardEvents`).
 */
export class Cards {
  readonly #ids: QuoteIds
  readonly #turns: OutwardTurns
  readonly #events: CardEvents

  constructor(private readonly parts: CardParts) {
    this.#ids = new QuoteIds(parts.ledger)
    this.#events = new CardEvents(parts, this.#ids)
    this.#turns = new OutwardTurns(sessionTurns, parts.clock)
  }

  get provider(): CardProvider {
    return this.parts.provider
  }

  async openSession(
    wish: CardWish,
  ): Promise<{ readonly quote: CardQuote; readonly session: PaymentSession } | Denied | Refusal> {
    const { quotes, wallets, provider, ledger, now } = this.parts
    const { kept = [], purchase, client, ...given } = wish
    const { currency, codes, giftMessage } = given
    const isMail = wish.destinationType === 'email'
    const destination = isMail ? wish.destination : await wallets.resolve(wish.destination)
    const priced = await quotes.ofFiat(currency, wish.amount, codes, isMail ? undefined : destination)
    if (isRefusal(priced) || isDenied(priced)) return priced
    const crowded = await this.#turns.wait(client)
    if (crowded !== undefined) return crowded
    const { winc, adjustments, fees, actualPaymentAmount: amount, quotedPaymentAmount: quotedAmount } = priced
    const quote: CardQuote = {
      id: await this.#ids.make(),
      state: 'open',
      destination,
      destinationType: wish.destinationType,
      winc,
      currency,
      promotedWinc: String((BigInt(winc) * BigInt(quotedAmount - amount)) / BigInt(quotedAmount)),
      amount,
      quotedAmount,
      expiresMs: now() + quoteLifeMs,
      codes,
      adjustments,
      fees,
      ...(giftMessage === undefined ? {} : { giftMessage }),
      ...(purchase === undefined ? {} : { purchase }),
    }
    // The quote is written first: a payment for an unknown quote would have to be refunded.
    await ledger.commit({
      transfers: [],
      records: [
        { kind, key: quote.id, value: JSON.stringify(quote), expected: 0 },
        unpaidMark(quote),
        ...kept,
      ],
    })
    const session = await provider.open({ ...given, quoteId: quote.id, amount, expiresMs: quote.expiresMs })
    return isRefusal(session) ? session : { quote, session }
  }

  async find(id: string): Promise<CardQuote | undefined> {
    const stored = await this.parts.ledger.record(kind, id)
    return stored === undefined ? undefined : readQuote(stored)
  }

  /** Whether a quote of this name was one of this ledger, kept or not. */
  isOwn(id: string): Promise<boolean> {
    return this.#ids.isOwn(id)
  }

  /** As `CardEvents.handle`. */
  handle(event: CardEvent): Promise<void> {
    return this.#events.handle(event)
  }

  /** When the oldest unpaid quote began that can be removed; undefined: there is none. */
  async unpaidSinceMs(): Promise<number | undefined> {
    const overMs = await oldestDueMs(this.parts.ledger, this.parts.confirmed())
    return overMs === undefined ? undefined : overMs - quoteLifeMs - chargedLateMs
  }

  /** Removes unpaid quotes and their records. Resolves with their number. */
  removeUnpaid(also: (quote: UnpaidQuote) => Promise<readonly RecordChange[]>): Promise<number> {
    const { ledger, confirmed, provider } = this.parts
    return removeUnpaidQuotes(ledger, confirmed(), async (quote) => [
      ...(await also(quote)),
      ...((await provider.gone?.(quote.id)) ?? []),
    ])
  }
}
