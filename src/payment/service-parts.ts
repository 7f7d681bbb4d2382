/** The parts of the payment service, each area by a function of its own. `payment-service.ts` joins them. */
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Request } from '../http/exchange.js'
import type { MoneyLedger } from '../ledger/ledger-port.js'
import { Accounts } from './books/accounts.js'
import { Approvals } from './books/approvals.js'
import { CheckTurns } from './books/check-turns.js'
import { LedgerCredits } from './books/credits.js'
import type { ExcludedSenders } from './books/excluded-senders.js'
import { Reservations } from './books/reservations.js'
import { Wallets } from './books/wallets.js'
import type { CardProvider } from './cards/card-provider.js'
import { Cards } from './cards/cards.js'
import type { ChainReader } from './chains/seen-payment.js'
import { TopUps } from './chains/top-ups.js'
import type { FreeTier } from './credits-port.js'
import type { Mailer } from './letters/outbox.js'
import { NamePurchases, purchaseCost } from './names/name-purchases.js'
import type { NameRegistry } from './names/name-registry.js'
import { Reconciler, reconciliationGauges } from './operator/reconciliation.js'
import type { Oracle } from './prices/oracle.js'
import { type NetworkPrice, Prices } from './prices/prices.js'
import { Promotions } from './prices/promotions.js'
import { Quotes } from './prices/quotes.js'
import { creditSettled } from './usdc/credit-settled.js'
import type { OwnedPayments } from './usdc/owned-payments.js'
import { type X402Options, X402Processor } from './usdc/x402-processor.js'
import { X402Sales } from './usdc/x402-sales.js'
import { X402TopUps } from './usdc/x402-top-ups.js'

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

/** How long a price of the network holds, which changes by some percent a day. */
const priceKeptMs = 15 * 60_000

/** Wallets and what they have, what things cost, and the credits that uploads are paid with. */
export interface Money {
  readonly wallets: Wallets
  readonly approvals: Approvals
  readonly accounts: Accounts
  readonly prices: Prices
  readonly promotions: Promotions
  readonly quotes: Quotes
  readonly reservations: Reservations
  readonly credits: LedgerCredits
}

/** The parts of the payment service that keep accounts and know prices. */
export function buildMoney(parts: PaymentServiceParts, confirmed: (sinceMs: number) => number): Money {
  const { ledger, oracle, networkPrice, clock, log, meters, options } = parts
  const now = clock.now
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, now, confirmed)
  const accounts = new Accounts(ledger, wallets, approvals, now)
  const { itemMicroUsd, feePermille } = options
  const prices = new Prices(networkPrice, oracle, clock, { itemMicroUsd, keptMs: priceKeptMs })
  const promotions = new Promotions(ledger, now, async (address) => {
    return (await accounts.payments(address, undefined, 1)).page.length > 0
  })
  const quotes = new Quotes(oracle, feePermille, promotions)
  const owned = { ledger, wallets, approvals }
  const reservations = new Reservations({ ...owned, onMissing: missing(log, meters) })
  const price = (bytes: number): ReturnType<Prices['ofItem']> => prices.ofItem(bytes)
  const credits = new LedgerCredits({ ...owned, reservations, price, turns: new CheckTurns(clock) })
  return { wallets, approvals, accounts, prices, promotions, quotes, reservations, credits }
}

/** Payments on chains. */
export function buildTopUps(
  { ledger, readers, clock, log, options }: PaymentServiceParts,
  { wallets, quotes }: Money,
  excluded: ExcludedSenders,
  confirmed: () => number,
): TopUps {
  const { addresses, lostMs, chainQuestionsPerSecond: questionsPerSecond } = options
  const bounds = { addresses, excluded, lostMs, questionsPerSecond }
  return new TopUps({ ledger, wallets, quotes, readers, clock, confirmed, log, ...bounds })
}

/** Sales of names; undefined where none are sold. */
export function buildNames(
  { ledger, names: registry, clock, log }: PaymentServiceParts,
  { credits, quotes }: Money,
  confirmed: () => number,
): NamePurchases | undefined {
  return registry && new NamePurchases({ ledger, credits, quotes, registry, now: clock.now, confirmed, log })
}

/** Payments by card, for credits and for names. */
export function buildCards(
  { ledger, cards: provider, clock, log }: PaymentServiceParts,
  { wallets, quotes, promotions }: Money,
  names: NamePurchases | undefined,
  confirmed: () => number,
): Cards {
  const bought = async (nonce: string): Promise<unknown> => names?.resumeOne(nonce)
  return new Cards({
    ledger,
    wallets,
    quotes,
    promotions,
    provider,
    now: clock.now,
    confirmed,
    clock,
    log,
    bought,
    spentOn: (nonce) => purchaseCost(ledger, nonce),
  })
}

/** Payments in USDC by x402: the processor that settles them, and the two things that it sells. */
export interface UsdcSelling {
  readonly processor: X402Processor
  readonly topUps: X402TopUps
  readonly sales: X402Sales
}

/** Undefined where no USDC is taken by x402. */
export function buildUsdc(
  { ledger, clock, log, x402 }: PaymentServiceParts,
  { accounts, prices, quotes, reservations }: Money,
  excluded: ExcludedSenders,
  owned: OwnedPayments,
): UsdcSelling | undefined {
  if (x402 === undefined) return undefined
  const parts = { ...x402, ledger, prices, quotes, owned, excluded, clock, log }
  const processor: X402Processor = new X402Processor(parts, (...order) =>
    creditSettled(sales, topUps, ...order),
  )
  const topUps = new X402TopUps({ ledger, accounts, quotes }, processor)
  const sales = new X402Sales({ ...parts, reservations }, processor)
  processor.start()
  return { processor, topUps, sales }
}

/** Compares payments with the books of the card provider, with the chains, and with the settlements in USDC. */
export function buildReconciler(
  { ledger, clock, log, meters }: PaymentServiceParts,
  cards: Cards,
  topUps: TopUps,
  usdc: UsdcSelling | undefined,
): Reconciler {
  const onCompared = meters && reconciliationGauges(meters)
  return new Reconciler({
    ledger,
    cards,
    topUps,
    now: clock.now,
    log,
    ...(onCompared && { onCompared }),
    ...(usdc && { usdc: usdc.processor.books }),
  })
}

/** An item that was accepted without its price: it shows in the log and in a meter, because no answer can say it any more. */
function missing(log: Log, meters: Meters | undefined): (itemId: string) => void {
  const count = meters?.of('payment_unpaid_items_total')
  return (item) => {
    count?.add(1)
    log.error({ item }, 'an item was accepted, and nothing is held back for it: it is not paid')
  }
}
