import { IdSearch } from '../index/id-search.js'
import { mergesDue } from '../index/segment-keeper.js'
import type { Segments } from '../index/segment-list.js'
import type { Table } from '../store/lmdb.js'
import { type BulkTotals, bulkTotals } from './bulk-totals.js'
import type { Effort } from './effort.js'
import { type Mended, mendedIn } from './mended.js'
import { RemovedRows } from './removed-rows.js'
import type { Row } from './row.js'
import { rowKey } from './row-key.js'
import {
  type FoundInSegment,
  findIn,
  type LiveSegment,
  rowAtKey,
  rowOf,
  spanOf,
  spans,
} from './segment-rows.js'

const removalsKey = Buffer.from('removed rows')
const noId = Buffer.alloc(32)
const noSearch = new IdSearch([])

/** What all segments have together. */
export interface SegmentTotals {
  /** How many there are, by how often their rows were merged. */
  readonly levels: ReadonlyMap<number, number>
  readonly rows: number
  readonly bytes: number
  /** Rows that were removed since they were written. */
  readonly removed: number
  /** Merges whose segments are all there. */
  readonly mergesDue: number
  /** The last import in bulk, if there was one. */
  readonly bulk: BulkTotals | undefined
  /** What was taken out because pages are damaged. */
  readonly mended: Mended
}

/** How often rows of segments were removed (modulo 2^32), and how many are. */
interface Removals {
  readonly changes: number
  readonly rows: number
}

function removalsIn(meta: Table): Removals {
  const record = meta.get(removalsKey)
  if (record === undefined) return { changes: 0, rows: 0 }
  const bytes = Buffer.from(record)
  return { changes: bytes.readUInt32LE(0), rows: bytes.readDoubleLE(4) }
}

/**
 * The segments of the index, as one thread reads them. Asks LMDB with each look what there is: so what it says and what the
 * tables say are of one state.
 */
export class IndexSegments {
  readonly removed: RemovedRows
  #live: readonly LiveSegment[] = []
  #changes = -1
  /** Looks for ids in `#searched`. */
  #search = noSearch
  #searched: readonly LiveSegment[] | undefined
  #isFresh = false
  /** Only this thread changes them, and says so with `changed`: it need not ask. */
  isOwn = false

  constructor(
    readonly files: Segments,
    removed: Table,
    private readonly meta: Table,
  ) {
    this.removed = new RemovedRows(removed)
  }

  /** All of them, in the order of the list. */
  all(): readonly LiveSegment[] {
    if (this.isOwn && this.#isFresh) return this.#live
    this.files.refresh()
    if (this.files.follow()) this.#isFresh = false
    if (this.#isFresh && this.#live.length === 0) return this.#live
    const { changes } = removalsIn(this.meta)
    if (this.#isFresh && changes === this.#changes) return this.#live
    this.#isFresh = false
    this.removed.refresh()
    this.#live = this.files.listed().map(({ number, segment }) => {
      const isRemoved = this.removed.hasAny(number)
        ? (row: number): boolean => this.removed.has(number, row)
        : undefined
      return { number, segment, isRemoved, span: spanOf(segment) }
    })
    // It holds the mapped memory of segments, and a removed file keeps its disk space as long as that.
    this.#search = noSearch
    this.#searched = undefined
    this.#changes = changes
    this.#isFresh = true
    return this.#live
  }

  /** They were changed by this thread. */
  changed(): void {
    this.#isFresh = false
  }

  /** Number of rows, without those that were removed. */
  count(): number {
    const rows = this.all().reduce((sum, { segment }) => sum + segment.count, 0)
    return rows === 0 ? 0 : rows - removalsIn(this.meta).rows
  }

  /** Bytes of all files. */
  bytes(): number {
    return this.all().reduce((sum, { segment }) => sum + segment.file.sizeBytes, 0)
  }

  /** What the list has, without opening a file. */
  totals(): SegmentTotals {
    const { segments } = this.files.read()
    const levels = new Map<number, number>()
    let [rows, bytes] = [0, 0]
    for (const one of segments) {
      levels.set(one.level, (levels.get(one.level) ?? 0) + 1)
      rows += one.rows
      bytes += one.bytes
    }
    const [removals, bulk, mended] = [removalsIn(this.meta), bulkTotals(this.meta), mendedIn(this.meta)]
    return { levels, rows, bytes, removed: removals.rows, mergesDue: mergesDue(levels), bulk, mended }
  }

  /** The row with this id (32 bytes): the newest segments first. */
  find(id: Uint8Array): FoundInSegment | undefined {
    const live = this.all()
    if (this.#searched !== live) {
      this.#search = new IdSearch(live.map(({ segment }) => segment))
      this.#searched = live
    }
    const search = this.#search
    search.begin(id)
    for (let at = live.length - 1; at >= 0; at -= 1) {
      if (!search.mayHave(at)) continue
      const one = live[at] as LiveSegment
      const row = findIn(one, id)
      if (row >= 0) return { live: one, row }
    }
    return undefined
  }

  /** The row with this key. */
  at(key: Uint8Array): FoundInSegment | undefined {
    for (const one of this.all()) {
      const row = rowAtKey(one, key)
      if (row >= 0) return { live: one, row }
    }
    return undefined
  }

  /** The transaction at this position of a block. */
  transactionIn(height: number, index: number): Row | undefined {
    const start = rowKey(height, index, false, noId)
    for (const live of this.all()) {
      if (!spans(live, start)) continue
      const { segment, isRemoved } = live
      for (let row = segment.lowerBound(start); row < segment.count; row += 1) {
        const key = segment.keyOf(row)
        if (key.compare(start, 0, 7, 0, 7) !== 0) break
        if (isRemoved?.(row) !== true) return rowOf(live, row)
      }
    }
    return undefined
  }

  /** The public key of an address (32 bytes), if a segment has it: a copy. Each segment is charged. */
  ownerKey(address: Uint8Array, effort?: Effort): Buffer | undefined {
    const live = this.all()
    for (let at = live.length - 1; at >= 0; at -= 1) {
      effort?.lookUp()
      const key = (live[at] as LiveSegment).segment.ownerKey(address)
      if (key !== undefined) return key
    }
    return undefined
  }

  /** Removes a row of a segment; false where it was removed already. Only the keeper, inside its transaction. */
  remove({ live, row }: FoundInSegment): boolean {
    if (!this.removed.add(live.number, row)) return false
    if (live.isRemoved === undefined) this.changed()
    this.countRemoved(1)
    return true
  }

  /** Removes rows of a segment, which need not be listed yet. Only the keeper, inside its transaction. */
  removeAll(segment: number, rows: ReadonlySet<number>): void {
    if (rows.size === 0) return
    this.countRemoved(this.removed.addAll(segment, rows))
    this.changed()
  }

  /** Removes rows of a segment that stand in a row, up to before `end`. Only the keeper, inside its transaction. */
  removeRange({ number, isRemoved }: LiveSegment, first: number, end: number): void {
    const added = this.removed.addRange(number, first, end)
    if (added === 0) return
    this.countRemoved(added)
    if (isRemoved === undefined) this.changed()
  }

  /** Counts removed rows. Only the keeper, inside its transaction. */
  countRemoved(more: number): void {
    const { changes, rows } = removalsIn(this.meta)
    const record = Buffer.allocUnsafe(12)
    record.writeUInt32LE((changes + 1) % 2 ** 32, 0)
    record.writeDoubleLE(rows + more, 4)
    this.meta.put(removalsKey, record)
  }
}
