import type { Environment, Table, TableEntry } from '../store/lmdb.js'
import type { ChangedRecords, Deferred, PlacedTransfer } from './deferred.js'
import { encodeAccount } from './ledger-account.js'
import { type Place, placesMax, textsOfBlock } from './ledger-blocks.js'
import type { LedgerRecord } from './ledger-port.js'
import { RecordSum } from './record-sum.js'
import { decodeTransfer, putNumber } from './transfer.js'

/** The tables of the embedded ledger. Numbers are 8 bytes, big-endian; a place is a number and the index in its block, 1 byte. */
export interface LedgerTables {
  /** Number of its first transfer to block. */
  readonly blocks: Table
  /** Id to place; behind it, where it is pending no more, the place of its end. */
  readonly places: Table
  /** Account, 0 and the number of a transfer to the places of that one and of those that follow. */
  readonly history: Table
  /** Time and number of a pending transfer to its index. */
  readonly timed: Table
  readonly accounts: Table
  readonly records: Table
  /** Version to the changes of records that are not in `records` yet. */
  readonly changes: Table
  readonly heads: Table
  readonly meta: Table
}

/** The tables of a ledger in its environment; those that are missing are made. */
export function openTables(environment: Environment): LedgerTables {
  const table = (name: string): Table => environment.table(name)
  return {
    blocks: table('blocks'),
    places: table('places'),
    history: table('history'),
    timed: table('timed'),
    accounts: table('accounts'),
    records: table('records'),
    changes: table('changes'),
    heads: table('heads'),
    meta: table('meta'),
  }
}

/** How far the ledger has come, in one row. */
export interface StoredState {
  readonly sequence: number
  readonly version: number
  /** Hex. */
  readonly head: string
  /** The tables are right up to this transfer. */
  readonly tabled: number
  /** Sum of all records in `records`. Absent where an older version wrote last. */
  readonly records?: string
  /** Sum of all that is in `changes`, one behind the other. Absent as `records`. */
  readonly changes?: string
}

/** Same as `changes` has it: what a group has done to records. */
export type Changes = readonly (readonly [kind: string, key: string, version: number, value: string | null])[]

const numberBytes = 8
const placeBytes = numberBytes + 1

export const utf8Of = (value: string): Buffer => Buffer.from(value)

/** Bytes as UTF-8. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}

/** A number below 2^53 as 8 bytes, big-endian, so that keys are in the order of their numbers. */
export function numberKey(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(numberBytes)
  putNumber(bytes, value, 0)
  return bytes
}

/** The number of `numberKey` at a place. */
export function numberAt(bytes: Uint8Array, at = 0): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4)
}

function placesBytes(places: readonly Place[]): Buffer {
  const bytes = Buffer.allocUnsafe(places.length * placeBytes)
  let at = 0
  for (const { sequence, index } of places) {
    putNumber(bytes, sequence, at)
    bytes[at + numberBytes] = index
    at += placeBytes
  }
  return bytes
}

/** The places that were written one behind the other. */
export function placesOf(bytes: Uint8Array): Place[] {
  const found: Place[] = []
  for (let at = 0; at + placeBytes <= bytes.length; at += placeBytes)
    found.push({ sequence: numberAt(bytes, at), index: bytes[at + numberBytes] ?? 0 })
  return found
}

/** The key of a record: its kind, a zero byte, its key in that kind. */
export function recordKey(kind: string, key: string): Buffer {
  return utf8Of(`${kind}\0${key}`)
}

/** A record as it is stored: its version (`numberKey`), then its text. */
export function versioned(version: number, value: string): Buffer {
  return Buffer.concat([numberKey(version), utf8Of(value)])
}

/** Reads a stored record (`versioned`). */
export function recordOf(kind: string, key: string, stored: Uint8Array): LedgerRecord {
  return { kind, key, version: numberAt(stored), value: textOf(stored.subarray(numberBytes)) }
}

/** The key in `timed`, and what it leads to. */
function timedKey({ transfer, place }: PlacedTransfer): Buffer {
  return Buffer.concat([numberKey(transfer.untilMs), numberKey(place.sequence)])
}

/** Which transfer an entry of the table by time is about. */
export function timedPlace({ key, value }: TableEntry): Place {
  return { sequence: numberAt(key, numberBytes), index: value[0] ?? 0 }
}

