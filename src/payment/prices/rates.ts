/** Whole-number arithmetic of prices. Rates are USD for one whole token, and units of a currency for one USD, times 10^12. */

export const scale = 10n ** 12n
const wincPerAr = 10n ** 12n

/** Tokens that a wallet can pay with, and in how many digits of its smallest unit. */
export const tokenDecimals = {
  arweave: 12,
  ario: 6,
  'base-ario': 6,
  ethereum: 18,
  solana: 9,
  kyve: 6,
  matic: 18,
  pol: 18,
  'base-eth': 18,
  usdc: 6,
  'base-usdc': 6,
  'polygon-usdc': 6,
  'solana-usdc': 6,
  ed25519: 9,
} as const satisfies Readonly<Record<string, number>>

export type TokenName = keyof typeof tokenDecimals

/** Whose price a token has. */
const pricedAs: Readonly<Record<TokenName, Asset>> = {
  arweave: 'ar',
  ario: 'ario',
  'base-ario': 'ario',
  ethereum: 'eth',
  solana: 'sol',
  ed25519: 'sol',
  kyve: 'kyve',
  matic: 'pol',
  pol: 'pol',
  'base-eth': 'eth',
  usdc: 'usdc',
  'base-usdc': 'usdc',
  'polygon-usdc': 'usdc',
  'solana-usdc': 'usdc',
}

/** Names of one asset of one chain: what is recorded under one of them was paid in the other, too. */
const sameTokens: readonly (readonly TokenName[])[] = [
  ['solana', 'ed25519'],
  ['matic', 'pol'],
]

/** Whether two names of tokens, both of one chain, stand for the same asset. */
export function areOneToken(one: TokenName, other: TokenName): boolean {
  return one === other || sameTokens.some((names) => names.includes(one) && names.includes(other))
}

export const assets = ['ar', 'ario', 'eth', 'sol', 'kyve', 'pol', 'usdc'] as const
export type Asset = (typeof assets)[number]

export const currencies = ['aud', 'brl', 'cad', 'eur', 'gbp', 'hkd', 'inr', 'jpy', 'sgd', 'usd'] as const
export type Currency = (typeof currencies)[number]

/** Prices at one moment. */
export interface Rates {
  readonly usd: Readonly<Record<Asset, bigint>>
  readonly perUsd: Readonly<Record<Currency, bigint>>
}

/** Whether credits can be bought with this token. */
export function isToken(name: string): name is TokenName {
  return Object.hasOwn(tokenDecimals, name)
}

/** Whether credits can be bought in this currency. */
export function isCurrency(name: string): name is Currency {
  return (currencies as readonly string[]).includes(name)
}

/** Digits behind the point of a currency. */
export function minorDigits(currency: Currency): number {
  return currency === 'jpy' ? 0 : 2
}

function divideUp(amount: bigint, by: bigint): bigint {
  return (amount + by - 1n) / by
}

function divideRounded(amount: bigint, by: bigint): bigint {
  return (amount * 2n + by) / (by * 2n)
}

/** Winc that an amount of a token is worth, rounded down, before any fee. */
export function wincOfToken(token: TokenName, amount: bigint, { usd }: Rates): bigint {
  const asset = pricedAs[token]
  if (asset === 'ar') return (amount * wincPerAr) / 10n ** BigInt(tokenDecimals[token])
  return (amount * usd[asset] * wincPerAr) / (usd.ar * 10n ** BigInt(tokenDecimals[token]))
}

/** What an amount of a token is worth in USD, as text with six digits, rounded down. */
export function usdOfToken(token: TokenName, amount: bigint, { usd }: Rates): string {
  const micro = (amount * usd[pricedAs[token]]) / (10n ** BigInt(tokenDecimals[token]) * 10n ** 6n)
  return `${micro / 1_000_000n}.${String(micro % 1_000_000n).padStart(6, '0')}`
}

/** Units of a currency for one AR, times 10^12. */
export function arPrice(currency: Currency, { usd, perUsd }: Rates): bigint {
  return (usd.ar * perUsd[currency]) / scale
}

/** Winc for an amount of a currency in its smallest unit, rounded to a whole one, before any fee. */
export function wincOfFiat(currency: Currency, minor: bigint, rates: Rates): bigint {
  return divideRounded(
    minor * wincPerAr * scale,
    10n ** BigInt(minorDigits(currency)) * arPrice(currency, rates),
  )
}

/** What is left of an amount of winc behind a fee, rounded down. */
export function afterFee(winc: bigint, feePermille: number): bigint {
  return (winc * BigInt(1000 - feePermille)) / 1000n
}

/** A fee of an amount of a currency, rounded to its smallest unit. */
export function feeOfFiat(minor: bigint, feePermille: number): bigint {
  return divideRounded(minor * BigInt(feePermille), 1000n)
}

/** Winc for an amount of millionths of USD, rounded up. */
export function wincOfMicroUsd(microUsd: bigint, { usd }: Rates): bigint {
  return divideUp(microUsd * 10n ** 6n * wincPerAr, usd.ar)
}

/** Smallest units of a currency for an amount of winc, rounded up. */
export function fiatOfWinc(currency: Currency, winc: bigint, rates: Rates): bigint {
  return divideUp(winc * arPrice(currency, rates) * 10n ** BigInt(minorDigits(currency)), wincPerAr * scale)
}

/** Smallest units of a currency for millionths of USD, rounded up. */
export function fiatOfMicroUsd(currency: Currency, microUsd: bigint, { perUsd }: Rates): bigint {
  return divideUp(microUsd * perUsd[currency] * 10n ** BigInt(minorDigits(currency)), scale * 10n ** 6n)
}

const decimalShape = /^\d{1,12}(?:\.\d{1,24})?$/

/** A decimal number times 10^12, rounded down; undefined where it is none, or zero. */
export function readRate(text: string): bigint | undefined {
  if (!decimalShape.test(text)) return undefined
  const [whole = '0', fraction = ''] = text.split('.')
  const value = BigInt(whole + fraction.slice(0, 12).padEnd(12, '0'))
  return value === 0n ? undefined : value
}

/** A rate as a number, for answers. */
export function rateNumber(rate: bigint): number {
  return Number(rate) / 1e12
}
