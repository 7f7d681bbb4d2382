import type { Refusal } from '../../format/refusal.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import { type Asset, assets, type Currency, currencies, type Rates, readRate } from './rates.js'

/** Says what tokens and currencies are worth. Refusals: `upstream` where nothing trustworthy is known now. */
export interface Oracle {
  rates(): Promise<Rates | Refusal>
  /** Where it has them from, and how old they are: for the operator. */
  readonly about: { readonly source: string; readonly ageMs?: number }
  close(): void
}

/** The prices of the embedded oracle: of no day in particular, so that numbers in tests and on devnet never change. */
const fixedUsd: Readonly<Record<Asset, string>> = {
  ar: '6.25',
  ario: '0.02',
  eth: '2500',
  sol: '150',
  kyve: '0.03',
  pol: '0.4',
  usdc: '1',
}

const fixedPerUsd: Readonly<Record<Currency, string>> = {
  aud: '1.5',
  brl: '5.5',
  cad: '1.4',
  eur: '0.9',
  gbp: '0.75',
  hkd: '7.8',
  inr: '85',
  jpy: '150',
  sgd: '1.3',
  usd: '1',
}

function table<Name extends string>(
  names: readonly Name[],
  from: Readonly<Record<Name, string>>,
): Record<Name, bigint> {
  const entries = names.map((name) => {
    const rate = readRate(from[name])
    if (rate === undefined) throw new Error(`the rate of ${name} is no number`)
    return [name, rate] as const
  })
  return Object.fromEntries(entries) as Record<Name, bigint>
}

/** An oracle with a table. Throws where an entry is no positive number. */
export function fixedOracle(usd = fixedUsd, perUsd = fixedPerUsd): Oracle {
  const rates: Rates = { usd: table(assets, usd), perUsd: table(currencies, perUsd) }
  return { rates: async () => rates, about: { source: 'fixed' }, close: () => undefined }
}

/** How far from the table an unconfirmed first price may lie: prices have moved by ten times in a few years. */
const plausibleTimes = 30n

/** Whether prices lie where prices have been: what is off by a factor of a hundred does not. */
export function isPlausible({ usd, perUsd }: Rates): boolean {
  const known: Rates = { usd: table(assets, fixedUsd), perUsd: table(currencies, fixedPerUsd) }
  const isNear = (one: bigint, two: bigint, times: bigint): boolean =>
    one <= two * times && two <= one * times
  // One USDC is a dollar, and currencies of states move slowly.
  const timesOf = (asset: Asset): bigint => (asset === 'usdc' ? 2n : plausibleTimes)
  return (
    assets.every((asset) => isNear(usd[asset], known.usd[asset], timesOf(asset))) &&
    currencies.every((currency) => isNear(perUsd[currency], known.perUsd[currency], 5n))
  )
}

const memoryKind = 'oracle'
const memoryKey = 'rates'

/** Keeps prices in the ledger's records. */
export function ledgerMemory(ledger: MoneyLedger): {
  read(): Promise<Rates | undefined>
  write(rates: Rates): Promise<void>
} {
  const texts = (from: Readonly<Record<string, bigint>>): Record<string, string> =>
    Object.fromEntries(Object.entries(from).map(([name, value]) => [name, String(value)]))
  return {
    async read() {
      const stored = await ledger.record(memoryKind, memoryKey)
      return stored === undefined ? undefined : ratesIn(JSON.parse(stored.value))
    },
    async write({ usd, perUsd }) {
      const value = JSON.stringify({ usd: texts(usd), perUsd: texts(perUsd) })
      await ledger.commit({ transfers: [], records: [{ kind: memoryKind, key: memoryKey, value }] })
    },
  }
}

/** Undefined where a price is missing: of a version that knew fewer tokens. */
function ratesIn(kept: Readonly<Record<keyof Rates, Readonly<Record<string, string>>>>): Rates | undefined {
  const isWhole = (names: readonly string[], from: Readonly<Record<string, string>>): boolean =>
    names.every((name) => /^[1-9]\d*$/.test(from[name] ?? ''))
  if (!isWhole(assets, kept.usd) || !isWhole(currencies, kept.perUsd)) return undefined
  const read = (from: Readonly<Record<string, string>>): Record<string, bigint> =>
    Object.fromEntries(Object.entries(from).map(([name, value]) => [name, BigInt(value)]))
  return { usd: read(kept.usd) as Rates['usd'], perUsd: read(kept.perUsd) as Rates['perUsd'] }
}
