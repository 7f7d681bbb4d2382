import { randomUUID } from 'node:crypto'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { isNoSale, type Lease } from '../../names/lease.js'
import { addressKind, spelled } from '../books/wallets.js'
import { safeTarget } from '../cards/checkout-page.js'
import { isDenied, type Payer } from '../credits-port.js'
import type { Quotes } from '../prices/quotes.js'
import { type Currency, fiatOfWinc, isCurrency } from '../prices/rates.js'
import { limitsOfCurrency, unsupported } from '../prices/tariff.js'
import { cursorPlaces, limitOf, paged, wrongCursor, wrongLimit } from '../requests/paging.js'
import {
  json,
  type PaymentRoute,
  plainAnswer,
  type RouteAnswer,
  type RouteRequest,
} from '../requests/payment-route.js'
import { nameActionRoutes } from './name-actions.js'
import { type NameShop, nameBodyMax, nameBuyer, oracleGone, orderAnswer } from './name-orders.js'
import type { NameDeed } from './name-purchases.js'
import { leaseView, purchaseView, quotedView } from './name-views.js'
import { readWish } from './name-wishes.js'

/** Length of a page of names, unless less is requested. */
const namesMax = 100
const wishQuery = ['type', 'years', 'increaseQty', 'processId'] as const

/** Names for credits: prices, purchases, changes of records. */
export function nameRoutes(parts: NameShop): PaymentRoute[] {
  return [
    {
      path: '/v1/arns/price/{intent}/{name}',
      summary: 'What a name costs, in winc',
      statuses: [200, 400],
      query: [...wishQuery, 'currency'],
      answer: (call) => priceAnswer(parts, call),
    },
    {
      path: '/v1/arns/quote/{method}/{address}/{currency}/{intent}/{name}',
      isRecorded: true,
      summary: 'Begins a card payment for a name',
      statuses: [200, 400, 403],
      query: [...wishQuery, 'promoCode', 'uiMode', 'successUrl', 'cancelUrl', 'returnUrl'],
      answer: (call) => quoteAnswerOf(parts, call),
    },
    {
      path: '/v1/arns/purchase/{intent}/{name}',
      summary: 'Buys a name with the credits of the wallet that has signed the request',
      statuses: [200, 202, 400, 401, 402],
      query: [...wishQuery, 'paidBy'],
      method: 'POST',
      bodyMax: nameBodyMax,
      answer: (call) => purchaseAnswer(parts, call),
    },
    {
      path: '/v1/arns/purchase/{nonce}',
      summary: 'What became of a purchase',
      statuses: [200, 404],
      answer: async ({ path: [nonce = ''] }) => {
        const found = await parts.purchases.find(nonce)
        return found === undefined ? plainAnswer(404, 'Purchase not found') : json(purchaseView(found))
      },
    },
    {
      path: '/v1/arns/my-names/{address}',
      summary: 'Names that a wallet has',
      statuses: [200, 400],
      query: ['limit', 'cursor'],
      answer: (call) => namesAnswer(parts, call),
    },
    ...nameActionRoutes(parts),
  ]
}

async function priceAnswer(
  { purchases, quotes }: NameShop,
  { path: [intent = '', name = ''], query }: RouteRequest,
): Promise<RouteAnswer> {
  const wish = readWish(intent, name, (field) => query.get(field) ?? undefined)
  if ('status' in wish) return wish
  const price = await purchases.price({ action: 'buy', wish })
  if (isRefusal(price)) return oracleGone
  if (isNoSale(price)) return plainAnswer(400, price.noSale)
  const amounts = { winc: String(price.winc), mARIO: String(price.mario) }
  const currency = query.get('currency')?.toLowerCase()
  if (currency === undefined) return json(amounts)
  if (!isCurrency(currency)) return plainAnswer(400, unsupported(currency))
  const minor = await fiatFor(quotes, currency, price.winc)
  const quote = isRefusal(minor) ? minor : await quotes.ofFiat(currency, minor, [], undefined)
  if (isRefusal(quote)) return plainAnswer(503, 'Fiat Oracle Unavailable')
  if (isDenied(quote)) return plainAnswer(quote.status, quote.text)
  const { actualPaymentAmount: paymentAmount, quotedPaymentAmount, adjustments, fees, winc } = quote
  const excess = BigInt(winc) - price.winc
  const fiatEstimate = {
    paymentAmount,
    quotedPaymentAmount,
    adjustments,
    fees,
    ...(excess > 0n ? { excessWincAmount: String(excess) } : {}),
  }
  return json({ ...amounts, fiatEstimate })
}

/** The least amount of a currency that buys so much winc and that a card may be charged with. */
async function fiatFor(quotes: Quotes, currency: Currency, winc: bigint): Promise<bigint | Refusal> {
  const rates = await quotes.rates()
  if (isRefusal(rates)) return rates
  // One more in each step, because fee and winc are rounded.
  const worth = fiatOfWinc(currency, winc, rates) + 1n
  const minor = (worth * 1000n) / BigInt(1000 - quotes.fee) + 2n
  const least = BigInt(limitsOfCurrency(currency).minimumPaymentAmount)
  return minor < least ? least : minor
}

