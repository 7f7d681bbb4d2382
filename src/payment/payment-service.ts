import type { Clock, Timer } from '../actor/clock.js'
import { ConfirmedTime } from '../actor/confirmed-time.js'
import type { Log } from '../actor/log.js'
import { RateWindow } from '../actor/rate-window.js'
import { isRefusal } from '../format/refusal.js'
import type { MoneyLedger } from '../ledger/ledger-port.js'
import type { Route } from '../serving/route.js'
import { accountRoutes } from './books/account-routes.js'
import type { Accounts, BalanceView } from './books/accounts.js'
import type { Approvals } from './books/approvals.js'
import type { LedgerCredits } from './books/credits.js'
import { ExcludedSenders } from './books/excluded-senders.js'
import { type IsKnownWallet, protectedRoutes } from './books/protected-routes.js'
import { accountOf } from './books/wallets.js'
import { cardRoutes } from './cards/card-routes.js'
import type { Cards } from './cards/cards.js'
import { creditsPageRoute, creditsPath } from './cards/credits-page.js'
import type { ChainReader } from './chains/seen-payment.js'
import { topUpRoutes } from './chains/top-up-routes.js'
import type { TopUps } from './chains/top-ups.js'
import type { UsdcPort } from './credits-port.js'
import { type Mailer, Outbox } from './letters/outbox.js'
import type { NamePurchases } from './names/name-purchases.js'
import { nameRoutes } from './names/name-routes.js'
import { operatorRoutes } from './operator/operator-routes.js'
import type { Reconciler } from './operator/reconciliation.js'
import { priceRoutes } from './prices/price-routes.js'
import { promotionRoutes } from './prices/promotion-routes.js'
import type { Promotions } from './prices/promotions.js'
import { serviceInfoRoutes } from './requests/payment-info-routes.js'
import { type PaymentRoute, paymentHostRoutes, type RequestLimits } from './requests/payment-route.js'
import { RequestTurns } from './requests/request-turns.js'
import {
  buildCards,
  buildMoney,
  buildNames,
  buildReconciler,
  buildTopUps,
  buildUsdc,
  type Money,
  type PaymentServiceParts,
  type UsdcSelling,
} from './service-parts.js'
import { OwnedPayments } from './usdc/owned-payments.js'
import { x402CreditRoutes } from './usdc/x402-credit-routes.js'
import type { X402Processor } from './usdc/x402-processor.js'

/** Approvals are over at their second for all readers. This timer returns the credits of expired approvals. */
const expireEveryMs = 1000
const readTimeEveryMs = 60_000
const signEveryMs = 60_000
const mailEveryMs = 15_000
const reconcileEveryMs = 15 * 60_000
const forgetEveryMs = 60_000
const settleEveryMs = 60_000
const quotesEveryMs = 3600_000
const lostEveryMs = 3600_000
/**
 * A signature takes up to half a millisecond. Networks with few of them get their turns (`RequestTurns`) whatever others send,
 * so the bound of all together only bounds the table.
 */
const signedRequests = { windowMs: 1000, each: 100, all: 20_000 }
/** A card payment that was begun takes 2 KiB of the ledger for some hours, and a session of the provider. */
const recordedAnswers = { windowMs: 60_000, each: 60, all: 20_000 }

/** Bounds of requests, each with counters of its own. */
function requestLimits(clock: Clock): RequestLimits {
  return {
    signed: new RateWindow(signedRequests, clock),
    turns: new RequestTurns(clock),
    recorded: new RateWindow(recordedAnswers, clock),
  }
}

/** The payment service on one thread: its routes, and the messages of the upload service. */
export class PaymentService {
  readonly credits: LedgerCredits
  readonly routes: readonly Route[]
  readonly promotions: Promotions
  readonly #timers: readonly Timer[]
  readonly #ledger: MoneyLedger
  readonly #time: ConfirmedTime
  readonly #approvals: Approvals
  readonly #log: Log
  readonly #accounts: Accounts
  readonly #topUps: TopUps
  readonly #excluded: ExcludedSenders
  readonly #cards: Cards
  readonly #processor: X402Processor | undefined
  /** Absent: no USDC is taken by x402. */
  readonly usdc: UsdcPort | undefined
  readonly #names: NamePurchases | undefined
  readonly #mailer: Mailer | undefined
  readonly outbox: Outbox
  readonly reconciler: Reconciler
  readonly #readers: readonly ChainReader[]

