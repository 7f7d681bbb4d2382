import { randomUUID } from 'node:crypto'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { isNoSale } from '../names/lease.js'
import { type Call, type CallRoute, json, type ServiceAnswer, words } from './call.js'
import type { Cards } from './cards.js'
import { safeTarget } from './checkout-page.js'
import type { NameDeed, NamePurchase, NamePurchases } from './name-purchases.js'
import { actionView, boughtView, purchaseView, quotedView } from './name-views.js'
import { ownerMessage, readRecordWish, readWish } from './name-wishes.js'
import { isDenied, type Payer } from './port.js'
import type { Quotes } from './quotes.js'
import { type Currency, fiatOfWinc, isCurrency } from './rates.js'
import { type RequestSigner, requestSigner } from './signed-request.js'
import { limitsOfCurrency, unsupported } from './tariff.js'
import { addressKind, spelled, type Wallets } from './wallets.js'

const bodyMax = 16 * 1024
const nonceShape = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const unsigned = words(401, 'Signed request is required for this route')
const ownerNonceKind = 'owner-nonce'

export interface NameShop {
  readonly purchases: NamePurchases
  readonly wallets: Wallets
  readonly cards: Cards
  readonly quotes: Quotes
}

const wishQuery = ['type', 'years', 'increaseQty', 'processId'] as const

/** Names for credits: prices, purchases, changes of records. */
export function nameRoutes(parts: NameShop): CallRoute[] {
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
      bodyMax,
      answer: (call) => purchaseAnswer(parts, call),
    },
    {
      path: '/v1/arns/purchase/{nonce}',
      summary: 'What became of a purchase',
      statuses: [200, 404],
      answer: async ({ path: [nonce = ''] }) => {
        const found = await parts.purchases.find(nonce)
        return found === undefined ? words(404, 'Purchase not found') : json(purchaseView(found))
      },
    },
    {
      path: '/v1/arns/my-names/{address}',
      summary: 'Names that were bought here for a wallet',
      statuses: [200],
      answer: ({ path: [address = ''] }) => boughtAnswer(parts, address),
    },
    ...actionRoutes(parts),
  ]
}

function actionRoutes({ purchases, wallets }: NameShop): CallRoute[] {
  return [
    {
      path: '/v1/arns/actions/{action}/price',
      summary: 'What a change of a record costs, in winc',
      statuses: [200, 400],
      answer: async ({ path: [action = ''] }) => {
        if (action !== 'set-record' && action !== 'remove-record')
          return words(400, 'Invalid action parameter')
        const price = await purchases.price({ action, record: { antId: '', undername: '@' } })
        if (isRefusal(price) || isNoSale(price)) return oracleGone
        return json({ action, wincQty: String(price.winc) })
      },
    },
    {
      path: '/v1/arns/actions/{action}',
      summary: 'Buys or changes a name with the credits of the wallet that has signed the request',
      statuses: [200, 202, 400, 401, 402, 403],
      method: 'POST',
      bodyMax,
      answer: (call) => actionAnswer(purchases, wallets, call),
    },
    {
      path: '/v1/arns/actions/{nonce}',
      summary: 'What became of an action',
      statuses: [200, 404],
      answer: async ({ path: [nonce = ''] }) => {
        const found = await purchases.find(nonce)
        return found === undefined ? words(404, 'Action not found') : json(actionView(found))
      },
    },
    {
      path: '/v1/arns/actions/{nonce}/sign',
      summary: 'For registries whose owners sign: nothing waits for a signature here',
      statuses: [200, 400, 404],
      method: 'POST',
      bodyMax,
      answer: async ({ path: [nonce = ''] }) => {
        const found = await purchases.find(nonce)
        if (found === undefined) return words(404, 'Action not found')
        if (found.state !== 'success') return words(400, 'The action waits for no signature')
        return json({ ...actionView(found), alreadyCompleted: true })
      },
    },
  ]
}

const oracleGone = words(503, 'Pricing Oracle Unavailable')

