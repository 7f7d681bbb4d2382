import type { LedgerAccount } from './account.js'
import type { Place } from './blocks.js'
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

/**
 * What the tables do not say yet: transfers and records that are on the disk (in blocks, and as changes), but are found through
 * memory only. Everything that reads the ledger asks here first.
 */
export class Deferred {
  /** By id. */
  readonly transfers = new Map<string, PlacedTransfer>()
  /** By the id of the pending transfer. */
  readonly endings = new Map<string, Ended>()
  /** By account, oldest first. */
  readonly entries = new Map<string, PlacedTransfer[]>()
  /** Pending transfers with a time, by id. */
  readonly timed = new Map<string, PlacedTransfer>()
  readonly accounts = new Map<string, LedgerAccount>()
  /** By kind, then by key. */
  readonly records = new Map<string, Map<string, ChangedRecord>>()
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
    const found = this.records.get(kind)
    if (found === undefined) this.records.set(kind, new Map([[key, changed]]))
    else found.set(key, changed)
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
