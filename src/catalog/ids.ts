import { RunWriter } from '../store/run-writer.js'
import type { Look } from '../store/runs.js'
import { recordIsOf } from './row.js'
import { idKeyBytes, idRuns, ledgerOf, type RowTables } from './row-tables.js'
import { Spill, type SpillLimits } from './spill.js'
import { isInSpan, type KeySpan } from './table-sets.js'

/** Bytes of a row key in front of the id. */
const placeBytes = 7

/** A row where it stands. */
export interface FoundRow {
  readonly key: Buffer
  /** A copy. */
  readonly record: Uint8Array
}

interface Finder {
  find(first: number, second: number, look: Look): boolean
}

/**
 * The row with this id (32 bytes): by the table of ids or by the runs. Both may also name places where the row once was, so
 * only the row itself decides. Rows whose keys are not in `span` do not count.
 */
export function findRow(
  tables: Pick<RowTables, 'ids' | 'rows'>,
  runs: Finder,
  id: Uint8Array,
  span?: KeySpan,
  isTableEmpty = false,
): FoundRow | undefined {
  const rowAt = (key: Buffer): FoundRow | undefined => {
    const record = isInSpan(span, key) ? tables.rows.get(key) : undefined
    return record !== undefined && recordIsOf(record, id) ? { key, record } : undefined
  }
  const place = isTableEmpty ? undefined : tables.ids.view(id.subarray(0, idKeyBytes))
  if (place !== undefined) {
    const found = rowAt(keyOf(place, id))
    if (found !== undefined) return found
  }
  let found: FoundRow | undefined
  runs.find(wordAt(id, 0), wordAt(id, 4), (words, at) => {
    found = rowAt(keyOf(placeOf(words, at), id))
    return found !== undefined
  })
  return found
}

/** A row key: its first 7 bytes, then the start of the id. */
function keyOf(place: Uint8Array, id: Uint8Array): Buffer {
  const key = Buffer.allocUnsafe(16)
  key.set(place.subarray(0, placeBytes), 0)
  key.set(id.subarray(0, 9), placeBytes)
  return key
}

function wordAt(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number)) >>>
    0
  )
}

/** The first 7 bytes of the row key in a record. */
export function placeOf(words: Uint32Array, at: number): Buffer {
  const place = Buffer.allocUnsafe(placeBytes)
  place.writeUInt32BE(words[at + 2] as number, 0)
  place.writeUIntBE(words[at + 3] as number, 4, 3)
  return place
}

/** Remembers where rows stand: only the keeper, inside its transaction. */
export class IdWriter {
  readonly runs: RunWriter
  readonly #spill: Spill<{ readonly id: Uint8Array; readonly key: Uint8Array }>
  readonly #record = new Uint32Array(idRuns.width)

  constructor(
    private readonly tables: RowTables,
    limits: SpillLimits,
  ) {
    this.runs = new RunWriter(tables.runs.ids, ledgerOf(tables, idRuns), limits)
    this.#spill = new Spill(tables.ids, limits, [this.runs], {
      put: (table, { id, key }) => table.put(id.subarray(0, idKeyBytes), key.subarray(0, placeBytes)),
      move: (id, place) => this.#put(id, place),
    })
  }

  find(id: Uint8Array, span?: KeySpan): FoundRow | undefined {
    return findRow(this.tables, this.runs, id, span, this.#spill.isTableEmpty)
  }

  /** The row with this id stands at `key` from now on. */
  add(id: Uint8Array, key: Uint8Array): void {
    this.#put(id, key)
    if (this.#spill.takes()) this.#spill.add({ id, key: Buffer.from(key) })
  }

  /** The row is gone. Runs may go on to name it: there is no row, so nobody believes them. */
  remove(id: Uint8Array): void {
    if (!this.#spill.isTableEmpty) this.tables.ids.remove(id.subarray(0, idKeyBytes))
  }

  settle(): void {
    this.#spill.settle()
  }

  /** Forgets all rows: they are gone. */
  clear(): void {
    this.#spill.clear()
  }

  #put(id: Uint8Array, place: Uint8Array): void {
    const record = this.#record
    record[0] = wordAt(id, 0)
    record[1] = wordAt(id, 4)
    record[2] = wordAt(place, 0)
    record[3] = ((place[4] as number) << 16) | ((place[5] as number) << 8) | (place[6] as number)
    this.runs.add(record)
  }
}
