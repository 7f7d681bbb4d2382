import type { Refusal } from '../format/refusal.js'
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
