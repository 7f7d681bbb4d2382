import { type Clock, notBefore } from '../actor/clock.js'
import { BrokenDatabase } from '../store/lmdb-check.js'
import { Auditor } from './auditor.js'
import { GroupCommit } from './group.js'
import type { HeadKey } from './head-key.js'
import { assertEntries, judge } from './judge-order.js'
import type { LedgerAccount } from './ledger-account.js'
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
import { LmdbBooks } from './lmdb-books.js'
import { expiryOf, type Transfer } from './transfer.js'

export interface EmbeddedOptions {
  /** Its folder. */
  readonly path: string
  readonly clock: Clock
  /** Absent: heads are not signed, nor are signatures checked. */
  readonly key?: HeadKey
  /** So many transfers and records are in memory before the tables are brought up to date. Tests set it low. */
  readonly deferredMax?: number
}

/** Orders of one transaction: so many take some tens of milliseconds. */
const groupMax = 2000
const expiredAtOnce = 500

/**
 * The ledger in an LMDB environment of its own. One thread writes it. Orders that come while others are flushed to the disk are
 * carried out together, in one transaction with one flush.
 */
export class EmbeddedLedger implements MoneyLedger {
  readonly #books: LmdbBooks
  readonly #group: GroupCommit<CommitOrder, CommitOutcome>
  readonly #clock: Clock
  readonly #now: () => number
  readonly #key: HeadKey | undefined

  constructor({ path, clock, key, deferredMax }: EmbeddedOptions) {
    this.#books = new LmdbBooks(path, deferredMax)
    this.#key = key
    this.#clock = clock
    this.#now = notBefore(clock, this.#books.lastMs)
    this.#group = new GroupCommit(
      (orders) => this.#carryOut(orders),
      groupMax,
      (error, order) => new CommitFailure(error, order),
    )
  }

  commit(order: CommitOrder): Promise<CommitOutcome> {
    return this.#group.add(order)
  }

  async account(name: string): Promise<LedgerAccount | undefined> {
    return this.#books.account(name)
  }

  async accounts(start: string, after: string, limit: number): Promise<LedgerAccount[]> {
    return [...this.#books.accounts(start, after, limit)]
  }

  async transfer(id: string): Promise<Transfer | undefined> {
    return this.#books.transfer(id)
  }

  async ending(pendingId: string): Promise<Transfer | undefined> {
    return this.#books.ending(pendingId)
  }

  async history(account: string, before: number, limit: number): Promise<Transfer[]> {
    return this.#books.history(account, before, limit)
  }

  async record(kind: string, key: string): Promise<LedgerRecord | undefined> {
    return this.#books.record(kind, key)
  }

  async records(kind: string, start: string, after: string, limit: number): Promise<LedgerRecord[]> {
    return this.#books.records(kind, start, after, limit)
  }

  async accountsNamed(names: readonly string[]): Promise<LedgerAccount[]> {
    return present(names, (name) => this.#books.account(name))
  }

  async transfersNamed(ids: readonly string[]): Promise<Transfer[]> {
    return present(ids, (id) => this.#books.transfer(id))
  }

  async endingsOf(pendingIds: readonly string[]): Promise<Transfer[]> {
    return present(pendingIds, (id) => this.#books.ending(id))
  }

  async recordsNamed(kind: string, keys: readonly string[]): Promise<LedgerRecord[]> {
    return present(keys, (key) => this.#books.record(kind, key))
  }

  async recordSpans(kind: string, spans: readonly RecordSpan[], limit: number): Promise<LedgerRecord[][]> {
    return spans.map(({ start, after }) => this.#books.records(kind, start, after, limit))
  }

  async expire(atMs: number): Promise<number> {
    const due = this.#books.due(Math.max(0, Math.floor(atMs)), expiredAtOnce)
    const outcomes = await Promise.all(due.map((pending) => this.commit({ transfers: [expiryOf(pending)] })))
    return outcomes.filter((outcome) => !isRejected(outcome)).length
  }

  async timeMs(): Promise<number> {
    return this.#clock.now()
  }

  async signHead(): Promise<SignedHead | undefined> {
    const { sequence, head } = this.#books
    const last = this.#books.lastSigned()
    if (this.#key === undefined || sequence === (last?.sequence ?? 0)) return undefined
    const facts = { sequence, head, timeMs: this.#now() }
    const signed = { ...facts, signature: this.#key.sign(facts.sequence, facts.head, facts.timeMs) }
    this.#books.putHead(signed)
    await this.#books.flushed()
    return signed
  }

  /** True: an embedded ledger has one writer. */
  async leads(): Promise<boolean> {
    return true
  }

  async check(also?: (reading: LedgerReading) => Promise<readonly string[]>): Promise<LedgerReport> {
    // Another process may write meanwhile: all that follows is read in one turn, and so of one state. That holds for `also`, too,
    // because its queries are answered without waiting.
    const heads = this.#heads()
    const auditor = new Auditor(heads instanceof Error ? [] : heads, this.#key)
    if (heads instanceof Error) auditor.unreadable(heads)
    const accounts: LedgerAccount[] = []
    try {
      this.#books.audit(auditor)
      for (const one of this.#books.accounts('', '', Number.MAX_SAFE_INTEGER)) accounts.push(one)
      for (const fault of (await also?.(this)) ?? []) auditor.fault(fault)
    } catch (error) {
      // Bytes of the disk have changed: what can be read is compared nevertheless.
      auditor.unreadable(error)
    }
    return auditor.report(accounts)
  }

  /** The signed heads, or why they cannot be read. */
  #heads(): SignedHead[] | Error {
    try {
      return this.#books.signedHeads()
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }

  async close(): Promise<void> {
    await this.#group.drained()
    await this.#books.close()
  }

  async #carryOut(orders: readonly CommitOrder[]): Promise<CommitOutcome[]> {
    const books = this.#books
    const outcomes = this.#written(orders)
    // What was refused, or done before, is flushed as well: the group it was done in may be the one before this.
    await books.flushed()
    return outcomes
  }

  #written(orders: readonly CommitOrder[]): CommitOutcome[] {
    try {
      return this.#books.write(() => orders.map((order) => this.#one(order)))
    } catch (error) {
      // Nothing can be written any more, and the next read could end the process by a signal. So the process is ended here, with
      // a message that says what to do.
      if (error instanceof BrokenDatabase)
        setImmediate(() => {
          throw error
        })
      throw error
    }
  }

  #one(order: CommitOrder): CommitOutcome {
    const books = this.#books
    const judged = judge(order, books, books.sequence, Math.max(this.#now(), books.lastMs))
    if ('rejected' in judged) return judged
    if ('existed' in judged) return { transfers: judged.existed, existed: true }
    assertEntries(judged.entries, (name) => books.account(name))
    books.apply(judged.entries)
    return { transfers: judged.entries.transfers, existed: false }
  }
}

/** The entries of these names that exist, each once. */
function present<Found>(names: readonly string[], find: (name: string) => Found | undefined): Found[] {
  return [...new Set(names)].map(find).filter((found) => found !== undefined)
}
