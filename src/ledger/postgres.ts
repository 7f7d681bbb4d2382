import postgres, { type Sql, type TransactionSql } from 'postgres'
import type { Clock } from '../actor/clock.js'
import { decodeAccount, encodeAccount, type LedgerAccount } from './account.js'
import { Auditor } from './auditor.js'
import { FetchedBooks, wantedBy } from './fetched-books.js'
import { GroupCommit } from './group.js'
import type { HeadKey } from './head-key.js'
import { assertEntries, judge } from './judge.js'
import {
  type CommitOrder,
  type CommitOutcome,
  isKey,
  isRejected,
  type LedgerRecord,
  type LedgerReport,
  type MoneyLedger,
  type SignedHead,
} from './port.js'
import { migrations } from './postgres-schema.js'
import { decodeTransfer, encodeTransfer, expiryOf, nextHead, type Transfer } from './transfer.js'

export interface PostgresOptions {
  /** postgres://user@host:port/database */
  readonly url: string
  readonly clock: Clock
  /** Absent: heads are not signed. */
  readonly key?: HeadKey
}

interface StateRow {
  readonly sequence: string
  readonly version: string
  readonly head: Uint8Array
  readonly time_ms: string
}

const groupMax = 1000
const expiredAtOnce = 500
/** A database that fails over is back within seconds; each order is known by its id, so it may be given again. */
const triesMax = 5
/** Any number of ours: who makes tables holds this lock. */
const migrationLock = 718_281_828
const retried = new Set([
  '40001',
  '40P01',
  '57P01',
  '57P03',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'ECONNRESET',
  'ECONNREFUSED',
])

/**
 * The ledger in PostgreSQL, for several services on one database. A group of orders is one transaction. It begins by locking the
 * one row of the state, so that groups of all services follow each other: that is serializable without anything to retry, and the
 * chain has no gaps. What it costs is paid once a group, so that throughput grows with the number of orders under way.
 */
export class PostgresLedger implements MoneyLedger {
  readonly #sql: Sql
  readonly #group: GroupCommit<CommitOrder, CommitOutcome>

  private constructor(private readonly options: PostgresOptions) {
    this.#sql = postgres(options.url, { max: 8, onnotice: () => undefined, connect_timeout: 10 })
    this.#group = new GroupCommit((orders) => this.#carryOut(orders), groupMax)
  }

  /** Connects, and makes what tables are missing. Rejects where there is no such database. */
  static async open(options: PostgresOptions): Promise<PostgresLedger> {
    const ledger = new PostgresLedger(options)
    try {
      await ledger.#migrate()
    } catch (error) {
      await ledger.#sql.end({ timeout: 1 })
      throw error
    }
    return ledger
  }

  commit(order: CommitOrder): Promise<CommitOutcome> {
    return this.#group.add(order)
  }

  async account(name: string): Promise<LedgerAccount | undefined> {
    if (!isKey(name)) return undefined
    const [row] = await this.#sql<{ body: string }[]>`SELECT body FROM ledger_accounts WHERE name = ${name}`
    return row === undefined ? undefined : decodeAccount(name, row.body)
  }

