import type { LedgerAccount } from './ledger-account.js'
import type { Place } from './ledger-blocks.js'
import type { Transfer } from './transfer.js'

export interface PlacedTransfer {
  readonly transfer: Transfer
  readonly place: Place
}

/** How a pending transfer ended. */
export interface Ended {
  readonly pending: PlacedTransfer
  readonly end: PlacedTransfer
}

/** A record as it was written last; undefined: it is gone. */
export interface ChangedRecord {
  readonly version: number
  readonly value: string | undefined
}

/** Changed records of one kind, grouped by the part of the key before the first `|`, because lists are requested by it. */
export class ChangedRecords {
  readonly #byLead = new Map<string, Map<string, ChangedRecord>>()

  get(key: string): ChangedRecord | undefined {
    return this.#byLead.get(leadOf(key))?.get(key)
  }

  set(key: string, changed: ChangedRecord): void {
    const lead = leadOf(key)
    const found = this.#byLead.get(lead)
    if (found === undefined) this.#byLead.set(lead, new Map([[key, changed]]))
    else found.set(key, changed)
  }

  *[Symbol.iterator](): Iterator<readonly [key: string, changed: ChangedRecord]> {
    for (const found of this.#byLead.values()) yield* found
  }

  /** The records whose keys begin with `start`. */
  *under(start: string): Iterable<readonly [key: string, changed: ChangedRecord]> {
    const all = start.includes('|') ? (this.#byLead.get(leadOf(start)) ?? []) : this
    for (const entry of all) if (entry[0].startsWith(start)) yield entry
  }
}

function leadOf(key: string): string {
  const end = key.indexOf('|')
  return end < 0 ? key : key.slice(0, end)
}

/**
 * What the tables do not have yet: transfers and records that are on the disk (in blocks, and as changes), but are found through
 * memory only. Everything that reads the ledger looks here first.
 */
export class Deferred {
  /** Transfers by their ids. */
  readonly transfers = new Map<string, PlacedTransfer>()
  /** Ends, by the id of the pending transfer. */
  readonly endings = new Map<string, Ended>()
  /** Transfers of each account, oldest first. */
  readonly entries = new Map<string, PlacedTransfer[]>()
  /** Pending transfers with a time, by id. */
  readonly timed = new Map<string, PlacedTransfer>()
  readonly accounts = new Map<string, LedgerAccount>()
  /** Changes of records, by kind and key. */
  readonly records = new Map<string, ChangedRecords>()
  #changes = 0

  /** Roughly the rows that are missing in the tables. */
  get size(): number {
    return this.transfers.size + this.#changes
  }

  /** `pending`: what the transfer ends. */
  add(located: PlacedTransfer, pending: PlacedTransfer | undefined): void {
    const { transfer } = located
    this.transfers.set(transfer.id, located)
    if (pending !== undefined) {
      this.endings.set(pending.transfer.id, { pending, end: located })
      this.timed.delete(pending.transfer.id)
      return
    }
    this.#enter(transfer.debit, located)
    this.#enter(transfer.credit, located)
    if (transfer.untilMs !== 0) this.timed.set(transfer.id, located)
  }

  change(kind: string, key: string, changed: ChangedRecord): void {
    this.#changes += 1
    const found = this.records.get(kind) ?? new ChangedRecords()
    found.set(key, changed)
    this.records.set(kind, found)
  }

  clear(): void {
    this.transfers.clear()
    this.endings.clear()
    this.entries.clear()
    this.timed.clear()
    this.accounts.clear()
    this.records.clear()
    this.#changes = 0
  }

  #enter(account: string, located: PlacedTransfer): void {
    const found = this.entries.get(account)
    if (found === undefined) this.entries.set(account, [located])
    else found.push(located)
  }
}
