import { jsonFields } from '../../format/json.js'
import { type Asset, assets, type Currency, currencies, readRate } from './rates.js'

/** The prices in the answer of one source. */
export interface SourceRates {
  readonly usd: Readonly<Partial<Record<Asset, bigint>>>
  readonly perUsd: Readonly<Partial<Record<Currency, bigint>>>
}

/** The request to a source, and the parser of its answer. */
interface PriceDialect {
  /** The path behind the address of the source. */
  readonly query: string
  /** The assets that it is expected to price. */
  readonly assets: readonly Asset[]
  read(body: Readonly<Record<string, unknown>>): SourceRates
}

/** A price of JSON: a positive number, or one as text. */
function decimalOf(value: unknown): bigint | undefined {
  const number = typeof value === 'string' ? Number(value) : value
  if (typeof number !== 'number' || !Number.isFinite(number) || number <= 0) return undefined
  return number < 1e12 ? readRate(number.toFixed(12)) : undefined
}

function table<Name extends string>(
  names: readonly Name[],
  rateOf: (name: Name) => bigint | undefined,
): Partial<Record<Name, bigint>> {
  const found = names.flatMap((name) => {
    const rate = rateOf(name)
    return rate === undefined ? [] : [[name, rate] as const]
  })
  return Object.fromEntries(found) as Partial<Record<Name, bigint>>
}

/** Prices of tokens in every currency: what a currency is worth follows from the price of AR in both. */
function crossed(priceOf: (asset: Asset, currency: Currency) => unknown): SourceRates {
  const arUsd = Number(priceOf('ar', 'usd'))
  return {
    usd: table(assets, (asset) => decimalOf(priceOf(asset, 'usd'))),
    perUsd: table(currencies, (currency) => {
      const price = decimalOf(priceOf('ar', currency))
      return price === undefined ? undefined : decimalOf(Number(price) / 1e12 / arUsd)
    }),
  }
}

const geckoNames: Readonly<Record<Asset, string>> = {
  ar: 'arweave',
  ario: 'ar-io-network',
  eth: 'ethereum',
  sol: 'solana',
  kyve: 'kyve-network',
  pol: 'polygon-ecosystem-token',
  usdc: 'usd-coin',
}

/** CoinGecko's /simple/price: `{arweave: {usd: 6.25, eur: 5.6, ...}, ethereum: {usd: ...}}`. */
const gecko: PriceDialect = {
  query: `?ids=${Object.values(geckoNames).join(',')}&vs_currencies=${currencies.join(',')}`,
  assets,
  read: (body) => crossed((asset, currency) => jsonFields(body[geckoNames[asset]])[currency]),
}

/** CryptoCompare's /data/pricemulti: `{AR: {USD: 6.25, EUR: 5.6, ...}, ETH: {USD: ...}}`. */
const compare: PriceDialect = {
  query: `?fsyms=${assets.join(',').toUpperCase()}&tsyms=${currencies.join(',').toUpperCase()}`,
  assets,
  read: (body) => crossed((asset, currency) => jsonFields(body[asset.toUpperCase()])[currency.toUpperCase()]),
}

/** Coinbase's /v2/exchange-rates: `{data: {currency: 'USD', rates: {EUR: '0.9', ETH: '0.0004', ...}}}`, units for one USD. */
const coinbase: PriceDialect = {
  query: '?currency=USD',
  assets: ['eth', 'sol', 'usdc'],
  read: (body) => {
    const { currency, rates } = jsonFields(body.data)
    if (currency !== 'USD') return { usd: {}, perUsd: {} }
    const perUsd = jsonFields(rates)
    const unitsOf = (name: string): number => Number(perUsd[name.toUpperCase()])
    return {
      usd: table(coinbase.assets, (asset) => decimalOf(1 / unitsOf(asset))),
      perUsd: table(currencies, (one) => decimalOf(unitsOf(one))),
    }
  },
}

/** The dialect of a source, by the end of its path. */
export function dialectOf(url: string): PriceDialect {
  const { pathname } = new URL(url)
  if (/\/pricemulti\/?$/.test(pathname)) return compare
  return /\/exchange-rates\/?$/.test(pathname) ? coinbase : gecko
}
