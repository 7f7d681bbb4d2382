import type { Log } from '../../actor/log.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import {
  isLedgerGone,
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'
import type { ChangeAction, ChangeWish } from '../../names/change.js'
import { isNoSale, type LeaseWish, type NoSale } from '../../names/lease.js'
import type { LeaseDone } from '../../names/lease-registry.js'
import type { LedgerCredits } from '../books/credits.js'
import { duePurchaseKind } from '../books/due-purchases.js'
import type { Denied, Payer } from '../credits-port.js'
import type { Quotes } from '../prices/quotes.js'
import { rateNumber, wincOfMicroUsd, wincOfToken } from '../prices/rates.js'
import type { NameRegistry } from './name-registry.js'
import { isSignedBy, type OwnerTransaction, ownerTransaction } from './owner-transaction.js'

/** What somebody pays a registry of names to do. */
export type NameDeed =
  | { readonly action: 'buy'; readonly wish: LeaseWish }
  | { readonly action: ChangeAction; readonly record: ChangeWish }

/** A purchase, by its nonce, and what became of it. */
export interface NamePurchase {
  readonly nonce: string
  /**
   * `quoted`: waits for a card to be charged. `signing`: paid, and waits for the owner of the name to sign. `pending`: paid, and
   * not known to be carried out; with a `why`, not to be carried out but to be refunded.
   */
  readonly state: 'quoted' | 'signing' | 'pending' | 'success' | 'failed'
  readonly deed: NameDeed
  /** The future holder of the name; for a change, the address that requested it. */
  readonly owner: string
  readonly payer: Payer
  /** What the owner has to sign. */
  readonly signing?: OwnerTransaction
  readonly winc: string
  /** Millionths of ARIO; '0' for what costs a fee of ours only. */
  readonly mario: string
  readonly usdAr: number
  readonly usdArio: number
  readonly createdMs: number
  readonly done?: LeaseDone
  readonly failedMs?: number
  readonly why?: string
}

/** What a deed costs at this moment. */
export interface NamePrice {
  readonly winc: bigint
  readonly mario: bigint
  readonly usdAr: number
  readonly usdArio: number
}

export interface NameOrder {
  readonly nonce: string
  readonly deed: NameDeed
  readonly owner: string
  readonly payer: Payer
  /** Written with the payment: what may not be used twice. */
  readonly used?: RecordChange
  /** It is carried out when the owner, whose address is one of Solana, has signed a transaction that contains this. */
  readonly signed?: string
}

const kind = 'name-purchase'
/** Changing a record costs the network some thousandths of a cent. */
const recordMicroUsd = 1000n
const resumedAtOnce = 100
/** Time for the wallet's answer. Credits are reserved meanwhile. */
const signMs = 5 * 60_000
const unsignedText = 'The owner has not signed in time'

/** The name that its credits are reserved under. Ids of items have no colon in them. */
function holdName(nonce: string): string {
  return `name:${nonce}`
}

function denied(status: Denied['status'], text: string): Denied {
  return { denied: true, status, text }
}

export interface NamePurchaseParts {
  readonly ledger: MoneyLedger
  readonly credits: LedgerCredits
  readonly quotes: Quotes
  readonly registry: NameRegistry
  readonly now: () => number
  /** As `ConfirmedTime.now`. */
  readonly confirmed: () => number
  readonly log: Log
}

/**
 * Sells names for credits. The credits are reserved under the nonce, then the registry is called. Its answer decides whether they
 * are settled or refunded. Without an answer they stay reserved and the call is repeated, so that name and payment always agree.
 */
export class NamePurchases {
  constructor(private readonly parts: NamePurchaseParts) {}

  get registry(): NameRegistry {
    return this.parts.registry
  }

  async price(deed: NameDeed): Promise<NamePrice | NoSale | Refusal> {
    const { registry, quotes } = this.parts
    const rates = await quotes.rates()
    if (isRefusal(rates)) return rates
    const facts = { usdAr: rateNumber(rates.usd.ar), usdArio: rateNumber(rates.usd.ario) }
    if (deed.action !== 'buy') return { ...facts, winc: wincOfMicroUsd(recordMicroUsd, rates), mario: 0n }
    const priced = await registry.price(deed.wish)
    if (isRefusal(priced) || isNoSale(priced)) return priced
    const { mario } = priced
    // Rounded up: what the registry takes must be paid for.
    return { ...facts, mario, winc: wincOfToken('ario', mario, rates) + 1n }
  }

