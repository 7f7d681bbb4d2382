import type { Deferred } from './deferred.js'
import { decodeAccount, encodeAccount, type LedgerAccount } from './ledger-account.js'
import type { Place } from './ledger-blocks.js'
import { isKey, type LedgerRecord } from './ledger-port.js'
import {
  behind,
  type LedgerTables,
  merged,
  numberKey,
  recordKey,
  recordOf,
  textOf,
  timedPlace,
  utf8Of,
  versioned,
} from './lmdb-tables.js'
import type { Transfer } from './transfer.js'

/** Names or keys that begin with `start`, in their order, behind `after`. */
interface ListWanted {
  readonly start: string
  readonly after: string
  readonly limit: number
}

/** Accounts of the tables, and those that wait beside them. */
export function* accountsFrom(
  tables: LedgerTables,
  deferred: Deferred,
  { start, after, limit }: ListWanted,
): Iterable<LedgerAccount> {
  if (!isKey(start) || !isKey(after)) return
  const first = utf8Of(start)
  const from = after === '' ? first : Buffer.concat([utf8Of(after), Uint8Array.of(0)])
  const waiting = [...deferred.accounts]
    .map(([name, account]) => ({ key: utf8Of(name), name, account }))
    .filter(({ key, name }) => name.startsWith(start) && Buffer.compare(key, from) >= 0)
    .map(({ key, account }) => ({ key, value: utf8Of(encodeAccount(account)) }))
  let left = limit
  for (const { key, value } of merged(tables.accounts.span({ start: from, end: behind(first) }), waiting)) {
    if (left <= 0) return
    left -= 1
    yield decodeAccount(textOf(key), textOf(value))
  }
}

/** Records of a kind of the tables, and those that wait beside them. */
export function recordsFrom(
  tables: LedgerTables,
  deferred: Deferred,
  kind: string,
  { start, after, limit }: ListWanted,
): LedgerRecord[] {
  if (!isKey(start, kind) || !isKey(after, kind)) return []
  const first = recordKey(kind, start)
  const from = after === '' ? first : Buffer.concat([recordKey(kind, after), Uint8Array.of(0)])
  const waiting = [...(deferred.records.get(kind)?.under(start) ?? [])]
    .map(([key, { version, value }]) => ({
      key: recordKey(kind, key),
      value: value === undefined ? undefined : versioned(version, value),
    }))
    .filter(({ key }) => Buffer.compare(key, from) >= 0)
  const lead = kind.length + 1
  const found: LedgerRecord[] = []
  const stored = tables.records.span({ start: from, end: behind(first) })
  for (const { key, value } of merged(stored, waiting)) {
    if (found.length >= limit) break
    found.push(recordOf(kind, textOf(key).slice(lead), value))
  }
  return found
}

/** What is pending and over at a time (ms since 1970), of the tables and of what waits beside them: oldest first. */
export function dueFrom(
  tables: LedgerTables,
  deferred: Deferred,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
  at: (place: Place) => Transfer,
): Transfer[] {
  const found: Transfer[] = []
  for (const entry of tables.timed.span({ end: numberKey(nowMs + 1) })) {
    if (found.length >= limit) break
    const transfer = at(timedPlace(entry))
    if (!deferred.endings.has(transfer.id)) found.push(transfer)
  }
  for (const { transfer } of deferred.timed.values()) if (transfer.untilMs <= nowMs) found.push(transfer)
  return found
    .sort((one, other) => one.untilMs - other.untilMs || one.sequence - other.sequence)
    .slice(0, limit)
}