async function quoteAnswerOf(
  { purchases, cards, quotes }: NameShop,
  {
    path: [method = '', address = '', currencyText = '', intent = '', name = ''],
    query,
    client,
  }: RouteRequest,
): Promise<RouteAnswer> {
  if (method !== 'payment-intent' && method !== 'checkout-session')
    return plainAnswer(400, 'Payment method must include one of: payment-intent,checkout-session!')
  const kind = addressKind(address)
  if (kind === undefined)
    return plainAnswer(403, 'Destination address is not a valid supported native wallet address!')
  const currency = currencyText.toLowerCase()
  if (!isCurrency(currency)) return plainAnswer(400, unsupported(currency))
  const wish = readWish(intent, name, (field) => query.get(field) ?? undefined)
  if ('status' in wish) return wish
  const deed: NameDeed = { action: 'buy', wish }
  const price = await purchases.price(deed)
  if (isRefusal(price)) return oracleGone
  if (isNoSale(price)) return plainAnswer(400, price.noSale)
  const amount = await fiatFor(quotes, currency, price.winc)
  if (isRefusal(amount)) return plainAnswer(503, 'Fiat Oracle Unavailable')
  const owner = spelled(address)
  const payer: Payer = { address: owner, signatureType: 0, paidBy: [] }
  const nonce = randomUUID()
  const opened = await cards.openSession({
    client,
    method,
    destination: owner,
    destinationType: kind,
    currency,
    amount,
    codes: query
      .getAll('promoCode')
      .flatMap((one) => one.split(','))
      .filter((one) => one !== ''),
    uiMode: query.get('uiMode') === 'embedded' ? 'embedded' : 'hosted',
    ...targetsOf(query),
    purchase: { nonce, name: wish.name },
    kept: [purchases.quoted({ nonce, deed, owner, payer }, price)],
  })
  if (isRefusal(opened)) return plainAnswer(503, `Fiat (Stripe) payments are disabled: ${opened.message}`)
  if (isDenied(opened)) return plainAnswer(opened.status, opened.text)
  const purchase = await purchases.find(nonce)
  if (purchase === undefined) throw new Error(`the quote of the purchase ${nonce} is not kept`)
  const { quote, session } = opened
  const { adjustments, fees } = quote
  const purchaseQuote = quotedView(purchase, quote, cards.provider.name)
  return json({ purchaseQuote, paymentSession: session, adjustments, fees })
}

function targetsOf(query: URLSearchParams): Readonly<Record<string, string>> {
  const names = ['successUrl', 'cancelUrl', 'returnUrl']
  return Object.fromEntries(
    names.flatMap((name) => {
      const url = safeTarget(query.get(name) ?? undefined)
      return url === undefined ? [] : [[name, url]]
    }),
  )
}

async function purchaseAnswer({ purchases, wallets }: NameShop, call: RouteRequest): Promise<RouteAnswer> {
  const {
    path: [intent = '', name = ''],
    query,
  } = call
  const listed = query.getAll('paidBy').flatMap((one) => one.split(','))
  const paying = await nameBuyer(
    wallets,
    call,
    listed.map((one) => one.trim()).filter((one) => one !== ''),
  )
  if ('status' in paying) return paying
  const wish = readWish(intent, name, (field) => query.get(field) ?? undefined)
  if ('status' in wish) return wish
  const { signer, payer } = paying
  const order = { nonce: signer.nonce, deed: { action: 'buy', wish }, owner: signer.address, payer } as const
  return orderAnswer(await purchases.buy(order), (purchase) => ({
    purchaseReceipt: purchaseView(purchase),
    arioWriteResult: { id: purchase.done?.messageId ?? '' },
    nonce: purchase.nonce,
  }))
}

/** The names in the registry that a wallet holds now, by any of its addresses. */
async function namesAnswer(
  { purchases, wallets }: NameShop,
  { path: [address = ''], query }: RouteRequest,
): Promise<RouteAnswer> {
  const limit = limitOf(query, namesMax)
  const [after] = cursorPlaces(query, 1) ?? []
  if (limit === undefined) return wrongLimit
  if (after === undefined) return wrongCursor
  const own = spelled(address)
  const owners = new Set([own, ...(await wallets.addressesOf(await wallets.resolve(own)))])
  const found: Lease[] = []
  for (const owner of owners) {
    const owned = await purchases.registry.owned(owner, after, limit + 1)
    if (isRefusal(owned)) return plainAnswer(503, 'The registry of names does not answer')
    found.push(...owned)
  }
  const leases = found.sort((one, other) => (one.name < other.name ? -1 : 1))
  const names = leases.slice(0, limit).map(leaseView)
  const last = leases.length > limit ? leases[limit - 1]?.name : undefined
  return json({ names, ...paged(last === undefined ? undefined : [last]) })
}