  async accounts(start: string, after: string, limit: number): Promise<LedgerAccount[]> {
    const rows = await this.#sql<{ name: string; body: string }[]>`
      SELECT name, body FROM ledger_accounts
      WHERE name >= ${start} AND name > ${after} AND starts_with(name, ${start}) ORDER BY name LIMIT ${limit}`
    return rows.map(({ name, body }) => decodeAccount(name, body))
  }

  async transfer(id: string): Promise<Transfer | undefined> {
    const [row] = await this.#sql<{ sequence: string; body: string }[]>`
      SELECT sequence, body FROM ledger_transfers WHERE id = ${id}`
    return row === undefined ? undefined : decodeTransfer(Number(row.sequence), row.body)
  }

  async ending(pendingId: string): Promise<Transfer | undefined> {
    const [row] = await this.#sql<{ sequence: string; body: string }[]>`
      SELECT t.sequence, t.body FROM ledger_endings e JOIN ledger_transfers t USING (sequence) WHERE e.pending = ${pendingId}`
    return row === undefined ? undefined : decodeTransfer(Number(row.sequence), row.body)
  }

  async history(account: string, before: number, limit: number): Promise<Transfer[]> {
    const rows = await this.#sql<{ sequence: string; body: string }[]>`
      SELECT t.sequence, t.body FROM ledger_entries e JOIN ledger_transfers t USING (sequence)
      WHERE e.account = ${account} AND e.sequence < ${before} ORDER BY e.sequence DESC LIMIT ${limit}`
    return rows.map(({ sequence, body }) => decodeTransfer(Number(sequence), body))
  }

  async record(kind: string, key: string): Promise<LedgerRecord | undefined> {
    if (!isKey(key, kind)) return undefined
    const [row] = await this.#sql<{ value: string; version: string }[]>`
      SELECT value, version FROM ledger_records WHERE kind = ${kind} AND key = ${key}`
    return row === undefined ? undefined : { kind, key, value: row.value, version: Number(row.version) }
  }

  async records(kind: string, start: string, after: string, limit: number): Promise<LedgerRecord[]> {
    if (!isKey(start, kind) || !isKey(after, kind)) return []
    const rows = await this.#sql<{ key: string; value: string; version: string }[]>`
      SELECT key, value, version FROM ledger_records
      WHERE kind = ${kind} AND key >= ${start} AND key > ${after} AND starts_with(key, ${start}) ORDER BY key LIMIT ${limit}`
    return rows.map(({ key, value, version }) => ({ kind, key, value, version: Number(version) }))
  }

  async expire(): Promise<number> {
    const rows = await this.#sql<{ sequence: string; body: string }[]>`
      SELECT t.sequence, t.body FROM ledger_transfers t
      WHERE t.until_ms > 0 AND t.until_ms <= ${this.options.clock.now()}
        AND NOT EXISTS (SELECT 1 FROM ledger_endings e WHERE e.pending = t.id)
      ORDER BY t.until_ms LIMIT ${expiredAtOnce}`
    const outcomes = await Promise.all(
      rows.map(({ sequence, body }) => {
        const pending = decodeTransfer(Number(sequence), body)
        return this.commit({ transfers: [expiryOf(pending)] })
      }),
    )
    return outcomes.filter((outcome) => !isRejected(outcome)).length
  }

  async signHead(): Promise<SignedHead | undefined> {
    const { key, clock } = this.options
    if (key === undefined) return undefined
    const [state] = await this.#sql<StateRow[]>`SELECT * FROM ledger_state`
    const [last] = await this.#sql<{ sequence: string }[]>`SELECT max(sequence) AS sequence FROM ledger_heads`
    const sequence = Number(state?.sequence ?? 0)
    if (state === undefined || sequence === 0 || sequence === Number(last?.sequence ?? 0)) return undefined
    const facts = { sequence, head: Buffer.from(state.head).toString('hex'), timeMs: clock.now() }
    const signed = { ...facts, signature: key.sign(facts.sequence, facts.head, facts.timeMs) }
    await this
      .#sql`INSERT INTO ledger_heads VALUES (${sequence}, ${JSON.stringify(signed)}) ON CONFLICT DO NOTHING`
    return signed
  }

  async check(): Promise<LedgerReport> {
    return this.#sql.begin('ISOLATION LEVEL REPEATABLE READ READ ONLY', async (tx) => {
      const heads = await tx<{ body: string }[]>`SELECT body FROM ledger_heads ORDER BY sequence`
      const auditor = new Auditor(
        heads.map(({ body }) => JSON.parse(body) as SignedHead),
        this.options.key?.publicKey,
      )
      const all = tx<
        { sequence: string; body: string }[]
      >`SELECT sequence, body FROM ledger_transfers ORDER BY sequence`
      for await (const rows of all.cursor(5000))
        for (const { sequence, body } of rows) auditor.take(Number(sequence), body)
      const accounts = await tx<{ name: string; body: string }[]>`SELECT name, body FROM ledger_accounts`
      return auditor.report(accounts.map(({ name, body }) => decodeAccount(name, body)))
    })
  }

  async close(): Promise<void> {
    await this.#group.drained()
    await this.#sql.end({ timeout: 5 })
  }

  async #migrate(): Promise<void> {
    await this.#sql.begin(async (tx) => {
      await tx`SELECT pg_advisory_xact_lock(${migrationLock})`
      await tx`CREATE TABLE IF NOT EXISTS ledger_migrations (step integer PRIMARY KEY)`
      const [row] = await tx<{ steps: string }[]>`SELECT count(*) AS steps FROM ledger_migrations`
      for (let step = Number(row?.steps ?? 0); step < migrations.length; step += 1) {
        await tx.unsafe(migrations[step] ?? '')
        await tx`INSERT INTO ledger_migrations VALUES (${step})`
      }
    })
  }

  async #carryOut(orders: readonly CommitOrder[]): Promise<readonly CommitOutcome[]> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#sql.begin((tx) => this.#inside(tx, orders))
      } catch (error) {
        const { code } = error as { code?: string }
        if (tries === triesMax || code === undefined || !retried.has(code)) throw error
        await new Promise<void>((resolve) => this.options.clock.after(100 * 2 ** tries, resolve))
      }
    }
  }

  async #inside(tx: TransactionSql, orders: readonly CommitOrder[]): Promise<CommitOutcome[]> {
    const [state] = await tx<StateRow[]>`SELECT * FROM ledger_state FOR UPDATE`
    if (state === undefined) throw new Error('the ledger has no state')
    const books = await fetched(tx, orders, state)
    const nowMs = Math.max(Math.floor(this.options.clock.now()), Number(state.time_ms))
    const outcomes = orders.map((order): CommitOutcome => {
      const judged = judge(order, books, books.sequence, nowMs)
      if ('rejected' in judged) return judged
      if ('existed' in judged) return { transfers: judged.existed, existed: true }
      assertEntries(judged.entries, (name) => books.account(name))
      books.apply(judged.entries)
      return { transfers: judged.entries.transfers, existed: false }
    })
    await written(tx, books, state.head, nowMs)
    return outcomes
  }
}

async function fetched(
  tx: TransactionSql,
  orders: readonly CommitOrder[],
  state: StateRow,
): Promise<FetchedBooks> {
  const { ids, pendings, accounts, records } = wantedBy(orders)
  const books = new FetchedBooks(Number(state.sequence), Number(state.version))
  const names = [...ids, ...pendings]
  const kinds = records.map(({ kind }) => kind)
  const keys = records.map(({ key }) => key)
  // One round trip for what does not depend on each other.
  const [transfers, ended, found] = await Promise.all([
    tx<
      { sequence: string; body: string }[]
    >`SELECT sequence, body FROM ledger_transfers WHERE id = ANY(${names})`,
    tx<{ pending: string }[]>`SELECT pending FROM ledger_endings WHERE pending = ANY(${pendings})`,
    tx<{ kind: string; key: string; value: string; version: string }[]>`
      SELECT r.* FROM ledger_records r JOIN unnest(${kinds}::text[], ${keys}::text[]) AS w(kind, key) USING (kind, key)`,
  ])
  const touched = new Set(accounts)
  for (const { sequence, body } of transfers) {
    const transfer = decodeTransfer(Number(sequence), body)
    books.transfers.set(transfer.id, transfer)
    touched.add(transfer.debit).add(transfer.credit)
  }
  for (const { pending } of ended) books.ended.add(pending)
  for (const { kind, key, value, version } of found)
    books.records.set(`${kind}\0${key}`, { kind, key, value, version: Number(version) })
  const rows = await tx<{ name: string; body: string }[]>`
    SELECT name, body FROM ledger_accounts WHERE name = ANY(${[...touched]})`
  for (const { name, body } of rows) books.accounts.set(name, decodeAccount(name, body))
  return books
}

async function written(
  tx: TransactionSql,
  books: FetchedBooks,
  before: Uint8Array,
  nowMs: number,
): Promise<void> {
  const { added, changedAccounts, changedRecords, sequence, version } = books
  if (added.length === 0 && changedRecords.size === 0) return
  let head = before
  const bodies = added.map((transfer) => {
    const body = encodeTransfer(transfer)
    head = nextHead(head, transfer.sequence, body)
    return body
  })
  const sequences = added.map((one) => one.sequence)
  const endings = added.filter(({ pending }) => pending !== '')
  const moves = added.filter(({ pending }) => pending === '')
  const entries = moves.flatMap(({ debit, credit, sequence: at }) => [
    { account: debit, at },
    { account: credit, at },
  ])
  const accounts = [...changedAccounts].flatMap((name) => books.accounts.get(name) ?? [])
  const places = [...changedRecords]
  const kept = places.flatMap((place) => books.records.get(place) ?? [])
  const gone = places.filter((place) => !books.records.has(place)).map((place) => place.split('\0'))
  await Promise.all([
    tx`INSERT INTO ledger_transfers SELECT * FROM unnest(${sequences}::bigint[], ${added.map(({ id }) => id)}::text[],
      ${added.map(({ untilMs }) => untilMs)}::bigint[], ${bodies}::text[])`,
    tx`INSERT INTO ledger_endings SELECT * FROM unnest(${endings.map(({ pending }) => pending)}::text[],
      ${endings.map((one) => one.sequence)}::bigint[])`,
    tx`INSERT INTO ledger_entries SELECT * FROM unnest(${entries.map(({ account }) => account)}::text[],
      ${entries.map(({ at }) => at)}::bigint[])`,
    tx`INSERT INTO ledger_accounts SELECT * FROM unnest(${accounts.map(({ name }) => name)}::text[],
      ${accounts.map(encodeAccount)}::text[]) ON CONFLICT (name) DO UPDATE SET body = excluded.body`,
    tx`INSERT INTO ledger_records SELECT * FROM unnest(${kept.map(({ kind }) => kind)}::text[],
      ${kept.map(({ key }) => key)}::text[], ${kept.map((one) => one.version)}::bigint[],
      ${kept.map(({ value }) => value)}::text[])
      ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, version = excluded.version`,
    tx`DELETE FROM ledger_records r USING unnest(${gone.map(([kind = '']) => kind)}::text[],
      ${gone.map(([, key = '']) => key)}::text[]) AS g(kind, key) WHERE r.kind = g.kind AND r.key = g.key`,
    tx`UPDATE ledger_state SET sequence = ${sequence}, version = ${version}, head = ${Buffer.from(head)}, time_ms = ${nowMs}`,
  ])
}
