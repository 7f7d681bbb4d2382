import { isRefusal } from '../../format/refusal.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import type { Accounts } from '../books/accounts.js'
import { accountOf, addressKind } from '../books/wallets.js'
import { isDenied } from '../credits-port.js'
import { isEmail, redeemGift } from '../letters/gifts.js'
import { isCurrency } from '../prices/rates.js'
import { readAmount, unsupported } from '../prices/tariff.js'
import {
  json,
  type PaymentRoute,
  plainAnswer,
  type RouteAnswer,
  type RouteRequest,
} from '../requests/payment-route.js'
import type { CardQuote } from './card-quote.js'
import type { Cards, CardWish } from './cards.js'
import { checkoutPage, giftPage, safeTarget } from './checkout-page.js'
import { LocalCards } from './local-cards.js'

const methods = ['payment-intent', 'checkout-session'] as const
const webhookMax = 512 * 1024
const formMax = 4096

/** Card payments: sessions, events of the provider, and gifts. */
export function cardRoutes(
  cards: Cards,
  accounts: Accounts,
  ledger: MoneyLedger,
  now: () => number,
): PaymentRoute[] {
  return [
    {
      path: '/v1/top-up/{method}/{address}/{currency}/{amount}',
      isRecorded: true,
      summary: 'Begins a card payment for a wallet, or for a gift by e-mail',
      statuses: [200, 400, 403],
      query: [
        'destinationAddressType',
        'giftMessage',
        'uiMode',
        'successUrl',
        'cancelUrl',
        'returnUrl',
        'promoCode',
        'token',
      ],
      answer: (call) => sessionAnswer(cards, call),
    },
    {
      path: '/v1/stripe-webhook',
      summary: 'What the card provider reports',
      statuses: [200, 400],
      type: 'text/plain',
      method: 'POST',
      bodyMax: webhookMax,
      answer: async ({ header, body }) => {
        const event = await cards.provider.read(body, header('stripe-signature') ?? '')
        if (event === undefined) return plainAnswer(400, 'Webhook Error!')
        // Answered when it is durable. The provider repeats an event that fails here.
        await cards.handle(event)
        return plainAnswer(200, 'OK')
      },
    },
    {
      path: '/v1/redeem',
      summary: 'Puts a gift into a wallet',
      statuses: [200, 400],
      query: ['email', 'destinationAddress', 'id', 'token'],
      answer: ({ query }) => redeemAnswer(accounts, ledger, now, query),
    },
    {
      path: '/gift',
      summary: 'Where the letter about a gift leads to',
      statuses: [200],
      query: ['id', 'email'],
      type: 'text/html',
      answer: async ({ query }) => {
        return { status: 200, ...giftPage(query.get('id') ?? '', query.get('email') ?? '') }
      },
    },
    ...checkoutRoutes(cards),
  ]
}

async function sessionAnswer(cards: Cards, { path, query, client }: RouteRequest): Promise<RouteAnswer> {
  const wish = wishOf(path, query)
  if ('status' in wish) return wish
  const opened = await cards.openSession({ ...wish, client })
  if (isRefusal(opened)) {
    if (opened.refused === 'busy') return { status: 503, text: opened.message, lines: '\r\nRetry-After: 5' }
    const isOracle = opened.fault === 'self' || !opened.message.startsWith('Stripe')
    return plainAnswer(
      503,
      isOracle ? 'Fiat Oracle Unavailable' : `Error creating stripe payment session! ${opened.message}`,
    )
  }
  if (isDenied(opened)) return plainAnswer(opened.status, opened.text)
  const { quote, session } = opened
  const { adjustments, fees } = quote
  return json({
    topUpQuote: quoteView(quote, cards.provider.name),
    paymentSession: session,
    adjustments,
    fees,
  })
}

