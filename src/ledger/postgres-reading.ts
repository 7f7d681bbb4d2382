import { decodeAccount, type LedgerAccount } from './ledger-account.js'
import { isKey, type LedgerReading, type LedgerRecord } from './ledger-port.js'
import { type AccountRow, type TransferRow, transferOf } from './postgres-rows.js'
import { type AskDatabase, statement } from './postgres-session.js'
import type { Transfer } from './transfer.js'

const statements = {
  account: statement('account', 'SELECT body FROM ledger_accounts WHERE name = $1'),
  accounts: statement(
    'accounts',
    `SELECT name, body FROM ledger_accounts
     WHERE name >= $1 AND name > $2 AND starts_with(name, $1) ORDER BY name LIMIT $3`,
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
     WHERE kind = $1 AND key >= $2 AND key > $3 AND starts_with(key, $2) ORDER BY key LIMIT $4`,
  ),
} as const

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
    const rows = await this.ask<AccountRow>(statements.accounts, [start, after, limit])
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
    const wanted = [kind, start, after, limit]
    const rows = await this.ask<{ key: string; value: string; version: string }>(statements.records, wanted)
    return rows.map(({ key, value, version }) => ({ kind, key, value, version: Number(version) }))
  }
}
