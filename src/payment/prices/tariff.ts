import { type Currency, currencies, minorDigits } from './rates.js'

/** A fee or a discount, as answers show it. */
export interface Adjustment {
  readonly name: string
  readonly description: string
  readonly operator: 'add' | 'multiply'
  readonly operatorMagnitude: number
  readonly adjustmentAmount: string | number
  readonly currencyType?: string
  readonly promoCode?: string
  readonly maxDiscount?: number
}

/** Bounds of card payments in smallest units. */
export interface CurrencyLimits {
  readonly minimumPaymentAmount: number
  readonly maximumPaymentAmount: number
  readonly suggestedPaymentAmounts: readonly number[]
  readonly stripeMinimumPaymentAmount: number
  readonly zeroDecimalCurrency: boolean
}

/** About 5 USD and 10,000 USD in round numbers, and the card provider's own minimum. In the smallest unit of each currency. */
const bounds: Readonly<Record<Currency, readonly [least: number, most: number, card: number]>> = {
  aud: [750, 1_500_000, 50],
  brl: [2750, 5_500_000, 50],
  cad: [700, 1_400_000, 50],
  eur: [450, 900_000, 50],
  gbp: [400, 800_000, 30],
  hkd: [4000, 8_000_000, 400],
  inr: [42_500, 85_000_000, 50],
  jpy: [750, 1_500_000, 50],
  sgd: [650, 1_300_000, 50],
  usd: [500, 1_000_000, 50],
}

/** Bounds of a payment by card, in the smallest unit of the currency. */
export function limitsOfCurrency(currency: Currency): CurrencyLimits {
  const [least, most, card] = bounds[currency]
  return {
    minimumPaymentAmount: least,
    maximumPaymentAmount: most,
    suggestedPaymentAmounts: [least * 5, least * 10, least * 20],
    stripeMinimumPaymentAmount: card,
    zeroDecimalCurrency: minorDigits(currency) === 0,
  }
}

/** The answer of the list of currencies. */
export function currenciesAnswer(): object {
  const limits = Object.fromEntries(currencies.map((code) => [code, limitsOfCurrency(code)]))
  return { supportedCurrencies: currencies, limits }
}

/** A whole positive amount of the smallest unit, of at most 78 digits; undefined where it is none. */
export function readAmount(text: string): bigint | undefined {
  return /^0*[1-9]\d{0,77}$/.test(text) ? BigInt(text) : undefined
}

/** What is wrong with an amount of a currency; undefined where a card may be charged with it. */
export function amountFault(currency: Currency, minor: bigint): string | undefined {
  const { minimumPaymentAmount: least, maximumPaymentAmount: most } = limitsOfCurrency(currency)
  const fault = (what: string, bound: string): string =>
    `The provided payment amount (${minor}) is too ${what} for the currency type "${currency}"; it must be ${bound}!`
  if (minor < BigInt(least)) return fault('small', `above or equal to ${least}`)
  return minor > BigInt(most) ? fault('large', `below or equal to ${most}`) : undefined
}

/** The text of the answer to a currency that is not taken. */
export function unsupported(name: string): string {
  return `The currency type '${name}' is currently not supported by this API!`
}

/** The service's fee, as a part of what was paid. */
export function feeOf(feePermille: number, amount: string | number, currencyType: string): Adjustment {
  return {
    name: 'Service fee',
    description: 'Pays for bundling, storing at once and serving',
    operator: 'multiply',
    operatorMagnitude: (1000 - feePermille) / 1000,
    adjustmentAmount: amount,
    currencyType,
  }
}