  async find(nonce: string): Promise<NamePurchase | undefined> {
    const stored = await this.parts.ledger.record(kind, nonce)
    return stored === undefined ? undefined : read(stored)
  }

  /** Pays and carries out, once for a nonce: again, it goes on where it was. */
  async buy(order: NameOrder): Promise<NamePurchase | Denied | Refusal> {
    const { nonce, deed, owner, payer, used } = order
    const before = await this.find(nonce)
    if (before !== undefined) {
      const isSame = JSON.stringify([before.deed, before.owner]) === JSON.stringify([deed, owner])
      if (!isSame || before.payer.address !== payer.address)
        return denied(400, 'The nonce was used for another purchase')
      return this.resumeOne(nonce)
    }
    const price = await this.price(deed)
    if (isRefusal(price)) return price
    if (isNoSale(price)) return denied(400, price.noSale)
    const purchase = made(order, price, order.signed === undefined ? 'pending' : 'signing', this.parts.now())
    const records = [
      { kind, key: nonce, value: JSON.stringify(purchase), expected: 0 },
      { kind: duePurchaseKind, key: nonce, value: '1' },
      ...(used === undefined ? [] : [used]),
    ]
    const held = await this.#hold(purchase, records)
    return held ?? this.resumeOne(nonce)
  }

  /** Remembers a purchase that a card will pay for: what is written with its quote. */
  quoted(order: NameOrder, price: NamePrice): RecordChange {
    const purchase = made(order, price, 'quoted', this.parts.now())
    return { kind, key: order.nonce, value: JSON.stringify(purchase), expected: 0 }
  }

  /** What is written when the quote of a purchase is removed, because nobody has paid it. */
  async unquoted(nonce: string): Promise<readonly RecordChange[]> {
    const stored = await this.parts.ledger.record(kind, nonce)
    if (stored === undefined || read(stored).state !== 'quoted') return []
    return [{ kind, key: nonce, value: undefined, expected: stored.version }]
  }

  /** Goes on with what was paid and is not carried out. Resolves with how many purchases ended. */
  async resume(): Promise<number> {
    let ended = 0
    let after = ''
    for (;;) {
      const found = await this.parts.ledger.records(duePurchaseKind, '', after, resumedAtOnce)
      for (const { key } of found) {
        after = key
        try {
          const now = await this.resumeOne(key)
          if (!isRefusal(now) && (now.state === 'success' || now.state === 'failed')) ended += 1
        } catch (error) {
          // One that waits, or cannot be carried out, keeps no others waiting.
          if (isLedgerGone(error)) throw error
          this.parts.log.error({ err: error, nonce: key }, 'the purchase of a name could not be continued')
        }
      }
      if (found.length < resumedAtOnce) return ended
    }
  }

  /** The owner of the name has signed what it waits for: it is carried out, once. */
  async sign(nonce: string, transaction: string): Promise<NamePurchase | Denied | Refusal> {
    const stored = await this.parts.ledger.record(kind, nonce)
    if (stored === undefined) return denied(404, 'Action not found')
    const purchase = read(stored)
    const { state, signing, owner } = purchase
    if (signing === undefined || state === 'quoted') return denied(400, 'The action waits for no signature')
    if (state !== 'signing' || signing.expiresMs <= this.parts.now()) return this.resumeOne(nonce)
    if (!isSignedBy(owner, signing.transaction, transaction))
      return denied(400, 'Invalid transaction: it must be the given one, signed by the owner')
    await this.#replace(stored, { ...purchase, state: 'pending' })
    return this.resumeOne(nonce)
  }

