import type { Clock } from '../actor/clock.js'
import { EmbeddedLedger } from './embedded.js'
import { headKey } from './head-key.js'
import type { MoneyLedger } from './ledger-port.js'

export interface LedgerPlace {
  /** Folder of the embedded ledger. */
  readonly ledgerPath: string
  /** In this database instead. */
  readonly databaseUrl?: string
  /** File of the key that signs heads of the chain. */
  readonly headKeyPath: string
}

/** Opens the ledger where it is kept. The client of the database is loaded only where there is one. */
export async function openLedger(
  { ledgerPath, databaseUrl, headKeyPath }: LedgerPlace,
  clock: Clock,
): Promise<MoneyLedger> {
  const key = headKey(headKeyPath)
  if (databaseUrl === undefined) return new EmbeddedLedger({ path: ledgerPath, clock, key })
  const { PostgresLedger } = await import('./postgres.js')
  return PostgresLedger.open({ url: databaseUrl, clock, key })
}
