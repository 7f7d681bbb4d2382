import type { Clock, Timer } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import { RateWindow } from '../actor/rate-window.js'
import { isRefusal } from '../format/refusal.js'
import type { Request } from '../http/exchange.js'
import type { MoneyLedger } from '../ledger/ledger-port.js'
import type { Route } from '../serving/route.js'
import { accountRoutes } from './books/account-routes.js'
import { Accounts, type BalanceView } from './books/accounts.js'
import { Approvals } from './books/approvals.js'
import { CheckTurns } from './books/check-turns.js'
import { LedgerCredits } from './books/credits.js'
import { ExcludedSenders } from './books/excluded-senders.js'
import { type Mailer, Outbox } from './books/outbox.js'
import { type IsKnownWallet, protectedRoutes } from './books/protected-routes.js'
import { Reservations } from './books/reservations.js'
import { accountOf, Wallets } from './books/wallets.js'
import { type CallRoute, hostRoutes } from './calls/call.js'
import { serviceInfoRoutes } from './calls/payment-info-routes.js'
import { Turns } from './calls/turns.js'
import type { CardProvider } from './cards/card-provider.js'
import { cardRoutes } from './cards/card-routes.js'
import { Cards } from './cards/cards.js'
import { creditsPageRoute, creditsPath } from './cards/credits-page.js'
import type { ChainReader } from './chains/seen-payment.js'
import { topUpRoutes } from './chains/topup-routes.js'
import { TopUps } from './chains/topups.js'
import type { FreeTier, UsdcPort } from './credits-port.js'
import { NamePurchases } from './names/name-purchases.js'
import type { NameRegistry } from './names/name-registry.js'
import { nameRoutes } from './names/name-routes.js'
import { operatorRoutes } from './operator/operator-routes.js'
import { Reconciler, reconciliationGauges } from './operator/reconciliation.js'
import type { Oracle } from './prices/oracle.js'
import { priceRoutes } from './prices/price-routes.js'
import { type NetworkPrice, Prices } from './prices/prices.js'
import { promotionRoutes } from './prices/promotion-routes.js'
import { Promotions } from './prices/promotions.js'
import { Quotes } from './prices/quotes.js'
import { OwnedPayments } from './usdc/owned-payments.js'
import { x402CreditRoutes } from './usdc/x402-credit-routes.js'
import { X402Desk, type X402DeskParts, type X402Options } from './usdc/x402-desk.js'
import { X402Sales } from './usdc/x402-sales.js'
import { X402TopUps } from './usdc/x402-topups.js'

export interface PaymentServiceOptions {
  readonly privateSecret: string
  readonly feePermille: number
  readonly itemMicroUsd: number
  readonly release: string
  readonly addresses: Readonly<Record<string, string>>
  readonly gateway: string
  /** Senders whose payments are not taken. */
  readonly excluded: readonly string[]
  /** Payments on chains are looked at so often. */
  readonly recheckMs: number
  readonly lostMs: number
  /** Reported payments that are not known here: so many are looked for on each chain. */
  readonly chainQuestionsPerSecond: number
  /** Page where gifts are redeemed. */
  readonly giftUrl: string
}

export interface PaymentServiceParts {
  readonly ledger: MoneyLedger
  readonly oracle: Oracle
  readonly networkPrice: NetworkPrice
  readonly readers: readonly ChainReader[]
  readonly cards: CardProvider
  /** Absent: no names are sold. */
  readonly names?: NameRegistry
  /** Absent: letters stay here. */
  readonly mailer?: Mailer
  /** Absent: nothing is free. */
  readonly free?: FreeTier
  /** Absent: no USDC is taken by x402. */
  readonly x402?: { readonly options: X402Options; readonly meters: Meters }
  /** Absent: nothing is counted. */
  readonly meters?: Meters
  /** Whose requests are counted together; absent: those of the socket's other end. */
  readonly clientOf?: (request: Request) => string
  readonly clock: Clock
  readonly log: Log
  readonly options: PaymentServiceOptions
}

/** Prices change by some percent a day. */
const priceKeptMs = 15 * 60_000
/** Approvals end at their second for all readers. This timer returns the credits of expired approvals. */
const expireEveryMs = 1000
const signEveryMs = 60_000
const mailEveryMs = 15_000
const reconcileEveryMs = 15 * 60_000
const forgetEveryMs = 60_000
const settleEveryMs = 60_000
const quotesEveryMs = 3600_000
/**
 * A signature takes up to half a millisecond. Networks with few of them get their turns (`Turns`) whatever all others send,
 * so the bound of all together only bounds the table.
 */
const signedRequests = { windowMs: 1000, each: 100, all: 20_000 }
/** A card payment that was begun takes 2 KiB of the ledger for some hours, and a session of the provider. */
const keptAnswers = { windowMs: 60_000, each: 60, all: 20_000 }