  constructor(parts: PaymentServiceParts) {
    const { ledger, readers, mailer, clock, log, options } = parts
    this.#ledger = ledger
    this.#readers = readers
    this.#mailer = mailer
    this.#log = log
    this.#time = new ConfirmedTime(clock, () => ledger.timeMs())
    const confirmed = (sinceMs?: number): number => this.#time.now(sinceMs)
    const money = buildMoney(parts, confirmed)
    this.#approvals = money.approvals
    this.#accounts = money.accounts
    this.promotions = money.promotions
    this.credits = money.credits
    this.#excluded = new ExcludedSenders(options.excluded)
    this.#topUps = buildTopUps(parts, money, this.#excluded, confirmed)
    this.#names = buildNames(parts, money, confirmed)
    this.#cards = buildCards(parts, money, this.#names, confirmed)
    this.outbox = new Outbox({
      ledger,
      giftUrl: options.giftUrl,
      now: clock.now,
      log,
      ...(mailer && { mailer }),
    })
    const owned = new OwnedPayments(ledger, confirmed)
    const usdc = buildUsdc(parts, money, this.#excluded, owned)
    this.#processor = usdc?.processor
    this.usdc = usdc?.sales
    this.reconciler = buildReconciler(parts, this.#cards, this.#topUps, usdc)
    this.routes = paymentHostRoutes(
      this.#paymentRoutes(parts, money, usdc),
      requestLimits(clock),
      parts.clientOf,
    )
    this.#background('time', this.#time.refresh())
    this.#timers = this.#startTimers(clock, options.recheckMs, owned)
  }

  #startTimers(clock: Clock, recheckMs: number, owned: OwnedPayments): readonly Timer[] {
    const lost = oneAtATime(() => this.creditLost())
    const expire = oneAtATime(() => this.#expire())
    return [
      clock.every(readTimeEveryMs, () => this.#background('time', this.#time.refresh())),
      clock.every(expireEveryMs, () => this.#background('expiry', expire())),
      ...this.#rechecks().map((look) => {
        const inTurn = oneAtATime(look)
        return clock.every(recheckMs, () => this.#background('recheck', inTurn()))
      }),
      clock.every(signEveryMs, () => this.#background('signature', this.#ledger.signHead())),
      clock.every(mailEveryMs, () => this.#background('mail', this.outbox.work())),
      clock.every(forgetEveryMs, () => this.#background('owners of payments', owned.forget())),
      clock.every(quotesEveryMs, () => this.#background('quotes of cards', this.forgetQuotes())),
      clock.every(settleEveryMs, () => this.#background('settlements of others', this.finishAbandoned())),
      clock.every(lostEveryMs, () => this.#background('credits that were lost', lost())),
      clock.every(reconcileEveryMs, () => this.#background('reconciliation', this.reconciler.work())),
    ]
  }

  #paymentRoutes(
    { ledger, free, clock, options }: PaymentServiceParts,
    { wallets, accounts, prices, quotes }: Money,
    usdc: UsdcSelling | undefined,
  ): readonly PaymentRoute[] {
    const { release: version, addresses, gateway, privateSecret: secret } = options
    const { now } = clock
    const [cards, purchases] = [this.#cards, this.#names]
    const isKnown: IsKnownWallet = async (address, itemId) => {
      const wallet = await wallets.resolve(address)
      if ((await ledger.account(accountOf(wallet))) !== undefined) return true
      return itemId !== undefined && (await this.credits.ownerOf(itemId)) === wallet
    }
    return [
      ...serviceInfoRoutes({ version, addresses, gateway, creditsPage: creditsPath }),
      ...priceRoutes(prices, quotes),
      ...accountRoutes(accounts, free),
      ...topUpRoutes(this.#topUps),
      ...cardRoutes(cards, accounts, ledger, now),
      creditsPageRoute(cards),
      ...(usdc === undefined ? [] : x402CreditRoutes({ ...usdc, accounts, secret, now })),
      ...promotionRoutes(this.promotions, secret, now),
      ...operatorRoutes(this.outbox, this.reconciler, secret, now),
      ...(purchases === undefined ? [] : nameRoutes({ purchases, wallets, quotes, cards })),
      ...protectedRoutes(this.credits, isKnown, secret, now),
    ]
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
    const changed = await Promise.all(this.#rechecks().map((look) => look()))
    return changed.reduce((sum, one) => sum + one, 0)
  }

  /** A look for each chain, and one for names: a slow node of one chain delays no other chain and no name. */
  #rechecks(): readonly (() => Promise<number>)[] {
    const ofChains = this.#topUps.chains.map((chain) => () => this.#topUps.recheck(chain))
    const names = this.#names
    if (names === undefined) return ofChains
    const ofNames = async (): Promise<number> => {
      const ended = await names.resume()
      await names.registry.tend(this.#time.now())
      return ended
    }
    return [...ofChains, ofNames]
  }

  /**
   * Removes unfinished card payments, after all events since then were carried out. So a payment in time is credited, however
   * late it is reported. Nothing is removed while the provider does not answer. Resolves with their number.
   */
  async forgetQuotes(): Promise<number> {
    const sinceMs = await this.#cards.unpaidSinceMs()
    if (sinceMs === undefined || !(await this.catchUp(sinceMs))) return 0
    return this.#cards.removeUnpaid(async ({ purchase }) => {
      return (purchase && (await this.#names?.unquoted(purchase.nonce))) ?? []
    })
  }

  /** Ends payments in USDC that a service with the same ledger left open. Resolves with how many have ended. */
  async finishAbandoned(): Promise<number> {
    return (await this.#processor?.finishAbandoned()) ?? 0
  }

  /** As `creditLost`. */
  async creditLost(): Promise<number> {
    return (await this.#processor?.creditLost()) ?? 0
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    await this.#processor?.close()
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
    await this.#ledger.expire(this.#time.now())
  }

  #background(what: string, work: Promise<unknown>): void {
    void work.catch((error: unknown) => this.#log.error({ err: error }, `ledger: ${what} failed`))
  }
}

/** Calls `work` unless an earlier call is under way. */
function oneAtATime(work: () => Promise<unknown>): () => Promise<void> {
  let isOn = false
  return async () => {
    if (isOn) return
    isOn = true
    try {
      await work()
    } finally {
      isOn = false
    }
  }
}
