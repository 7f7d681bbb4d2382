import { Auditor } from './auditor.js'
import type { HeadKey } from './head-key.js'
import { decodeAccount, type LedgerAccount } from './ledger-account.js'
import { decodeHead, type LedgerReading, type LedgerReport } from './ledger-port.js'
import { PostgresReading } from './postgres-reading.js'
import {
  type AccountRow,
  computedSum,
  recordSumOf,
  rowsOf,
  type StateRow,
  type TransferRow,
} from './postgres-rows.js'
import type { AskDatabase } from './postgres-session.js'
import { noRecords, RecordSum } from './record-sum.js'

interface WholeTransferRow extends TransferRow {
  readonly id: string
  readonly until_ms: string
}

interface EntryRow {
  readonly account: string
  readonly sequence: string
}

interface EndingRow {
  readonly pending: string
  readonly sequence: string
}

/** Computes everything anew from the transfers, and compares. `ask`: in a transaction that sees one state. */
export async function auditDatabase(
  ask: AskDatabase,
  key?: HeadKey,
  also?: (reading: LedgerReading) => Promise<readonly string[]>,
): Promise<LedgerReport> {
  const heads = await ask<{ body: string }>('SELECT body FROM ledger_heads ORDER BY sequence')
  const auditor = new Auditor(
    heads.map(({ body }) => decodeHead(body)),
    key,
  )
  const stored: LedgerAccount[] = []
  try {
    await auditRows(ask, auditor)
    for (const { name, body } of await ask<AccountRow>('SELECT name, body FROM ledger_accounts'))
      stored.push(decodeAccount(name, body))
    for (const fault of (await also?.(new PostgresReading(ask))) ?? []) auditor.fault(fault)
  } catch (error) {
    // Errors of the database have a code; all else is a row that cannot be read.
    if (error instanceof Error && 'code' in error) throw error
    auditor.unreadable(error)
  }
  return auditor.report(stored)
}

async function auditRows(ask: AskDatabase, auditor: Auditor): Promise<void> {
  // Each end is taken in once from its transfer, and once from its row, so that nothing is left.
  const ends = new RecordSum()
  const transfers = `SELECT sequence, id, until_ms, body FROM ledger_transfers
    WHERE sequence > $1 ORDER BY sequence LIMIT $2`
  for await (const row of rowsOf<WholeTransferRow>(ask, transfers, [0], ({ sequence }) => [sequence])) {
    const { id, untilMs, pending, sequence } = auditor.take(Number(row.sequence), row.body)
    if (row.id !== id || Number(row.until_ms) !== untilMs)
      auditor.fault(`transfer ${sequence} is found as ${row.id} until ${row.until_ms}, and is another one`)
    // A pending transfer is found by its row.
    if (untilMs !== 0) auditor.timed({ sequence, index: 0 }, untilMs, false)
    if (pending !== '') ends.flip('end', pending, sequence, '')
  }
  const endings = 'SELECT pending, sequence FROM ledger_endings WHERE pending > $1 ORDER BY pending LIMIT $2'
  for await (const row of rowsOf<EndingRow>(ask, endings, [''], ({ pending }) => [pending]))
    ends.flip('end', row.pending, Number(row.sequence), '')
  if (ends.text !== noRecords) auditor.fault('the ends of pending transfers are not those of the transfers')
  const entries = `SELECT account, sequence FROM ledger_entries
    WHERE (account, sequence) > ($1, $2) ORDER BY account, sequence LIMIT $3`
  const placeOf = ({ account, sequence }: EntryRow): readonly unknown[] => [account, sequence]
  for await (const { account, sequence } of rowsOf<EntryRow>(ask, entries, ['', 0], placeOf))
    auditor.listed(account, { sequence: Number(sequence), index: 0 })
  const [state] = await ask<StateRow>('SELECT * FROM ledger_state')
  if (state === undefined) throw new Error('the ledger has no state')
  auditor.state(Number(state.sequence), Buffer.from(state.head).toString('hex'))
  const sum = recordSumOf(state)
  if (sum !== undefined) auditor.records(sum.text, (await computedSum(ask)).text)
}
