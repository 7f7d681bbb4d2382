import type { LedgerEntries, LedgerView } from './judge-order.js'
import type { LedgerAccount } from './ledger-account.js'
import { type CommitOrder, isKey, type LedgerRecord } from './ledger-port.js'
import type { RecordSum } from './record-sum.js'
import type { Transfer } from './transfer.js'

/** What a group of orders is about: all of it is read before any of them is judged. */
export interface WantedRows {
  readonly ids: readonly string[]
  readonly pendings: readonly string[]
  readonly accounts: readonly string[]
  readonly records: readonly { readonly kind: string; readonly key: string }[]
}

/**
 * The accounts of pending transfers that are ended are not among them: they are known when those are read. Nor is what can be no
 * key: the database would refuse the whole group because of it.
 */
export function wantedBy(orders: readonly CommitOrder[]): WantedRows {
  const ids = new Set<string>()
  const pendings = new Set<string>()
  const accounts = new Set<string>()
  const records = new Map<string, { kind: string; key: string }>()
  for (const order of orders) {
    for (const transfer of order.transfers) {
      addKey(ids, transfer.id)
      if ('pending' in transfer) {
        addKey(pendings, transfer.pending)
        continue
      }
      addKey(accounts, transfer.debit)
      addKey(accounts, transfer.credit)
    }
    for (const { kind, key, whileHas } of order.records ?? []) {
      if (isKey(key, kind)) records.set(`${kind}\0${key}`, { kind, key })
      if (whileHas !== undefined) addKey(accounts, whileHas)
    }
  }
  return { ids: [...ids], pendings: [...pendings], accounts: [...accounts], records: [...records.values()] }
}

function addKey(keys: Set<string>, key: string): void {
  if (isKey(key)) keys.add(key)
}

/** A view in memory: what was read, and what the orders of this group have changed since. */
export class FetchedView implements LedgerView {
  readonly transfers = new Map<string, Transfer>()
  readonly accounts = new Map<string, LedgerAccount>()
  readonly ended = new Set<string>()
  readonly records = new Map<string, LedgerRecord>()
  readonly added: Transfer[] = []
  readonly changedAccounts = new Set<string>()
  readonly changedRecords = new Set<string>()

  constructor(
    public sequence: number,
    public version: number,
    /** Sum of all records; undefined where it is not known. */
    readonly sum?: RecordSum,
  ) {}

  account(name: string): LedgerAccount | undefined {
    return this.accounts.get(name)
  }

  transfer(id: string): Transfer | undefined {
    return this.transfers.get(id)
  }

  isEnded(pendingId: string): boolean {
    return this.ended.has(pendingId)
  }

  record(kind: string, key: string): LedgerRecord | undefined {
    return this.records.get(`${kind}\0${key}`)
  }

  apply({ transfers, accounts, records }: LedgerEntries): void {
    for (const transfer of transfers) {
      this.added.push(transfer)
      this.transfers.set(transfer.id, transfer)
      if (transfer.pending !== '') this.ended.add(transfer.pending)
      this.sequence = transfer.sequence
    }
    for (const account of accounts) {
      this.accounts.set(account.name, account)
      this.changedAccounts.add(account.name)
    }
    for (const { kind, key, value } of records) {
      const place = `${kind}\0${key}`
      this.version += 1
      this.changedRecords.add(place)
      const before = this.records.get(place)
      if (before !== undefined) this.sum?.flip(kind, key, before.version, before.value)
      if (value !== undefined) this.sum?.flip(kind, key, this.version, value)
      if (value === undefined) this.records.delete(place)
      else this.records.set(place, { kind, key, value, version: this.version })
    }
  }
}
