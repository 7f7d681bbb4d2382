import { BoundedMap } from '../actor/bounded-map.js'
import { openGuarded } from '../store/guarded-environment.js'
import type { Environment } from '../store/lmdb.js'
import { BrokenDatabase, lastingFault } from '../store/lmdb-check.js'
import type { Auditor } from './auditor.js'
import { Deferred, type PlacedTransfer } from './deferred.js'
import type { LedgerEntries, LedgerView } from './judge-order.js'
import { credited, debited, decodeAccount, type LedgerAccount, newAccount } from './ledger-account.js'
import { BlockWriter, type Place, textInBlock, textsOfBlock } from './ledger-blocks.js'
import { decodeHead, isKey, type LedgerRecord, type RecordChange, type SignedHead } from './ledger-port.js'
import { auditTables } from './lmdb-audit.js'
import { accountsFrom, dueFrom, recordsFrom } from './lmdb-lists.js'
import { ledgerFormat, migrate } from './lmdb-migration.js'
import {
  areSameBytes,
  type Changes,
  type LedgerTables,
  lastTime,
  numberAt,
  numberKey,
  openTables,
  placesOf,
  putDeferred,
  recordKey,
  recordOf,
  type StoredState,
  sumOf,
  textOf,
  utf8Of,
} from './lmdb-tables.js'
import { nextChanges, noRecords, RecordSum } from './record-sum.js'
import { chained, decodeTransfer, effectOf, encodeTransfer, firstHead, type Transfer } from './transfer.js'

/** Entries of each of the two maps of what was read or written lately. */
const keptMax = 50_000
/** Pages that are checked before the file is opened, in some milliseconds. Of a file that is too short all are checked. */
const checkedPagesMax = 1000
/**
 * Transfers and records that are found through memory before the tables are brought up to date, in the transaction of a group.
 * With more of them a reservation with its end would be no cheaper.
 */
const deferredDefault = 2048
const stateKey = utf8Of('state')
const formatKey = utf8Of('format')
/** A state that no disk has: memory must be rebuilt before the next write. */
const noState = new Uint8Array(0)

/**
 * The embedded ledger on disk. Reads at any time; writes inside `write` only, by one thread.
 *
 * A group of orders writes its transfers as blocks and its records as one row. The lookup entries (by id, account, time) and the
 * accounts stay in memory, and are written to the tables later, for thousands of transfers at once. So a busy account is written
 * once, and a reservation with its end is one row. After a kill the memory is rebuilt from the blocks.
 */
export class LmdbBooks implements LedgerView {
  sequence = 0
  head = firstHead
  /** When the last transfer happened; 0 where there is none. */
  lastMs = 0
  #version = 0
  /** The last transfer whose lookup entries and accounts are in the tables. */
  #sequenceInTables = 0
  readonly #environment: Environment
  readonly #tables: LedgerTables
  /** Sums of the records in the tables, and of the changes that are not in them; undefined where an older version wrote last. */
  #recordSum: string | undefined
  #changesSum: string | undefined
  readonly #blocks: BlockWriter
  readonly #deferred = new Deferred()
  /** The state as it was read or written last. */
  #state: Uint8Array | undefined
  /** Changes of records of the current transaction. */
  #changes: [kind: string, key: string, version: number, value: string | null][] = []
  /** Keys of the rows of the table `changes`. */
  #changeKeys: Buffer[] = []
  /** Accounts and pending transfers that were used lately: a busy account is not read again from the tables. */
  readonly #keptAccounts = new BoundedMap<string, LedgerAccount>(keptMax)
  readonly #keptPending = new BoundedMap<string, PlacedTransfer>(keptMax)

  constructor(
    path: string,
    private readonly deferredMax = deferredDefault,
  ) {
    // A file that was cut off would end the process by a signal, and in the middle of something.
    const fault = lastingFault(path, checkedPagesMax)
    if (fault !== undefined) throw new BrokenDatabase(path, fault)
    const environment = openGuarded(path)
    this.#environment = environment
    const tables = openTables(environment)
    this.#tables = tables
    this.#blocks = new BlockWriter((first, block) => tables.blocks.append(numberKey(first), block))
    migrate(environment, tables, formatKey, stateKey)
    try {
      this.reread()
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new BrokenDatabase(path, `what the ledger has written last cannot be read: ${reason}`)
    }
  }