async function priceAnswer(
  { purchases, quotes }: NameShop,
  { path: [intent = '', name = ''], query }: Call,
): Promise<ServiceAnswer> {
  const wish = readWish(intent, name, (field) => query.get(field) ?? undefined)
  if ('status' in wish) return wish
  const price = await purchases.price({ action: 'buy', wish })
  if (isRefusal(price)) return oracleGone
  if (isNoSale(price)) return words(400, price.noSale)
  const said = { winc: String(price.winc), mARIO: String(price.mario) }
  const currency = query.get('currency')?.toLowerCase()
  if (currency === undefined) return json(said)
  if (!isCurrency(currency)) return words(400, unsupported(currency))
  const minor = await fiatFor(quotes, currency, price.winc)
  const quote = isRefusal(minor) ? minor : await quotes.ofFiat(currency, minor, [], undefined)
  if (isRefusal(quote)) return words(503, 'Fiat Oracle Unavailable')
  if (isDenied(quote)) return words(quote.status, quote.text)
  const { actualPaymentAmount: paymentAmount, quotedPaymentAmount, adjustments, fees, winc } = quote
  const excess = BigInt(winc) - price.winc
  const fiatEstimate = {
    ...{ paymentAmount, quotedPaymentAmount, adjustments, fees },
    ...(excess > 0n ? { excessWincAmount: String(excess) } : {}),
  }
  return json({ ...said, fiatEstimate })
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
  { path: [method = '', address = '', word = '', intent = '', name = ''], query }: Call,
): Promise<ServiceAnswer> {
  if (method !== 'payment-intent' && method !== 'checkout-session')
    return words(400, 'Payment method must include one of: payment-intent,checkout-session!')
  const kind = addressKind(address)
  if (kind === undefined)
    return words(403, 'Destination address is not a valid supported native wallet address!')
  const currency = word.toLowerCase()
  if (!isCurrency(currency)) return words(400, unsupported(currency))
  const wish = readWish(intent, name, (field) => query.get(field) ?? undefined)
  if ('status' in wish) return wish
  const deed: NameDeed = { action: 'buy', wish }
  const price = await purchases.price(deed)
  if (isRefusal(price)) return oracleGone
  if (isNoSale(price)) return words(400, price.noSale)
  const amount = await fiatFor(quotes, currency, price.winc)
  if (isRefusal(amount)) return words(503, 'Fiat Oracle Unavailable')
  const owner = spelled(address)
  const payer: Payer = { address: owner, signatureType: 0, paidBy: [] }
  const nonce = randomUUID()
  const opened = await cards.open({
    ...{ method, destination: owner, destinationType: kind, currency, amount },
    codes: query
      .getAll('promoCode')
      .flatMap((one) => one.split(','))
      .filter((one) => one !== ''),
    uiMode: query.get('uiMode') === 'embedded' ? 'embedded' : 'hosted',
    ...targetsOf(query),
    purchase: { nonce, name: wish.name },
    kept: [purchases.quoted({ nonce, deed, owner, payer }, price)],
  })
  if (isRefusal(opened)) return words(503, `Fiat (Stripe) payments are disabled: ${opened.message}`)
  if (isDenied(opened)) return words(opened.status, opened.text)
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

/** Who pays: the signer, and wallets whose approvals go first. A signature that was made for something else pays nothing. */
async function payerOf(
  wallets: Wallets,
  { header }: Call,
  paidBy: readonly string[],
): Promise<{ readonly signer: RequestSigner; readonly payer: Payer } | ServiceAnswer> {
  const signer = requestSigner(header)
  if (signer === undefined) return unsigned
  if (!nonceShape.test(signer.nonce)) return words(400, 'Invalid nonce: purchases are named by a UUID')
  await wallets.learn(signer.address, signer.alias)
  const { address, signatureType, alias } = signer
  return { signer, payer: { address, signatureType, alias, paidBy } }
}

async function purchaseAnswer({ purchases, wallets }: NameShop, call: Call): Promise<ServiceAnswer> {
  const {
    path: [intent = '', name = ''],
    query,
  } = call
  const listed = query.getAll('paidBy').flatMap((one) => one.split(','))
  const paying = await payerOf(
    wallets,
    call,
    listed.map((one) => one.trim()).filter((one) => one !== ''),
  )
  if ('status' in paying) return paying
  const wish = readWish(intent, name, (field) => query.get(field) ?? undefined)
  if ('status' in wish) return wish
  const { signer, payer } = paying
  const order = { nonce: signer.nonce, deed: { action: 'buy', wish }, owner: signer.address, payer } as const
  return outcomeOf(await purchases.buy(order), (purchase) => ({
    purchaseReceipt: purchaseView(purchase),
    arioWriteResult: { id: purchase.done?.messageId ?? '' },
    nonce: purchase.nonce,
  }))
}

function outcomeOf(
  bought: Awaited<ReturnType<NamePurchases['buy']>>,
  view: (purchase: NamePurchase) => object,
): ServiceAnswer {
  if (isRefusal(bought)) return { ...oracleGone, lines: '\r\nRetry-After: 5' }
  if (isDenied(bought)) return words(bought.status, bought.text)
  if (bought.state === 'failed') return words(400, `${bought.why ?? 'It failed'}: the credits were refunded`)
  return { status: bought.state === 'success' ? 200 : 202, json: view(bought) }
}

async function actionAnswer(purchases: NamePurchases, wallets: Wallets, call: Call): Promise<ServiceAnswer> {
  const {
    path: [action = ''],
    body,
  } = call
  const given = fieldsIn(body)
  if (given === undefined) return words(400, 'Invalid JSON in request body')
  const paidBy = [given.paidBy].flat().filter((one): one is string => typeof one === 'string' && one !== '')
  const paying = await payerOf(wallets, call, paidBy)
  if ('status' in paying) return paying
  const { signer, payer } = paying
  const { nonce } = signer
  if (action !== 'set-record' && action !== 'remove-record') {
    const { name, ownerAddress = signer.address } = given
    if (typeof ownerAddress !== 'string' || addressKind(ownerAddress) === undefined)
      return words(400, 'Invalid ownerAddress')
    const wish = readWish(action, typeof name === 'string' ? name : '', (field) => given[field])
    if ('status' in wish) return wish
    const order = { nonce, deed: { action: 'buy', wish }, owner: spelled(ownerAddress), payer } as const
    return outcomeOf(await purchases.buy(order), actionView)
  }
  const record = readRecordWish(action, given)
  if ('status' in record) return record
  const holder = await purchases.registry.holder(record.antId)
  if (isRefusal(holder)) return words(503, 'The registry of names does not answer')
  if (holder === undefined) return words(404, 'No name is held by this antId')
  const proof = requestSigner(
    (name) => call.header(name.replace('x-', 'x-owner-')),
    ownerMessage(action, record),
  )
  if (proof?.address !== holder.owner) return words(403, 'The owner of the name must sign this change')
  // A change that was signed once must not be made again after a later one.
  const used = {
    kind: ownerNonceKind,
    key: `${holder.owner}|${proof.nonce}`,
    value: JSON.stringify(nonce),
    expected: 0,
  }
  const order = { nonce, deed: { action, record }, owner: holder.owner, payer, used } as const
  return outcomeOf(await purchases.buy(order), actionView)
}

async function boughtAnswer({ purchases, wallets }: NameShop, address: string): Promise<ServiceAnswer> {
  const own = spelled(address)
  const names = new Set([own, ...(await wallets.names(await wallets.find(own)))])
  const found: NamePurchase[] = []
  for (const name of names) found.push(...(await purchases.of(name)))
  // One entry for each name: the youngest purchase of it.
  const byName = new Map<string, NamePurchase>()
  for (const one of found
    .filter(({ deed }) => deed.action === 'buy')
    .sort((a, b) => a.createdMs - b.createdMs))
    if (one.deed.action === 'buy') byName.set(one.deed.wish.name, one)
  return json({ names: [...byName.values()].map(boughtView) })
}

function fieldsIn(body: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