  /** False where somebody else was faster. */
  async #replace(stored: LedgerRecord, next: NamePurchase): Promise<boolean> {
    const change = { kind, key: stored.key, value: JSON.stringify(next), expected: stored.version }
    return !isRejected(await this.parts.ledger.commit({ transfers: [], records: [change] }))
  }

  /** Holds the credits back; undefined: they are. */
  async #hold(
    { nonce, payer, winc }: NamePurchase,
    records: readonly RecordChange[],
  ): Promise<Denied | Refusal | undefined> {
    const held = await this.parts.credits.reserveFor({
      ...payer,
      itemId: holdName(nonce),
      bytes: 0,
      purpose: 'arns_purchase',
      records,
      winc: async () => BigInt(winc),
    })
    if (isRefusal(held)) return held
    return held.paid ? undefined : denied(402, 'Insufficient balance')
  }

  /** Goes on with one purchase, as far as it can be. */
  async resumeOne(nonce: string): Promise<NamePurchase | Refusal> {
    const stored = await this.parts.ledger.record(kind, nonce)
    if (stored === undefined) throw new Error(`the purchase ${nonce} is not kept`)
    const purchase = read(stored)
    if (purchase.state === 'success' || purchase.state === 'failed') return purchase
    if (purchase.state === 'quoted') {
      // Its card may not be charged yet.
      if ((await this.parts.ledger.record(duePurchaseKind, nonce)) === undefined) return purchase
      const next = { kind, key: nonce, value: JSON.stringify({ ...purchase, state: 'pending' }) }
      const held = await this.#hold(purchase, [{ ...next, expected: stored.version }])
      if (held === undefined) return this.resumeOne(nonce)
      // What the card has paid stays in the wallet.
      return isRefusal(held) ? held : this.#end(stored, { noSale: held.text })
    }
    const { deed, owner, why, signing } = purchase
    if (purchase.state === 'signing') {
      if (signing === undefined || signing.expiresMs > this.parts.confirmed()) return purchase
      // Written before it is refunded: who signs at this moment must not have it carried out.
      await this.#replace(stored, { ...purchase, state: 'pending', why: unsignedText })
      return this.resumeOne(nonce)
    }
    if (why !== undefined) return this.#end(stored, { noSale: why })
    const { registry } = this.parts
    const done =
      deed.action === 'buy'
        ? await registry.sell(nonce, owner, deed.wish)
        : await registry.change(nonce, owner, deed.action, deed.record)
    if (isRefusal(done)) {
      this.parts.log.warn(
        { nonce, reason: done.message },
        'a registry of names does not answer: it is tried again later',
      )
      return purchase
    }
    return this.#end(stored, done)
  }

  /** Spends the credits or gives them back, and writes down which. */
  async #end(stored: LedgerRecord, done: LeaseDone | NoSale): Promise<NamePurchase | Refusal> {
    const { credits, ledger, log, now } = this.parts
    const purchase = read(stored)
    const { nonce } = purchase
    const isFailed = isNoSale(done)
    const money = await (isFailed ? credits.refund(holdName(nonce)) : credits.settle(holdName(nonce)))
    if (isRefusal(money)) return money
    const next: NamePurchase = isFailed
      ? { ...purchase, state: 'failed', failedMs: now(), why: done.noSale }
      : { ...purchase, state: 'success', done }
    if (isFailed)
      log.warn({ nonce, reason: done.noSale }, 'a registry of names refused a paid purchase: it is refunded')
    const records = [
      { kind, key: nonce, value: JSON.stringify(next), expected: stored.version },
      { kind: duePurchaseKind, key: nonce, value: undefined },
    ]
    const outcome = await ledger.commit({ transfers: [], records })
    if (!isRejected(outcome)) return next
    // Somebody else was faster, with the same words of the registry.
    const kept = await this.find(nonce)
    return kept ?? next
  }
}

/** The winc that a purchase has spent; undefined while it has not ended. */
export async function purchaseCost(
  ledger: Pick<MoneyLedger, 'record'>,
  nonce: string,
): Promise<bigint | undefined> {
  const stored = await ledger.record(kind, nonce)
  if (stored === undefined) return 0n
  const { state, winc } = read(stored)
  if (state === 'failed') return 0n
  return state === 'success' ? BigInt(winc) : undefined
}

function made(
  { nonce, deed, owner, payer, signed }: NameOrder,
  { winc, mario, usdAr, usdArio }: NamePrice,
  state: NamePurchase['state'],
  createdMs: number,
): NamePurchase {
  const amounts = { winc: String(winc), mario: String(mario), usdAr, usdArio }
  const signing =
    signed === undefined ? {} : { signing: ownerTransaction(owner, signed, nonce, createdMs + signMs) }
  return { nonce, state, deed, owner, payer, ...amounts, createdMs, ...signing }
}

function read(stored: LedgerRecord): NamePurchase {
  return JSON.parse(stored.value) as NamePurchase
}
