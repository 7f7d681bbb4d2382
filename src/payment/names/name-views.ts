import type { Lease, LeaseIntent } from '../../names/lease.js'
import type { CardQuote } from '../cards/card-quote.js'
import type { NameDeed, NamePurchase } from './name-purchases.js'
import type { HeldName } from './name-registry.js'

/** The intents as clients read them. */
export const intentWords: Readonly<Record<LeaseIntent, string>> = {
  'buy-name': 'Buy-Name',
  'extend-lease': 'Extend-Lease',
  'upgrade-name': 'Upgrade-Name',
  'increase-undername-limit': 'Increase-Undername-Limit',
}

/** The members of a wish that its intent uses. */
function wishView(deed: NameDeed): object {
  if (deed.action !== 'buy') return {}
  const { name, intent, type, years, increaseQty, processId } = deed.wish
  const given = { type, years, increaseQty, processId }
  const used = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { name, intent: intentWords[intent], ...used }
}

/** What clients poll a purchase by: a receipt with its state. */
export function purchaseView(purchase: NamePurchase): object {
  const { nonce, state, deed, owner, payer, winc, mario, usdAr, usdArio, done, failedMs, why } = purchase
  return {
    ...wishView(deed),
    owner,
    nonce,
    wincQty: winc,
    mARIOQty: mario,
    usdArRate: usdAr,
    usdArioRate: usdArio,
    paidBy: payer.paidBy,
    messageId: done?.messageId ?? '',
    ...(done === undefined ? {} : { antId: done.antId }),
    status: state === 'quoted' || state === 'signing' ? 'pending' : state,
    ...(failedMs === undefined
      ? {}
      : { failedDate: new Date(failedMs).toISOString(), failedReason: why ?? '' }),
  }
}

const actionStates = {
  success: 'completed',
  failed: 'failed',
  pending: 'pending',
  quoted: 'pending',
  signing: 'awaiting-signature',
} as const

/** The same for a request as an action. */
export function actionView(purchase: NamePurchase): object {
  const { nonce, deed, state, done, failedMs, why, signing } = purchase
  const action = deed.action === 'buy' ? deed.wish.intent : deed.action
  return {
    nonce,
    action,
    status: actionStates[state],
    ...(state === 'signing' && signing !== undefined && deed.action !== 'buy'
      ? {
          transaction: signing.transaction,
          feePayer: signing.feePayer,
          antId: deed.record.antId,
          expiresAt: new Date(signing.expiresMs).toISOString(),
        }
      : {}),
    ...(done === undefined ? {} : { messageId: done.messageId, antId: done.antId }),
    ...(failedMs === undefined
      ? {}
      : { failedDate: new Date(failedMs).toISOString(), failedReason: why ?? '' }),
  }
}

/** A purchase that waits for its card. */
export function quotedView(purchase: NamePurchase, quote: CardQuote, provider: string): object {
  const { nonce, deed, owner, winc, mario, usdAr, usdArio, createdMs } = purchase
  const excess = BigInt(quote.winc) - BigInt(winc)
  return {
    ...wishView(deed),
    nonce,
    owner,
    wincQty: winc,
    mARIOQty: Number(mario),
    paymentAmount: quote.amount,
    quotedPaymentAmount: quote.quotedAmount,
    currencyType: quote.currency,
    quoteExpirationDate: new Date(quote.expiresMs).toISOString(),
    paymentProvider: provider,
    ...(excess > 0n ? { excessWincAmount: String(excess) } : {}),
    quoteCreationDate: new Date(createdMs).toISOString(),
    usdArRate: String(usdAr),
    usdArioRate: String(usdArio),
  }
}

/** A name that a wallet has. */
export function leaseView({ name, antId, type, years, boughtMs }: Lease): object {
  const lease = { type, ...(years === undefined ? {} : { years }) }
  const facts = { name, antId, intent: intentWords['buy-name'], ...lease }
  return { ...facts, purchaseDate: new Date(boughtMs).toISOString(), custodial: false }
}

/** A name with its present holder and its records. */
export function heldView({ lease, records }: HeldName): object {
  const { name, antId, owner, controllers = [], serviceRevoked, type, endMs, undernameLimit } = lease
  return {
    name,
    antId,
    owner,
    controllers,
    isServiceController: serviceRevoked !== true,
    type,
    ...(endMs === 0 ? {} : { endDate: new Date(endMs).toISOString() }),
    undernameLimit,
    records: records.map(({ undername, id, ttlSeconds, owner: recordOwner, metadata }) => ({
      undername,
      transactionId: id,
      ttlSeconds,
      ...(recordOwner === undefined ? {} : { owner: recordOwner }),
      ...metadata,
    })),
  }
}