  account(name: string): LedgerAccount | undefined {
    const kept = this.#deferred.accounts.get(name) ?? this.#keptAccounts.get(name)
    if (kept !== undefined) return kept
    if (!isKey(name)) return undefined
    const found = this.#tables.accounts.get(utf8Of(name))
    return found === undefined ? undefined : decodeAccount(name, textOf(found))
  }

  accounts(start: string, after: string, limit: number): Iterable<LedgerAccount> {
    return accountsFrom(this.#tables, this.#deferred, { start, after, limit })
  }

  transfer(id: string): Transfer | undefined {
    return this.#located(id)?.transfer
  }

  isEnded(pendingId: string): boolean {
    if (this.#deferred.endings.has(pendingId)) return true
    // Memory keeps a pending transfer only until it ends.
    if (this.#keptPending.has(pendingId) || this.#deferred.transfers.has(pendingId)) return false
    return this.#placesOf(pendingId).length > 1
  }

  ending(pendingId: string): Transfer | undefined {
    const ended = this.#deferred.endings.get(pendingId)
    if (ended !== undefined) return ended.end.transfer
    const [, end] = this.#placesOf(pendingId)
    return end === undefined ? undefined : this.#at(end)
  }

  history(account: string, before: number, limit: number): Transfer[] {
    if (!isKey(account)) return []
    const young = this.#deferred.entries.get(account) ?? []
    const found: Transfer[] = []
    for (let at = young.length - 1; at >= 0 && found.length < limit; at -= 1) {
      const { transfer } = young[at] as PlacedTransfer
      if (transfer.sequence < before) found.push(transfer)
    }
    if (found.length >= limit) return found
    const start = utf8Of(`${account}\0`)
    // A span that goes backwards begins at the entry at or before its start, so the number below the bound.
    const from = Buffer.concat([start, numberKey(Math.max(0, before - 1))])
    for (const { value } of this.#tables.history.span({ start: from, end: start, backwards: true })) {
      for (const place of placesOf(value).reverse()) {
        if (place.sequence < before) found.push(this.#at(place))
        if (found.length >= limit) return found
      }
    }
    return found
  }

  record(kind: string, key: string): LedgerRecord | undefined {
    const changed = this.#deferred.records.get(kind)?.get(key)
    if (changed !== undefined) {
      const { version, value } = changed
      return value === undefined ? undefined : { kind, key, version, value }
    }
    const found = isKey(key, kind) ? this.#tables.records.get(recordKey(kind, key)) : undefined
    return found === undefined ? undefined : recordOf(kind, key, found)
  }

  records(kind: string, start: string, after: string, limit: number): LedgerRecord[] {
    return recordsFrom(this.#tables, this.#deferred, kind, { start, after, limit })
  }

  /** Pending transfers whose time is over at `nowMs`, oldest first. */
  due(nowMs: number, limit: number): Transfer[] {
    return dueFrom(this.#tables, this.#deferred, { nowMs, limit }, (place) => this.#at(place))
  }

  /**
   * Runs `act` in one transaction; where it throws, nothing is written. Another program may have written the ledger meanwhile: a
   * new one starts while the old one ends. Then the memory is out of date and is rebuilt first. Throws `BrokenDatabase` where the
   * file was replaced since it was opened.
   */
  write<T>(act: () => T): T {
    for (;;) {
      const made = this.#attempt(act)
      if (made !== undefined) return made.result
      this.#forgetAll()
    }
  }

  /** One try of `write`. Undefined, and nothing was done, where memory is behind the disk. */
  #attempt<T>(act: () => T): { readonly result: T } | undefined {
    const before = this.sequence + this.#version
    let isInTables = false
    try {
      const made = this.#environment.write(() => {
        if (!areSameBytes(this.#tables.meta.view(stateKey), this.#state)) return undefined
        const result = act()
        if (this.sequence + this.#version === before) return { result }
        this.#blocks.end()
        isInTables = this.#deferred.size >= this.#deferredBound(this.sequence + this.#version - before)
        if (isInTables) this.#putTables()
        else this.#putChanges()
        this.#putState()
        return { result }
      })
      this.#changes = []
      if (isInTables) this.#forgetDeferred()
      this.#environment.refresh()
      return made
    } catch (error) {
      if (!(error instanceof BrokenDatabase)) this.#forgetAll()
      throw error
    }
  }

  /**
   * The orders of one group wait for the tables. With few orders at once, few rows are written at once, so that the group takes
   * little longer. With many orders each group takes long anyway, and more rows at once cost less.
   */
  #deferredBound(writtenRows: number): number {
    return Math.min(this.deferredMax, Math.max(this.deferredMax / 4, 4 * writtenRows))
  }

  #forgetAll(): void {
    this.#keptAccounts.clear()
    this.#keptPending.clear()
    this.reread()
  }

  /** Writes what was judged. Only inside `write`. */
  apply({ transfers, accounts, records }: LedgerEntries): void {
    for (const transfer of transfers) this.#add(transfer)
    for (const account of accounts) this.#deferred.accounts.set(account.name, account)
    for (const change of records) this.#change(change)
  }

  flushed(): Promise<void> {
    return this.#environment.flushed()
  }

  putHead(head: SignedHead): void {
    this.#environment.write(() =>
      this.#tables.heads.put(numberKey(head.sequence), utf8Of(JSON.stringify(head))),
    )
  }

  signedHeads(): SignedHead[] {
    return [...this.#tables.heads.span({})].map(({ value }) => decodeHead(textOf(value)))
  }

  lastSigned(): SignedHead | undefined {
    const [last] = this.#tables.heads.span({ backwards: true, limit: 1 })
    return last === undefined ? undefined : decodeHead(textOf(last.value))
  }

  close(): Promise<void> {
    return this.#environment.close()
  }

  /** Compares all that is stored. Throws where something cannot be read. */
  audit(auditor: Auditor): void {
    this.reread()
    const state = this.#state === undefined ? undefined : (JSON.parse(textOf(this.#state)) as StoredState)
    auditTables(auditor, this.#tables, this.#deferred, state, this)
  }

  /** Reads the state, and rebuilds in memory what the tables do not have yet. Where it throws, the next write calls it again. */
  reread(): void {
    this.#state = noState
    this.#blocks.clear()
    this.#deferred.clear()
    this.#changes = []
    this.#environment.refresh()
    const found = this.#tables.meta.get(stateKey)
    const state = found === undefined ? undefined : (JSON.parse(textOf(found)) as StoredState)
    this.sequence = state?.sequence ?? 0
    this.#version = state?.version ?? 0
    this.#sequenceInTables = state?.tabled ?? 0
    this.head = state?.head ?? firstHead
    this.#recordSum = state === undefined ? noRecords : state.records
    this.#changesSum = state === undefined ? noRecords : state.changes
    this.lastMs = lastTime(this.#tables.blocks)
    for (const { key, value } of this.#tables.blocks.span({ start: numberKey(this.#sequenceInTables + 1) })) {
      const first = numberAt(key)
      for (const [index, text] of textsOfBlock(value).entries()) {
        const transfer = decodeTransfer(first + index, text)
        this.#replay({ transfer, place: { sequence: transfer.sequence, index } })
      }
    }
    this.#changeKeys = []
    for (const { key, value } of this.#tables.changes.span({})) {
      this.#changeKeys.push(Buffer.from(key))
      for (const [kind, place, version, text] of JSON.parse(textOf(value)) as Changes)
        this.#deferred.change(kind, place, { version, value: text ?? undefined })
    }
    this.#state = found
  }

  /** Adds a transfer that was read from a block, and changes its accounts as it did when it was made. */
  #replay(located: PlacedTransfer): void {
    const { transfer } = located
    const { accounts } = this.#deferred
    const pending = this.#addDeferred(located)
    const { posted, held } = effectOf(transfer, pending?.transfer.amount ?? 0n)
    const { debit, credit, timeMs } = transfer
    accounts.set(debit, debited(this.account(debit) ?? newAccount(debit, timeMs), posted, held))
    accounts.set(credit, credited(this.account(credit) ?? newAccount(credit, timeMs), posted, held))
  }

  #add(transfer: Transfer): void {
    const { sequence } = transfer
    const { head, bytes } = chained(this.head, sequence, encodeTransfer(transfer))
    this.#addDeferred({ transfer, place: this.#blocks.add(sequence, bytes) })
    this.head = head
    this.sequence = sequence
    this.lastMs = transfer.timeMs
  }

  /** Adds a transfer to what the tables do not have yet. Returns the pending transfer that it ends. */
  #addDeferred(located: PlacedTransfer): PlacedTransfer | undefined {
    const { pending } = located.transfer
    const ended = pending === '' ? undefined : this.#located(pending)
    this.#deferred.add(located, ended)
    if (ended !== undefined) this.#keptPending.delete(pending)
    return ended
  }

  #change({ kind, key, value }: RecordChange): void {
    this.#version += 1
    this.#changes.push([kind, key, this.#version, value ?? null])
    this.#deferred.change(kind, key, { version: this.#version, value })
  }

  #located(id: string): PlacedTransfer | undefined {
    const known = this.#deferred.transfers.get(id) ?? this.#keptPending.get(id)
    if (known !== undefined) return known
    const [place] = this.#placesOf(id)
    return place === undefined ? undefined : { transfer: this.#at(place), place }
  }

  #placesOf(id: string): Place[] {
    if (!isKey(id)) return []
    const found = this.#tables.places.get(utf8Of(id))
    return found === undefined ? [] : placesOf(found)
  }

  #at({ sequence, index }: Place): Transfer {
    const block = this.#tables.blocks.view(numberKey(sequence - index))
    if (block === undefined) throw new Error(`ledger: transfer ${sequence} is missing`)
    return decodeTransfer(sequence, textInBlock(block, index))
  }