/** The payment service on one thread: its routes, and the messages of the upload service. */
export class PaymentService {
  readonly credits: LedgerCredits
  readonly routes: readonly Route[]
  readonly promotions: Promotions
  readonly #timers: readonly Timer[]
  readonly #ledger: MoneyLedger
  readonly #approvals: Approvals
  readonly #log: Log
  readonly #accounts: Accounts
  readonly #topUps: TopUps
  readonly #excluded: ExcludedSenders
  readonly #cards: Cards
  readonly #desk: X402Desk | undefined
  /** Absent: no USDC is taken by x402. */
  readonly usdc: UsdcPort | undefined
  readonly #names: NamePurchases | undefined
  readonly #mailer: Mailer | undefined
  readonly outbox: Outbox
  readonly reconciler: Reconciler
  readonly #readers: readonly ChainReader[]
  #isRechecking = false

  constructor({
    ledger,
    oracle,
    networkPrice,
    readers,
    cards,
    names,
    mailer,
    free,
    x402,
    meters,
    clientOf,
    clock,
    log,
    options,
  }: PaymentServiceParts) {
    const now = (): number => clock.now()
    const wallets = new Wallets(ledger)
    this.#approvals = new Approvals(ledger, wallets, now)
    this.#ledger = ledger
    this.#log = log
    const accounts = new Accounts(ledger, wallets, this.#approvals, now)
    this.#accounts = accounts
    const prices = new Prices(networkPrice, oracle, clock, {
      itemMicroUsd: options.itemMicroUsd,
      keptMs: priceKeptMs,
    })
    this.promotions = new Promotions(ledger, now, async (address) => {
      return (await accounts.payments(address, undefined, 1)).page.length > 0
    })
    const quotes = new Quotes(oracle, options.feePermille, this.promotions)
    const price = (bytes: number): ReturnType<Prices['ofItem']> => prices.ofItem(bytes)
    const booked = { ledger, wallets, approvals: this.#approvals }
    const reservations = new Reservations({ ...booked, onMissing: missing(log, meters) })
    this.credits = new LedgerCredits({ ...booked, reservations, price, turns: new CheckTurns(clock) })
    const { lostMs, recheckMs, chainQuestionsPerSecond: questionsPerSecond } = options
    this.#excluded = new ExcludedSenders(options.excluded)
    const common = { ledger, wallets, quotes, now, clock, log }
    this.#readers = readers
    this.#topUps = new TopUps({
      ...common,
      readers,
      addresses: options.addresses,
      excluded: this.#excluded,
      lostMs,
      questionsPerSecond,
    })
    this.#names = names && new NamePurchases({ ...common, credits: this.credits, registry: names })
    this.#mailer = mailer
    const bought = async (nonce: string): Promise<unknown> => this.#names?.resumeOne(nonce)
    this.#cards = new Cards({ ...common, promotions: this.promotions, provider: cards, bought })
    this.outbox = new Outbox({ ...common, ...(mailer && { mailer }), giftUrl: options.giftUrl })
    const onCompared = meters && reconciliationGauges(meters)
    const owned = new OwnedPayments(ledger, now)
    const selling =
      x402 &&
      this.#selling(
        { ...x402, ledger, prices, quotes, owned, excluded: this.#excluded, clock, log },
        reservations,
      )
    this.#desk = selling?.desk
    this.usdc = selling?.sales
    const compared = {
      ...common,
      cards: this.#cards,
      topUps: this.#topUps,
      ...(onCompared && { onCompared }),
      ...(selling && { usdc: selling.desk.books }),
    }
    this.reconciler = new Reconciler(compared)
    const isKnown: IsKnownWallet = async (address, itemId) => {
      const wallet = await wallets.find(address)
      if ((await ledger.account(accountOf(wallet))) !== undefined) return true
      return itemId !== undefined && (await this.credits.ownerOf(itemId)) === wallet
    }
    const { release: version, addresses, gateway } = options
    const calls = [
      ...serviceInfoRoutes({ version, addresses, gateway, creditsPage: creditsPath }),
      ...priceRoutes(prices, quotes),
      ...accountRoutes(accounts, free),
      ...topUpRoutes(this.#topUps),
      ...cardRoutes(this.#cards, accounts, ledger, now),
      creditsPageRoute(this.#cards),
      ...(selling === undefined
        ? []
        : x402CreditRoutes({ ...selling, accounts, secret: options.privateSecret, now })),
      ...promotionRoutes(this.promotions, options.privateSecret, now),
      ...operatorRoutes(this.outbox, this.reconciler, options.privateSecret, now),
      ...this.#nameRoutes(wallets, quotes),
      ...protectedRoutes(this.credits, isKnown, options.privateSecret, now),
    ]
    this.routes = hostRoutes(
      calls,
      {
        signed: new RateWindow(signedRequests, clock),
        turns: new Turns(clock),
        kept: new RateWindow(keptAnswers, clock),
      },
      clientOf,
    )
    this.#timers = [
      clock.every(expireEveryMs, () => this.#background('expiry', this.#expire())),
      clock.every(recheckMs, () => this.#background('recheck', this.#recheck())),
      clock.every(signEveryMs, () => this.#background('signature', ledger.signHead())),
      clock.every(mailEveryMs, () => this.#background('mail', this.outbox.work())),
      clock.every(forgetEveryMs, () => this.#background('owners of payments', owned.forget())),
      clock.every(quotesEveryMs, () => this.#background('quotes of cards', this.forgetQuotes())),
      clock.every(settleEveryMs, () => this.#background('settlements of others', this.takeUpLeft())),
      clock.every(reconcileEveryMs, () => this.#background('reconciliation', this.reconciler.work())),
    ]
  }

  /** The desk for USDC, and what is sold there. */
  #selling(
    parts: X402DeskParts,
    reservations: Reservations,
  ): { readonly desk: X402Desk; readonly topUps: X402TopUps; readonly sales: X402Sales } {
    const ledger = this.#ledger
    const desk: X402Desk = new X402Desk(parts, (client, payment, settled) =>
      X402Sales.isSale(client)
        ? sales.credit(client, payment, settled)
        : topUps.credit(client, payment, settled),
    )
    const topUps = new X402TopUps({ ledger, accounts: this.#accounts, quotes: parts.quotes }, desk)
    const sales = new X402Sales({ ...parts, ledger, reservations }, desk)
    desk.start()
    return { desk, topUps, sales }
  }

  #nameRoutes(wallets: Wallets, quotes: Quotes): CallRoute[] {
    const purchases = this.#names
    return purchases === undefined ? [] : nameRoutes({ purchases, wallets, quotes, cards: this.#cards })
  }

  /** From now on payments of these senders are not taken. */
  exclude(senders: readonly string[]): void {
    this.#excluded.use(senders)
  }

  /** Carries out events that the card provider reported while the service was down. False where some are left. */
  async catchUp(sinceMs: number): Promise<boolean> {
    let isAll = true
    let after: string | undefined
    do {
      const page = await this.#cards.provider.since(sinceMs, after)
      if (isRefusal(page)) {
        this.#log.warn(
          { reason: page.message },
          'missed events could not be requested from the card provider',
        )
        return false
      }
      for (const event of page.entries) {
        try {
          await this.#cards.handle(event)
        } catch (error) {
          // A failed refund must not keep other payments from being credited. It is repeated at the next start.
          isAll = false
          this.#log.error({ err: error, event }, 'a missed event of the card provider could not be recorded')
        }
      }
      after = page.next
    } while (after !== undefined)
    return isAll
  }

  /** What a wallet has; undefined where nobody knows it. */
  balanceOf(address: string): Promise<BalanceView | undefined> {
    return this.#accounts.balance(address)
  }

  /** Looks at everything that waits for others: payments on chains, purchases of names. Resolves with how much changed. */
  async recheck(): Promise<number> {
    const changed = await this.#topUps.recheck()
    const ended = (await this.#names?.resume()) ?? 0
    await this.#names?.registry.tend()
    return changed + ended
  }

  /**
   * Removes unfinished card payments, after all events since then were carried out. So a payment in time is credited, however
   * late it is reported. Nothing is removed while the provider does not answer. Resolves with their number.
   */
  async forgetQuotes(): Promise<number> {
    const sinceMs = await this.#cards.unpaidSinceMs()
    if (sinceMs === undefined || !(await this.catchUp(sinceMs))) return 0
    return this.#cards.forget(async ({ purchase }) => {
      return (purchase && (await this.#names?.unquoted(purchase.nonce))) ?? []
    })
  }

  /** Ends payments in USDC that a service with the same ledger left open. Resolves with how many have ended. */
  async takeUpLeft(): Promise<number> {
    return (await this.#desk?.takeUpLeft()) ?? 0
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    await this.#desk?.close()
    this.#mailer?.close()
    await this.#names?.registry.close()
    await Promise.all(this.#readers.map((reader) => reader.close()))
    // The end must not wait for a database that is gone: the head is signed at the next start.
    await this.#ledger.signHead().catch((error: unknown) => {
      this.#log.error({ err: error }, 'ledger: the signature at the stop failed')
    })
    await this.#ledger.close()
  }

  async #expire(): Promise<void> {
    await this.#approvals.expire()
    await this.#ledger.expire()
  }

  async #recheck(): Promise<void> {
    if (this.#isRechecking) return
    this.#isRechecking = true
    try {
      await this.recheck()
    } finally {
      this.#isRechecking = false
    }
  }

  #background(what: string, work: Promise<unknown>): void {
    void work.catch((error: unknown) => this.#log.error({ err: error }, `ledger: ${what} failed`))
  }
}

/** An item that was accepted without its price: it shows in the log and in a meter, because no answer can say it any more. */
function missing(log: Log, meters: Meters | undefined): (itemId: string) => void {
  const count = meters?.of('payment_unpaid_items_total')
  return (item) => {
    count?.add(1)
    log.error({ item }, 'an item was accepted, and nothing is held back for it: it is not paid')
  }
}
