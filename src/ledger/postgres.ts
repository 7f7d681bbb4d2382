import type { Clock } from '../actor/clock.js'
import { FetchedView, wantedBy } from './fetched-view.js'
import { GroupCommit } from './group.js'
import type { HeadKey } from './head-key.js'
import { assertEntries, judge } from './judge-order.js'
import { decodeAccount, encodeAccount, type LedgerAccount } from './ledger-account.js'
import {
  CommitFailure,
  type CommitOrder,
  type CommitOutcome,
  isRejected,
  type LedgerReading,
  type LedgerRecord,
  type LedgerReport,
  type MoneyLedger,
  type RecordSpan,
  type SignedHead,
} from './ledger-port.js'
import { auditDatabase } from './postgres-audit.js'
import { PostgresLeads } from './postgres-leads.js'
import { PostgresReading } from './postgres-reading.js'
import {
  type AccountRow,
  recordSumOf,
  type StateRow,
  sumRecords,
  type TransferRow,
  transferOf,
} from './postgres-rows.js'
import { migrations } from './postgres-schema.js'
import { type AskDatabase, PostgresSessions, statement } from './postgres-session.js'
import { encodeTransfer, expiryOf, nextHead, type Transfer } from './transfer.js'

export interface PostgresOptions {
  /** postgres://user@host:port/database */
  readonly url: string
  readonly clock: Clock
  /** Absent: heads are not signed. */
  readonly key?: HeadKey
  /** A database that does not answer for so long is gone (10,000). */
  readonly answerMs?: number
}

/** The outcomes of an attempted transaction, and its number in the database (decimal). */
interface Attempt {
  readonly xid: string
  readonly outcomes: readonly CommitOutcome[]
}

/** Each statement behind a lock has to see what was committed before it, whatever the default of the database is. */
const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
const groupMax = 1000
/** Connections for questions, and others for commits, which do not wait behind these. */
const readingMax = 6
const writingMax = 2
const expiredAtOnce = 500
/** A database that fails over is back within seconds; each order is known by its id, so it may be given again. */
const triesMax = 5
/** Any number of ours: who makes tables holds this lock. */
const migrationLock = 718_281_828
const retried = new Set([
  '40001',
  '40P01',
  '57P01',
  '57P02',
  '57P03',
  'CONNECTION_CLOSED',
  'ECONNRESET',
  'ECONNREFUSED',
  'EPIPE',
])