  #putTables(): void {
    const sum = this.#recordSum === undefined ? undefined : new RecordSum(this.#recordSum)
    putDeferred(this.#tables, this.#deferred, sum)
    for (const key of this.#changeKeys) this.#tables.changes.remove(key)
    this.#sequenceInTables = this.sequence
    this.#recordSum = sum?.text ?? sumOf(this.#tables.records)
    this.#changesSum = noRecords
  }

  #putChanges(): void {
    const first = this.#changes[0]
    if (first === undefined) return
    const key = numberKey(first[2])
    const changes = utf8Of(JSON.stringify(this.#changes))
    this.#tables.changes.append(key, changes)
    if (this.#changesSum !== undefined) this.#changesSum = nextChanges(this.#changesSum, changes)
    this.#changeKeys.push(key)
  }

  #putState(): void {
    const { sequence, head } = this
    const [records, changes] = [this.#recordSum, this.#changesSum]
    const state: StoredState = {
      sequence,
      version: this.#version,
      head,
      tabled: this.#sequenceInTables,
      ...(records === undefined ? {} : { records }),
      ...(changes === undefined ? {} : { changes }),
    }
    this.#state = utf8Of(JSON.stringify(state))
    this.#tables.meta.put(stateKey, this.#state)
    if (this.#tables.meta.view(formatKey) === undefined)
      this.#tables.meta.put(formatKey, utf8Of(ledgerFormat))
  }

  /** Removes from memory what the tables have now, except for the accounts and pending transfers that were used lately. */
  #forgetDeferred(): void {
    const { accounts, transfers, endings } = this.#deferred
    for (const [name, account] of accounts) this.#keptAccounts.set(name, account)
    for (const [id, located] of transfers)
      if (located.transfer.kind === 'pending' && !endings.has(id)) this.#keptPending.set(id, located)
    this.#deferred.clear()
    this.#changeKeys = []
  }
}