function wishOf(
  [method = '', address = '', currencyText = '', text = '']: readonly string[],
  query: URLSearchParams,
): Omit<CardWish, 'client'> | RouteAnswer {
  const found = methods.find((one) => one === method)
  if (found === undefined)
    return plainAnswer(400, `Payment method must include one of: ${methods.join(',')}!`)
  const isMail = query.get('destinationAddressType') === 'email'
  if (isMail && !isEmail(address)) return plainAnswer(400, 'Destination address is not a valid email!')
  const kind = addressKind(address)
  // Clients try with addresses that are 43 characters of anything.
  const isStub = /^[\w-]{43}$/.test(address)
  if (!isMail && kind === undefined && !isStub)
    return plainAnswer(403, 'Destination address is not a valid supported native wallet address!')
  const currency = currencyText.toLowerCase()
  if (!isCurrency(currency)) return plainAnswer(400, unsupported(currency))
  const amount = readAmount(text)
  if (amount === undefined)
    return plainAnswer(
      400,
      `The provided payment amount (${text}) is invalid; it must be a positive non-decimal integer!`,
    )
  const giftMessage = query.get('giftMessage') ?? ''
  if (giftMessage.length > 250) return plainAnswer(400, 'The gift message is longer than 250 characters!')
  const codes = query
    .getAll('promoCode')
    .flatMap((one) => one.split(','))
    .filter((one) => one !== '')
  const target = (name: 'successUrl' | 'cancelUrl' | 'returnUrl'): Partial<Record<typeof name, string>> => {
    const url = safeTarget(query.get(name) ?? undefined)
    return url === undefined ? {} : { [name]: url }
  }
  return {
    method: found,
    destination: address,
    destinationType: isMail ? 'email' : (kind ?? 'arweave'),
    currency,
    amount,
    codes,
    uiMode: query.get('uiMode') === 'embedded' ? 'embedded' : 'hosted',
    ...(isMail && giftMessage !== '' ? { giftMessage } : {}),
    ...target('successUrl'),
    ...target('cancelUrl'),
    ...target('returnUrl'),
  }
}

function quoteView(quote: CardQuote, provider: string): object {
  const { id, destination, destinationType, amount, quotedAmount, winc, currency, expiresMs, adjustments } =
    quote
  return {
    topUpQuoteId: id,
    destinationAddress: destination,
    destinationAddressType: destinationType,
    paymentAmount: amount,
    quotedPaymentAmount: quotedAmount,
    winstonCreditAmount: winc,
    currencyType: currency,
    quoteExpirationDate: new Date(expiresMs).toISOString(),
    paymentProvider: provider,
    adjustments,
  }
}

async function redeemAnswer(
  accounts: Accounts,
  ledger: MoneyLedger,
  now: () => number,
  query: URLSearchParams,
): Promise<RouteAnswer> {
  const [id, email] = [query.get('id') ?? '', query.get('email') ?? '']
  const destination = query.get('destinationAddress') ?? ''
  const redeemed = await redeemGift(ledger, accounts.wallets, now, { id, email, destination })
  if ('status' in redeemed) return plainAnswer(redeemed.status, redeemed.text)
  const { wallet, winc } = redeemed
  const balance = await accounts.balance(wallet)
  const account = await ledger.account(accountOf(wallet))
  return json({
    message: `Payment receipt redeemed for ${winc} winc!`,
    userBalance: balance?.winc ?? '0',
    userAddress: wallet,
    userCreationDate: new Date(account?.openedMs ?? now()).toISOString(),
  })
}

/** The page of the embedded provider; there is none where another one takes the money. */
function checkoutRoutes(cards: Cards): PaymentRoute[] {
  const { provider } = cards
  if (!(provider instanceof LocalCards)) return []
  const about = { path: '/checkout/{session}', type: 'text/html' }
  const missing = plainAnswer(404, 'There is no such payment')
  return [
    {
      ...about,
      summary: 'Where a test card is charged',
      statuses: [200, 404],
      answer: async ({ path: [id = ''] }) => {
        const session = await provider.session(id)
        const quote = session === undefined ? undefined : await cards.find(session.quoteId)
        if (quote === undefined) return missing
        return { status: 200, ...checkoutPage(quote, quote.state === 'open' ? 'open' : 'paid') }
      },
    },
    {
      ...about,
      summary: 'Charges a test card',
      statuses: [200, 303, 402, 404],
      method: 'POST',
      bodyMax: formMax,
      answer: async ({ path: [id = ''], body }) => {
        const session = await provider.session(id)
        const quote = session === undefined ? undefined : await cards.find(session.quoteId)
        if (session === undefined || quote === undefined) return missing
        const card = new URLSearchParams(Buffer.from(body).toString()).get('card') ?? ''
        const charged = await provider.charge(id, card)
        if (typeof charged === 'string')
          return { status: 402, ...checkoutPage(quote, 'open', 'The card was declined.') }
        await cards.handle(charged)
        const target = safeTarget(session.successUrl ?? session.returnUrl)
        const after = await cards.find(quote.id)
        const isSent = after?.state === 'refunded'
        const note = isSent ? 'The offer was over: the payment was sent back.' : ''
        if (target !== undefined && !isSent)
          return { status: 303, text: 'Paid', lines: `\r\nLocation: ${target}` }
        return { status: 200, ...checkoutPage(quote, isSent ? 'open' : 'paid', note) }
      },
    },
  ]
}
