import type { Environment, Table } from '../store/lmdb.js'
import { Deferred, type PlacedTransfer } from './deferred.js'
import { BlockWriter } from './ledger-blocks.js'
import { type LedgerTables, numberKey, placesOf, putDeferred, textOf, utf8Of } from './lmdb-tables.js'
import { decodeTransfer } from './transfer.js'

/** Format of the tables. The first had no number: each transfer was a row, as were its id, its end, and its two entries. */
export const ledgerFormat = '2'

const movedAtOnce = 4096

/**
 * Brings a ledger of the first format into this one, in one transaction. The texts of transfers stay as they are, and so does the
 * chain of their hashes. Throws where the ledger was written by a later version.
 */
export function migrate(
  environment: Environment,
  tables: LedgerTables,
  formatKey: Uint8Array,
  stateKey: Uint8Array,
): void {
  const format = tables.meta.get(formatKey)
  const stored = tables.meta.get(stateKey)
  if (format !== undefined && textOf(format) !== ledgerFormat)
    throw new Error(`the ledger has format ${textOf(format)}; this version knows ${ledgerFormat}`)
  if (format !== undefined || stored === undefined) return
  const names = ['transfers', 'ids', 'endings', 'entries', 'due']
  const old = names.map((name) => environment.table(name))
  environment.write(() => {
    const [transfers] = old
    const state = JSON.parse(textOf(stored)) as { readonly sequence: number }
    if (transfers !== undefined) move(transfers, state.sequence, tables)
    for (const table of old) empty(table)
    tables.meta.put(stateKey, utf8Of(JSON.stringify({ ...state, tabled: state.sequence })))
    tables.meta.put(formatKey, utf8Of(ledgerFormat))
  })
}

/** Accounts and records are stored as they were: only where transfers are is written anew. */
function move(transfers: Table, last: number, tables: LedgerTables): void {
  const blocks = new BlockWriter((first, block) => tables.blocks.append(numberKey(first), block))
  const deferred = new Deferred()
  const stored = (sequence: number): Uint8Array => {
    const text = transfers.get(numberKey(sequence))
    if (text === undefined) throw new Error(`ledger: transfer ${sequence} is missing`)
    return text
  }
  const inTables = (id: string): PlacedTransfer | undefined => {
    const [place] = placesOf(tables.places.get(utf8Of(id)) ?? new Uint8Array(0))
    if (place === undefined) return undefined
    return { place, transfer: decodeTransfer(place.sequence, textOf(stored(place.sequence))) }
  }
  for (let sequence = 1; sequence <= last; sequence += 1) {
    const text = stored(sequence)
    const transfer = decodeTransfer(sequence, textOf(text))
    const { pending } = transfer
    const ended = pending === '' ? undefined : (deferred.transfers.get(pending) ?? inTables(pending))
    deferred.add({ transfer, place: blocks.add(sequence, text) }, ended)
    if (deferred.size < movedAtOnce) continue
    blocks.end()
    putDeferred(tables, deferred)
    deferred.clear()
  }
  blocks.end()
  putDeferred(tables, deferred)
}

function empty(table: Table): void {
  for (;;) {
    const entries = table.from(undefined, movedAtOnce)
    for (const { key } of entries) table.remove(key)
    if (entries.length < movedAtOnce) return
  }
}
