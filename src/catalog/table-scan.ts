import type { Dictionary } from './dictionary.js'
import type { IndexTables } from './index-tables.js'
import { LeapScan } from './leap.js'
import { decodeRow, type Row, type StoredRow } from './row.js'
import { countRows, type RowScan, type Wish } from './row-scan.js'
import type { Scan } from './scan.js'
import { type Selection, Selector } from './selection.js'
import { TableSource } from './table-source.js'

/** Rows of the tables. */
export class TableScan implements RowScan {
  readonly #scan: Scan
  #last: StoredRow | undefined

  constructor(
    private readonly tables: IndexTables,
    private readonly dictionary: Dictionary,
    wanted: Selection,
    private readonly wish: Wish,
  ) {
    const { start: _start, ...scanning } = wish
    const read = (key: Buffer): StoredRow => this.#read(key)
    this.#scan = new Selector(new TableSource(tables, dictionary)).scan(wanted, { ...scanning, read })
  }

  get key(): Buffer | undefined {
    return this.#scan.row
  }

  get cutAt(): Buffer | undefined {
    return this.#scan instanceof LeapScan ? this.#scan.cutAt : undefined
  }

  seek(target: Uint8Array): void {
    this.#scan.seek(target)
  }

  next(): void {
    this.#scan.next()
  }

  read(): Row {
    const { row } = this.#scan
    if (row === undefined) throw new Error('a scan at its end has no row')
    return this.dictionary.whole(this.#read(row))
  }

  /** Reads a row, and charges for it. The one that was looked at last is most often the one that is wanted next. */
  #read(key: Buffer): StoredRow {
    if (this.#last?.key === key) return this.#last
    this.wish.effort.charge()
    const record = this.tables.rows.get(key)
    if (record === undefined) throw new Error('a posting of the index has no row')
    this.#last = decodeRow(key, record)
    return this.#last
  }

  /** Counts all of its rows; undefined where that took more than the effort. */
  count(): number | undefined {
    const { start, end, backwards, effort } = this.wish
    this.#scan.seek(start)
    return countRows(this.#scan, end, backwards, effort)
  }
}