const statements = {
  due: statement(
    'due',
    `SELECT t.sequence, t.body FROM ledger_transfers t
     WHERE t.until_ms > 0 AND t.until_ms <= $1
       AND NOT EXISTS (SELECT 1 FROM ledger_endings e WHERE e.pending = t.id)
     ORDER BY t.until_ms LIMIT $2`,
  ),
  time: statement('time', 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms'),
  lock: statement('lock', 'SELECT *, txid_current() AS xid FROM ledger_state FOR UPDATE'),
  wantedTransfers: statement(
    'wanted_transfers',
    'SELECT sequence, body FROM ledger_transfers WHERE id = ANY($1)',
  ),
  wantedEndings: statement('wanted_endings', 'SELECT pending FROM ledger_endings WHERE pending = ANY($1)'),
  wantedRecords: statement(
    'wanted_records',
    `SELECT r.kind, r.key, r.value, r.version FROM ledger_records r
     JOIN unnest($1::text[], $2::text[]) AS w(kind, key) USING (kind, key)`,
  ),
  wantedAccounts: statement('wanted_accounts', 'SELECT name, body FROM ledger_accounts WHERE name = ANY($1)'),
  // Everything that a group has changed in one statement, so that it takes one round trip.
  write: statement(
    'write',
    `WITH
       t AS (INSERT INTO ledger_transfers SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[])),
       e AS (INSERT INTO ledger_endings SELECT * FROM unnest($5::text[], $6::bigint[])),
       n AS (INSERT INTO ledger_entries SELECT * FROM unnest($7::text[], $8::bigint[])),
       a AS (INSERT INTO ledger_accounts SELECT * FROM unnest($9::text[], $10::text[])
             ON CONFLICT (name) DO UPDATE SET body = excluded.body),
       r AS (INSERT INTO ledger_records SELECT * FROM unnest($11::text[], $12::text[], $13::bigint[], $14::text[])
             ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, version = excluded.version),
       d AS (DELETE FROM ledger_records r USING unnest($15::text[], $16::text[]) AS g(kind, key)
             WHERE r.kind = g.kind AND r.key = g.key)
     UPDATE ledger_state
     SET sequence = $17, version = $18, head = $19, time_ms = $20, records = $21, records_version = $22`,
  ),
} as const

/**
 * The ledger in PostgreSQL, for several services on one database. A group of orders is one transaction. It first locks the single
 * row of the state, so that the groups of all services are serial. So no group must be repeated, and the chain has no gaps. The
 * cost is per group, so throughput grows with the number of orders in flight.
 */
export class PostgresLedger implements MoneyLedger {
  readonly #sessions: PostgresSessions
  readonly #writing: PostgresSessions
  readonly #reading: PostgresReading
  readonly #leads: PostgresLeads
  readonly #group: GroupCommit<CommitOrder, CommitOutcome>

  private constructor(private readonly options: PostgresOptions) {
    const { answerMs = 10_000 } = options
    this.#sessions = new PostgresSessions(options.url, readingMax, answerMs)
    this.#writing = new PostgresSessions(options.url, writingMax, answerMs)
    this.#reading = new PostgresReading(this.#sessions.ask)
    this.#leads = new PostgresLeads(options.url, answerMs, options.clock)
    this.#group = new GroupCommit(
      (orders) => this.#carryOut(orders),
      groupMax,
      (error, order) => new CommitFailure(error, order),
    )
  }

  /** Connects, and makes what tables are missing. Rejects where there is no such database. */
  static async open(options: PostgresOptions): Promise<PostgresLedger> {
    const ledger = new PostgresLedger(options)
    try {
      await ledger.#migrate()
    } catch (error) {
      await Promise.all([ledger.#sessions.close(), ledger.#writing.close()])
      throw error
    }
    return ledger
  }

  commit(order: CommitOrder): Promise<CommitOutcome> {
    return this.#group.add(order)
  }

  account(name: string): Promise<LedgerAccount | undefined> {
    return this.#reading.account(name)
  }

  accounts(start: string, after: string, limit: number): Promise<LedgerAccount[]> {
    return this.#reading.accounts(start, after, limit)
  }

  transfer(id: string): Promise<Transfer | undefined> {
    return this.#reading.transfer(id)
  }

  ending(pendingId: string): Promise<Transfer | undefined> {
    return this.#reading.ending(pendingId)
  }

  history(account: string, before: number, limit: number): Promise<Transfer[]> {
    return this.#reading.history(account, before, limit)
  }

  record(kind: string, key: string): Promise<LedgerRecord | undefined> {
    return this.#reading.record(kind, key)
  }

  records(kind: string, start: string, after: string, limit: number): Promise<LedgerRecord[]> {
    return this.#reading.records(kind, start, after, limit)
  }

  accountsNamed(names: readonly string[]): Promise<LedgerAccount[]> {
    return this.#reading.accountsNamed(names)
  }

  transfersNamed(ids: readonly string[]): Promise<Transfer[]> {
    return this.#reading.transfersNamed(ids)
  }

  endingsOf(pendingIds: readonly string[]): Promise<Transfer[]> {
    return this.#reading.endingsOf(pendingIds)
  }

  recordsNamed(kind: string, keys: readonly string[]): Promise<LedgerRecord[]> {
    return this.#reading.recordsNamed(kind, keys)
  }

  recordSpans(kind: string, spans: readonly RecordSpan[], limit: number): Promise<LedgerRecord[][]> {
    return this.#reading.recordSpans(kind, spans, limit)
  }

  async expire(atMs: number): Promise<number> {
    const rows = await this.#ask<TransferRow>(statements.due, [Math.max(0, Math.floor(atMs)), expiredAtOnce])
    const outcomes = await Promise.all(
      rows.map((row) => this.commit({ transfers: [expiryOf(transferOf(row))] })),
    )
    return outcomes.filter((outcome) => !isRejected(outcome)).length
  }

  async timeMs(): Promise<number> {
    const [row] = await this.#ask<{ now_ms: string }>(statements.time, [])
    return Number(row?.now_ms)
  }

  async signHead(): Promise<SignedHead | undefined> {
    const { key, clock } = this.options
    if (key === undefined) return undefined
    const [state] = await this.#ask<StateRow>('SELECT * FROM ledger_state')
    const [last] = await this.#ask<{ sequence: string }>('SELECT max(sequence) AS sequence FROM ledger_heads')
    const sequence = Number(state?.sequence ?? 0)
    if (state === undefined || sequence === 0 || sequence === Number(last?.sequence ?? 0)) return undefined
    const facts = { sequence, head: Buffer.from(state.head).toString('hex'), timeMs: clock.now() }
    const signed = { ...facts, signature: key.sign(facts.sequence, facts.head, facts.timeMs) }
    const row = [sequence, JSON.stringify(signed)]
    await this.#ask('INSERT INTO ledger_heads VALUES ($1, $2) ON CONFLICT DO NOTHING', row)
    return signed
  }

  leads(work: string): Promise<boolean> {
    return this.#leads.leads(work)
  }

  async check(also?: (reading: LedgerReading) => Promise<readonly string[]>): Promise<LedgerReport> {
    return this.#sessions.transaction('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', (ask) =>
      auditDatabase(ask, this.options.key, also),
    )
  }

  async close(): Promise<void> {
    await this.#group.drained()
    await this.#leads.close()
    await Promise.all([this.#sessions.close(), this.#writing.close()])
  }

  get #ask(): AskDatabase {
    return this.#sessions.ask
  }

  async #migrate(): Promise<void> {
    await this.#sessions.transaction(begin, async (ask) => {
      await ask('SELECT pg_advisory_xact_lock($1)', [migrationLock])
      await ask('CREATE TABLE IF NOT EXISTS ledger_migrations (step integer PRIMARY KEY)')
      const [row] = await ask<{ steps: string }>('SELECT count(*) AS steps FROM ledger_migrations')
      for (let step = Number(row?.steps ?? 0); step < migrations.length; step += 1) {
        await ask(migrations[step] ?? '')
        await ask('INSERT INTO ledger_migrations VALUES ($1)', [step])
      }
      await sumRecords(ask)
    })
  }

  async #carryOut(orders: readonly CommitOrder[]): Promise<readonly CommitOutcome[]> {
    let attempt: Attempt | undefined
    for (let tries = 1; ; tries += 1) {
      try {
        const ended = attempt === undefined ? undefined : await this.#endOf(attempt)
        if (ended !== undefined) return ended
        attempt = undefined
        return await this.#writing.transaction(begin, async (ask) => {
          const made = await this.#inside(ask, orders)
          attempt = made
          return made.outcomes
        })
      } catch (error) {
        const { code } = error as { code?: string }
        if (tries === triesMax || code === undefined || !retried.has(code)) throw error
        await new Promise<void>((resolve) => this.options.clock.after(100 * 2 ** tries, resolve))
      }
    }
  }

  /**
   * The result of a transaction whose COMMIT was sent, but not answered: its outcomes where it was committed. Undefined where
   * it was not: then it is repeated. Repeated without this check, it would find its own records, and refuse them.
   */
  async #endOf({ xid, outcomes }: Attempt): Promise<readonly CommitOutcome[] | undefined> {
    const [row] = await this.#writing.ask<{ status: string | null }>('SELECT txid_status($1) AS status', [
      xid,
    ])
    if (row?.status === 'in progress')
      throw Object.assign(new Error('a transaction has not ended yet'), { code: 'CONNECTION_CLOSED' })
    return row?.status === 'committed' ? outcomes : undefined
  }

  async #inside(ask: AskDatabase, orders: readonly CommitOrder[]): Promise<Attempt> {
    const [state] = await ask<StateRow & Pick<Attempt, 'xid'>>(statements.lock)
    if (state === undefined) throw new Error('the ledger has no state')
    const view = await fetched(ask, orders, state)
    const nowMs = Math.max(Math.floor(this.options.clock.now()), Number(state.time_ms))
    const outcomes = orders.map((order): CommitOutcome => {
      const judged = judge(order, view, view.sequence, nowMs)
      if ('rejected' in judged) return judged
      if ('existed' in judged) return { transfers: judged.existed, existed: true }
      assertEntries(judged.entries, (name) => view.account(name))
      view.apply(judged.entries)
      return { transfers: judged.entries.transfers, existed: false }
    })
    await written(ask, view, Buffer.from(state.head).toString('hex'), nowMs)
    return { xid: state.xid, outcomes }
  }
}

