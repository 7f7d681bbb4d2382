import type { Auditor } from './auditor.js'
import type { Deferred } from './deferred.js'
import { textsOfBlock } from './ledger-blocks.js'
import {
  entriesInTables,
  type LedgerTables,
  numberAt,
  type StoredState,
  sumOf,
  timedPlace,
} from './lmdb-tables.js'
import { nextChanges, noRecords } from './record-sum.js'
import { firstHead, type Transfer } from './transfer.js'

/** The look-ups of transfers of the ledger itself, which the audit compares. */
interface Found {
  transfer(id: string): Transfer | undefined
  ending(pendingId: string): Transfer | undefined
}

/** Compares all tables, and what waits beside them, with the transfers. Throws at what cannot be read. */
export function auditTables(
  auditor: Auditor,
  tables: LedgerTables,
  deferred: Deferred,
  state: StoredState | undefined,
  found: Found,
): void {
  for (const { key, value } of tables.blocks.span({})) {
    const first = numberAt(key)
    for (const [index, text] of textsOfBlock(value).entries()) {
      const sequence = first + index
      const { id, kind, pending } = auditor.take(sequence, text, index)
      if (found.transfer(id)?.sequence !== sequence)
        auditor.fault(`transfer ${sequence} is not found by its id`)
      const isEnd = kind === 'post' || kind === 'void'
      if (isEnd && found.ending(pending)?.sequence !== sequence)
        auditor.fault(`transfer ${sequence} is not found as the end of ${pending}`)
    }
  }
  auditor.state(state?.sequence ?? 0, state?.head ?? firstHead)
  for (const id of auditor.pending())
    if (found.ending(id) !== undefined) auditor.fault(`${id} is found as ended, and is pending`)
  auditRecords(auditor, tables, state)
  auditTimes(auditor, tables, deferred)
  for (const [account, place] of entriesInTables(tables.history)) auditor.listed(account, place)
  for (const [account, entries] of deferred.entries)
    for (const { place } of entries) auditor.listed(account, place)
}

/** A ledger that an older version wrote last has no sums until its tables are brought up to date once. */
function auditRecords(auditor: Auditor, tables: LedgerTables, state: StoredState | undefined): void {
  if (state?.records !== undefined) auditor.records(state.records, sumOf(tables.records))
  if (state?.changes === undefined) return
  let changes = noRecords
  for (const { value } of tables.changes.span({})) changes = nextChanges(changes, value)
  auditor.records(state.changes, changes)
}

function auditTimes(auditor: Auditor, tables: LedgerTables, deferred: Deferred): void {
  const ended = new Set([...deferred.endings.values()].map(({ pending }) => pending.place.sequence))
  for (const entry of tables.timed.span({})) {
    const place = timedPlace(entry)
    auditor.timed(place, numberAt(entry.key), ended.has(place.sequence))
  }
  for (const { transfer, place } of deferred.timed.values()) auditor.timed(place, transfer.untilMs, false)
}
