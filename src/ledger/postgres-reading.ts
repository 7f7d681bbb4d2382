import { decodeAccount, type LedgerAccount } from './ledger-account.js'
import { isKey, type LedgerReading, type LedgerRecord, type RecordSpan } from './ledger-port.js'
import { type AccountRow, type TransferRow, transferOf } from './postgres-rows.js'
import { type AskDatabase, type PreparedStatement, statement } from './postgres-session.js'
import type { Transfer } from './transfer.js'

// A list ends at a bound of its own: an index does not see where `starts_with` of a parameter ends.
const statements = {
  account: statement('account', 'SELECT body FROM ledger_accounts WHERE name = $1'),
  accounts: statement(
    'accounts',
    `SELECT name, body FROM ledger_accounts
     WHERE name >= $1 AND name > $2 AND name <= $4 ORDER BY name LIMIT $3`,
  ),
  transfer: statement('transfer', 'SELECT sequence, body FROM ledger_transfers WHERE id = $1'),
  ending: statement(
    'ending',
    `SELECT t.sequence, t.body FROM ledger_endings e JOIN ledger_transfers t USING (sequence) WHERE e.pending = $1`,
  ),
  history: statement(
    'history',
    `SELECT t.sequence, t.body FROM ledger_entries e JOIN ledger_transfers t USING (sequence)
     WHERE e.account = $1 AND e.sequence < $2 ORDER BY e.sequence DESC LIMIT $3`,
  ),
  record: statement('record', 'SELECT value, version FROM ledger_records WHERE kind = $1 AND key = $2'),
  records: statement(
    'records',
    `SELECT key, value, version FROM ledger_records
     WHERE kind = $1 AND key >= $2 AND key > $3 AND key <= $5 ORDER BY key LIMIT $4`,
  ),
  accountsNamed: statement('accounts_named', 'SELECT name, body FROM ledger_accounts WHERE name = ANY($1)'),
  transfersNamed: statement(
    'transfers_named',
    'SELECT sequence, body FROM ledger_transfers WHERE id = ANY($1)',
  ),
  endingsOf: statement(
    'endings_of',
    `SELECT t.sequence, t.body FROM ledger_endings e JOIN ledger_transfers t USING (sequence)
     WHERE e.pending = ANY($1)`,
  ),
  recordsNamed: statement(
    'records_named',
    'SELECT key, value, version FROM ledger_records WHERE kind = $1 AND key = ANY($2)',
  ),
  recordSpans: statement(
    'record_spans',
    `SELECT w.place, r.key, r.value, r.version
     FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS w(first, behind, last, place)
     CROSS JOIN LATERAL (
       SELECT key, value, version FROM ledger_records
       WHERE kind = $1 AND key >= w.first AND key > w.behind AND key <= w.last
       ORDER BY key LIMIT $5
     ) r ORDER BY w.place, r.key`,
  ),
} as const

/** Sorts behind all keys that begin alike: they have 400 bytes at most. */
const last = '\u{10ffff}'.repeat(101)

interface RecordRow {
  readonly key: string
  readonly value: string
  readonly version: string
}

/** The queries of a ledger, by way of `ask`: on any connection, or in one transaction. */
export class PostgresReading implements LedgerReading {
  constructor(private readonly ask: AskDatabase) {}

  async account(name: string): Promise<LedgerAccount | undefined> {
    if (!isKey(name)) return undefined
    const [row] = await this.ask<AccountRow>(statements.account, [name])
    return row === undefined ? undefined : decodeAccount(name, row.body)
  }

  async accounts(start: string, after: string, limit: number): Promise<LedgerAccount[]> {
    if (!isKey(start) || !isKey(after)) return []
    const rows = await this.ask<AccountRow>(statements.accounts, [start, after, limit, start + last])
    return rows.map(({ name, body }) => decodeAccount(name, body))
  }

  async transfer(id: string): Promise<Transfer | undefined> {
    if (!isKey(id)) return undefined
    const [row] = await this.ask<TransferRow>(statements.transfer, [id])
    return row === undefined ? undefined : transferOf(row)
  }

  async ending(pendingId: string): Promise<Transfer | undefined> {
    if (!isKey(pendingId)) return undefined
    const [row] = await this.ask<TransferRow>(statements.ending, [pendingId])
    return row === undefined ? undefined : transferOf(row)
  }

  async history(account: string, before: number, limit: number): Promise<Transfer[]> {
    if (!isKey(account)) return []
    return (await this.ask<TransferRow>(statements.history, [account, before, limit])).map(transferOf)
  }

  async record(kind: string, key: string): Promise<LedgerRecord | undefined> {
    if (!isKey(key, kind)) return undefined
    const [row] = await this.ask<{ value: string; version: string }>(statements.record, [kind, key])
    return row === undefined ? undefined : { kind, key, value: row.value, version: Number(row.version) }
  }

  async records(kind: string, start: string, after: string, limit: number): Promise<LedgerRecord[]> {
    if (!isKey(start, kind) || !isKey(after, kind)) return []
    const wanted = [kind, start, after, limit, start + last]
    const rows = await this.ask<RecordRow>(statements.records, wanted)
    return rows.map((row) => recordOf(kind, row))
  }

  async accountsNamed(names: readonly string[]): Promise<LedgerAccount[]> {
    const wanted = names.filter((name) => isKey(name))
    if (wanted.length === 0) return []
    const rows = await this.ask<AccountRow>(statements.accountsNamed, [wanted])
    return rows.map(({ name, body }) => decodeAccount(name, body))
  }

  transfersNamed(ids: readonly string[]): Promise<Transfer[]> {
    return this.#transfers(statements.transfersNamed, ids)
  }

  endingsOf(pendingIds: readonly string[]): Promise<Transfer[]> {
    return this.#transfers(statements.endingsOf, pendingIds)
  }

  async #transfers(by: PreparedStatement, ids: readonly string[]): Promise<Transfer[]> {
    const wanted = ids.filter((id) => isKey(id))
    return wanted.length === 0 ? [] : (await this.ask<TransferRow>(by, [wanted])).map(transferOf)
  }

  async recordsNamed(kind: string, keys: readonly string[]): Promise<LedgerRecord[]> {
    const wanted = keys.filter((key) => isKey(key, kind))
    if (wanted.length === 0) return []
    const rows = await this.ask<RecordRow>(statements.recordsNamed, [kind, wanted])
    return rows.map((row) => recordOf(kind, row))
  }

  async recordSpans(kind: string, spans: readonly RecordSpan[], limit: number): Promise<LedgerRecord[][]> {
    const found = spans.map((): LedgerRecord[] => [])
    const wanted = [...spans.entries()].filter(
      ([, { start, after }]) => isKey(start, kind) && isKey(after, kind),
    )
    if (wanted.length === 0) return found
    const starts = wanted.map(([, { start }]) => start)
    const rows = await this.ask<RecordRow & { readonly place: string }>(statements.recordSpans, [
      kind,
      starts,
      wanted.map(([, { after }]) => after),
      starts.map((start) => start + last),
      limit,
    ])
    for (const row of rows) {
      const [place = 0] = wanted[Number(row.place) - 1] ?? []
      found[place]?.push(recordOf(kind, row))
    }
    return found
  }
}

function recordOf(kind: string, { key, value, version }: RecordRow): LedgerRecord {
  return { kind, key, value, version: Number(version) }
}