/** The key behind every key of UTF-8 with this beginning: 0xff is in no UTF-8. */
export function behind(start: Buffer): Buffer {
  return Buffer.concat([start, Uint8Array.of(0xff)])
}

/** An entry that counts instead of what the table has under its key; without a value the key is gone. */
export interface WaitingEntry {
  readonly key: Buffer
  readonly value: Uint8Array | undefined
}

/** Entries of a table, in order, together with those that wait beside it. */
export function* merged(
  stored: Iterable<TableEntry>,
  waiting: readonly WaitingEntry[],
): Iterable<TableEntry> {
  const first = [...waiting].sort((one, other) => Buffer.compare(one.key, other.key))
  let at = 0
  const kept = function* (end: Uint8Array | undefined): Iterable<TableEntry> {
    for (; at < first.length; at += 1) {
      const { key, value } = first[at] as WaitingEntry
      if (end !== undefined && Buffer.compare(key, end) >= 0) return
      if (value !== undefined) yield { key, value }
    }
  }
  for (const entry of stored) {
    yield* kept(entry.key)
    const next = first[at]
    // The key of the entry that waits: it is yielded in front of the next one.
    if (next === undefined || Buffer.compare(next.key, entry.key) !== 0) yield entry
  }
  yield* kept(undefined)
}

/** Writes into the tables all that was deferred, and brings the sum of the records up to date. Only inside a transaction. */
export function putDeferred(tables: LedgerTables, deferred: Deferred, sum?: RecordSum): void {
  const { transfers, endings, entries, timed, accounts, records } = deferred
  for (const [id, { place }] of transfers) {
    const end = endings.get(id)?.end.place
    tables.places.put(utf8Of(id), placesBytes(end === undefined ? [place] : [place, end]))
  }
  for (const [id, { pending, end }] of endings) {
    if (transfers.has(id)) continue
    tables.places.put(utf8Of(id), placesBytes([pending.place, end.place]))
    if (pending.transfer.untilMs !== 0) tables.timed.remove(timedKey(pending))
  }
  for (const located of timed.values())
    tables.timed.put(timedKey(located), Uint8Array.of(located.place.index))
  for (const [account, found] of entries) {
    for (let at = 0; at < found.length; at += placesMax) putEntries(tables.history, account, found, at)
  }
  for (const [name, account] of accounts) tables.accounts.put(utf8Of(name), utf8Of(encodeAccount(account)))
  for (const [kind, changed] of records) putRecords(tables.records, kind, changed, sum)
}

function putEntries(history: Table, account: string, found: readonly PlacedTransfer[], at: number): void {
  const places = found.slice(at, at + placesMax).map(({ place }) => place)
  const key = Buffer.concat([utf8Of(`${account}\0`), numberKey(places[0]?.sequence ?? 0)])
  history.put(key, placesBytes(places))
}

/** The entries of all histories that the table has; those of one account in their order. */
export function* entriesInTables(history: Table): Iterable<readonly [account: string, place: Place]> {
  for (const { key, value } of history.span({})) {
    const account = textOf(key.subarray(0, -numberBytes - 1))
    for (const place of placesOf(value)) yield [account, place]
  }
}

/** When the last transfer happened; 0 where there is none. */
export function lastTime(blocks: Table): number {
  const [last] = blocks.span({ backwards: true, limit: 1 })
  return last === undefined ? 0 : decodeTransfer(0, textsOfBlock(last.value).at(-1) ?? '').timeMs
}

function putRecords(records: Table, kind: string, changed: ChangedRecords, sum: RecordSum | undefined): void {
  for (const [key, { version, value }] of changed) {
    const place = recordKey(kind, key)
    const before = sum === undefined ? undefined : records.get(place)
    if (before !== undefined) flip(sum, recordOf(kind, key, before))
    if (value === undefined) records.remove(place)
    else {
      records.put(place, versioned(version, value))
      sum?.flip(kind, key, version, value)
    }
  }
}

function flip(sum: RecordSum | undefined, { kind, key, version, value }: LedgerRecord): void {
  sum?.flip(kind, key, version, value)
}

/** The sum of all records in the table. */
export function sumOf(records: Table): string {
  const sum = new RecordSum()
  for (const { key, value } of records.span({})) {
    const [kind = '', ...rest] = textOf(key).split('\0')
    flip(sum, recordOf(kind, rest.join('\0'), value))
  }
  return sum.text
}

/** True where both are the same bytes, or both are absent. */
export function areSameBytes(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return Buffer.compare(one, other) === 0
}