/** Fetches the state that the orders need, and nothing else. */
async function fetched(
  ask: AskDatabase,
  orders: readonly CommitOrder[],
  state: StateRow,
): Promise<FetchedView> {
  const { ids, pendings, accounts, records } = wantedBy(orders)
  const view = new FetchedView(Number(state.sequence), Number(state.version), recordSumOf(state))
  const touched = new Set(accounts)
  const names = [...ids, ...pendings]
  if (names.length > 0) {
    for (const row of await ask<TransferRow>(statements.wantedTransfers, [names])) {
      const transfer = transferOf(row)
      view.transfers.set(transfer.id, transfer)
      touched.add(transfer.debit).add(transfer.credit)
    }
  }
  if (pendings.length > 0) {
    for (const { pending } of await ask<{ pending: string }>(statements.wantedEndings, [pendings]))
      view.ended.add(pending)
  }
  if (records.length > 0) {
    const places = [records.map(({ kind }) => kind), records.map(({ key }) => key)]
    const rows = await ask<{ kind: string; key: string; value: string; version: string }>(
      statements.wantedRecords,
      places,
    )
    for (const { kind, key, value, version } of rows)
      view.records.set(`${kind}\0${key}`, { kind, key, value, version: Number(version) })
  }
  if (touched.size > 0) {
    for (const { name, body } of await ask<AccountRow>(statements.wantedAccounts, [[...touched]]))
      view.accounts.set(name, decodeAccount(name, body))
  }
  return view
}

