import { isRefusal } from '../../format/refusal.js'
import { requestSigner } from '../../proof/signed-request.js'
import { isDenied } from '../credits-port.js'
import { json, type PaymentRoute, plainAnswer, type RouteAnswer } from '../requests/payment-route.js'
import { countries } from './countries.js'
import type { Prices } from './prices.js'
import type { Quotes } from './quotes.js'
import { arPrice, currencies, fiatOfWinc, isCurrency, isToken, minorDigits, rateNumber } from './rates.js'
import { currenciesAnswer, readAmount, unsupported } from './tariff.js'

const minute = '\r\nCache-Control: public, max-age=60'
const hour = '\r\nCache-Control: public, max-age=3600'
const gib = 2 ** 30

/** Words that clients without a wallet put where an address belongs. */
const placeholder = 'placeholder'

/** Prices, rates, and the lists of what can be paid with. */
export function priceRoutes(prices: Prices, quotes: Quotes): PaymentRoute[] {
  const ofBytes = async ({
    path: [text = ''],
  }: {
    readonly path: readonly string[]
  }): Promise<RouteAnswer> => {
    const bytes = readBytes(text)
    if (typeof bytes === 'string') return plainAnswer(400, bytes)
    const winc = await prices.ofItem(bytes)
    if (isRefusal(winc)) return plainAnswer(503, 'Pricing Oracle Unavailable')
    return json({ winc: String(winc), adjustments: [], fees: [] }, minute)
  }
  const about = { summary: 'Price of an item of so many bytes, in winc', statuses: [200, 400] }
  return [
    { path: '/v1/price/bytes/{bytes}', ...about, answer: ofBytes },
    { path: '/v1/price/{bytes}', ...about, answer: ofBytes },
    {
      path: '/v1/price/{currency}/{amount}',
      summary: 'What an amount of a currency or a token buys, in winc; both in their smallest unit',
      statuses: [200, 400],
      query: ['destinationAddress', 'promoCode'],
      answer: ({ path: [currency = '', amount = ''], query, header }) =>
        quoteAnswer(quotes, currency.toLowerCase(), amount, query, header),
    },
    {
      path: '/price/{token}/{bytes}',
      summary: 'Price of an item of so many bytes, in winc, as plain text',
      statuses: [200, 400],
      type: 'text/plain',
      answer: async ({ path: [, bytes = ''] }) => {
        const answer = await ofBytes({ path: [bytes] })
        return 'json' in answer ? plainAnswer(200, (answer.json as { winc: string }).winc) : answer
      },
    },
    ...rateRoutes(prices, quotes),
  ]
}

function rateRoutes(prices: Prices, quotes: Quotes): PaymentRoute[] {
  return [
    {
      path: '/v1/rates',
      summary: 'What a GiB costs, in winc and in each currency with all fees',
      statuses: [200],
      answer: () => ratesAnswer(prices, quotes),
    },
    {
      path: '/v1/rates/{currency}',
      summary: 'What one AR is worth in a currency',
      statuses: [200, 404],
      answer: async ({ path: [currencyText = ''] }) => {
        const currency = currencyText.toLowerCase()
        if (!isCurrency(currency)) return plainAnswer(404, 'Invalid currency.')
        const rates = await quotes.rates()
        if (isRefusal(rates)) return plainAnswer(503, 'Fiat Oracle Unavailable')
        return json({ currency, rate: rateNumber(arPrice(currency, rates)) }, minute)
      },
    },
    {
      path: '/v1/currencies',
      summary: 'Currencies that can be paid in, with their limits',
      statuses: [200],
      answer: async () => json(currenciesAnswer(), hour),
    },
    {
      path: '/v1/countries',
      summary: 'Countries whose cards are taken',
      statuses: [200],
      answer: async () => json(countries, hour),
    },
  ]
}

/** A number of bytes, or what is wrong with it. */
function readBytes(text: string): number | string {
  if (!/^\d{1,400}$/.test(text)) return 'Invalid byte count'
  const bytes = Number(text)
  return Number.isSafeInteger(bytes) ? bytes : 'Byte count too large'
}

async function quoteAnswer(
  quotes: Quotes,
  unit: string,
  text: string,
  query: URLSearchParams,
  header: (name: string) => string | undefined,
): Promise<RouteAnswer> {
  if (!isToken(unit) && !isCurrency(unit)) return plainAnswer(400, unsupported(unit))
  const amount = readAmount(text)
  if (amount === undefined)
    return plainAnswer(
      400,
      `The provided payment amount (${text}) is invalid; it must be a positive non-decimal integer!`,
    )
  const given = query.get('destinationAddress')
  const address =
    given === null || given === placeholder || given === '' ? requestSigner(header)?.address : given
  const codes = query
    .getAll('promoCode')
    .flatMap((one) => one.split(','))
    .filter((one) => one !== '')
  const quote = isToken(unit)
    ? await quotes.ofToken(unit, amount)
    : await quotes.ofFiat(unit, amount, codes, address)
  if (isRefusal(quote))
    return plainAnswer(503, isToken(unit) ? 'Pricing Oracle Unavailable' : 'Fiat Oracle Unavailable')
  if (isDenied(quote)) return plainAnswer(quote.status, quote.text)
  return json(quote)
}

async function ratesAnswer(prices: Prices, quotes: Quotes): Promise<RouteAnswer> {
  const winc = await prices.ofItem(gib)
  if (isRefusal(winc)) return plainAnswer(503, 'Pricing Oracle Unavailable')
  const rates = await quotes.rates()
  if (isRefusal(rates)) return plainAnswer(503, 'Fiat Oracle Unavailable')
  const fiat = currencies.map((currency) => {
    // What must be paid so that the price is left behind the fee.
    const paid = (fiatOfWinc(currency, winc * 10n ** 6n, rates) * 1000n) / BigInt(1000 - quotes.fee)
    return [currency, Number(paid) / 10 ** (6 + minorDigits(currency))] as const
  })
  const fee = { name: 'Service fee', operator: 'multiply', operatorMagnitude: (1000 - quotes.fee) / 1000 }
  return json({ winc: String(winc), fiat: Object.fromEntries(fiat), adjustments: [], fees: [fee] }, minute)
}
