import type { Dictionary } from './dictionary.js'
import { LeapScan } from './leap.js'
import { decodeRow, type Row, type StoredRow } from './row.js'
import { countRows, isBefore, type RowScan, type ScanPart, type Wish } from './row-scan.js'
import type { Scan } from './scan.js'
import { type Selection, Selector } from './selection.js'
import type { LiveTables } from './table-sets.js'
import { TableSource } from './table-source.js'

/** Rows of one set of tables. */
export class TableScan implements RowScan {
  readonly #scan: Scan
  #last: StoredRow | undefined
  /** The first and the last key, in the direction, of rows that count and are wanted. */
  readonly #start: Uint8Array
  readonly #end: Uint8Array
  /** What was looked for lies behind all of its rows. */
  #isOver = false

  constructor(
    private readonly live: LiveTables,
    private readonly dictionary: Dictionary,
    wanted: Selection,
    private readonly wish: Wish,
  ) {
    const { start, end, ...scanning } = wish
    const { backwards } = wish
    const [near, far] = nearAndFar(live, backwards) ?? [start, end]
    this.#start = isBefore(start, near, backwards) ? near : start
    this.#end = isBefore(far, end, backwards) ? far : end
    const read = (key: Buffer): StoredRow => this.#read(key)
    const source = new TableSource(live, dictionary)
    this.#scan = new Selector(source).scan(wanted, { ...scanning, end: this.#end, read })
  }

  get key(): Buffer | undefined {
    const { row } = this.#scan
    if (row === undefined || this.live.span === undefined) return row
    return this.#isOver || isBefore(this.#end, row, this.wish.backwards) ? undefined : row
  }

  get cutAt(): Buffer | undefined {
    return this.#scan instanceof LeapScan && !this.#isOver ? this.#scan.cutAt : undefined
  }

  seek(target: Uint8Array): void {
    const { backwards } = this.wish
    this.#isOver = this.live.span !== undefined && isBefore(this.#end, target, backwards)
    if (!this.#isOver) this.#scan.seek(isBefore(target, this.#start, backwards) ? this.#start : target)
  }

  next(): void {
    this.#scan.next()
  }

  read(): Row {
    const { key } = this
    if (key === undefined) throw new Error('a scan at its end has no row')
    return this.dictionary.whole(this.#read(key), this.wish.takesTags)
  }

  /** Reads a row, and charges for it. The one that was looked at last is most often the one that is wanted next. */
  #read(key: Buffer): StoredRow {
    if (this.#last?.key === key) return this.#last
    this.wish.effort.charge()
    const record = this.live.tables.rows.get(key)
    if (record === undefined) throw new Error('a posting of the index has no row')
    this.#last = decodeRow(key, record)
    return this.#last
  }

  /** Counts all of its rows; undefined where that took more than the effort. */
  count(): number | undefined {
    const { backwards, effort } = this.wish
    if (isBefore(this.#end, this.#start, backwards)) return 0
    this.#scan.seek(this.#start)
    return countRows(this.#scan, this.#end, backwards, effort)
  }
}

/** The keys between which rows of the tables count, in a direction; undefined where all do. */
function nearAndFar({ span }: LiveTables, backwards: boolean): [near: Buffer, far: Buffer] | undefined {
  if (span === undefined) return undefined
  return backwards ? [span.last, span.first] : [span.first, span.last]
}

/** The sets of tables that have rows between the two keys of a wish. */
export function tableParts(
  live: readonly LiveTables[],
  dictionaries: readonly Dictionary[],
  wanted: Selection,
  wish: Wish,
): ScanPart[] {
  const { backwards, start, end } = wish
  return live.flatMap((one) => {
    const bounds = nearAndFar(one, backwards)
    const isApart =
      bounds !== undefined && (isBefore(end, bounds[0], backwards) || isBefore(bounds[1], start, backwards))
    const dictionary = dictionaries[one.at]
    if (isApart || dictionary === undefined) return []
    return [{ bound: bounds?.[0], open: () => new TableScan(one, dictionary, wanted, wish) }]
  })
}