async function written(ask: AskDatabase, view: FetchedView, before: string, nowMs: number): Promise<void> {
  const { added, changedAccounts, changedRecords, sequence, version, sum } = view
  if (added.length === 0 && changedRecords.size === 0) return
  let head = before
  const bodies = added.map((transfer) => {
    const body = encodeTransfer(transfer)
    head = nextHead(head, transfer.sequence, body)
    return body
  })
  const endings = added.filter(({ pending }) => pending !== '')
  const moves = added.filter(({ pending }) => pending === '')
  const accounts = [...changedAccounts].flatMap((name) => view.accounts.get(name) ?? [])
  const places = [...changedRecords]
  const kept = places.flatMap((place) => view.records.get(place) ?? [])
  const gone = places.filter((place) => !view.records.has(place)).map((place) => place.split('\0'))
  await ask(statements.write, [
    added.map((one) => one.sequence),
    added.map(({ id }) => id),
    added.map(({ untilMs }) => untilMs),
    bodies,
    endings.map(({ pending }) => pending),
    endings.map((one) => one.sequence),
    moves.flatMap(({ debit, credit }) => [debit, credit]),
    moves.flatMap((one) => [one.sequence, one.sequence]),
    accounts.map(({ name }) => name),
    accounts.map(encodeAccount),
    kept.map(({ kind }) => kind),
    kept.map(({ key }) => key),
    kept.map((one) => one.version),
    kept.map(({ value }) => value),
    gone.map(([kind = '']) => kind),
    gone.map(([, key = '']) => key),
    sequence,
    version,
    Buffer.from(head, 'hex'),
    nowMs,
    ...(sum === undefined ? [null, null] : [Buffer.from(sum.text, 'hex'), version]),
  ])
}
