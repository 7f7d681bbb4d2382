import { Segment } from '../index/segment.js'
import type { Removals } from '../index/segment-keeper.js'
import { segmentPath } from '../index/segment-list.js'
import type { IndexTables } from './index-tables.js'
import type { SegmentIds } from './segment-ids.js'

/** Removed rows of the tables, for merges: only the keeper. */
export class SegmentRemovals implements Removals {
  /** Rows that were removed when a merge began, by segment. */
  #before = new Map<number, ReadonlySet<number>>()

  constructor(
    private readonly tables: Pick<IndexTables, 'segments'>,
    private readonly ids: SegmentIds,
  ) {}

  snapshot(segment: number): ((row: number) => boolean) | undefined {
    const rows = new Set(this.tables.segments.removed.rows(segment))
    this.#before.set(segment, rows)
    return rows.size === 0 ? undefined : (row) => rows.has(row)
  }

  moved(from: readonly number[], to: { readonly number: number; readonly path: string }): void {
    const { segments } = this.tables
    const { removed } = segments
    let change = 0
    for (const number of from) {
      const rows = removed.rows(number)
      const before = this.#before.get(number)
      const late = rows.filter((row) => before?.has(row) !== true)
      change -= rows.length
      if (late.length > 0) change += this.#move(segmentPath(segments.files.folder, number), late, to)
      removed.drop(number)
    }
    this.ids.moved(from, to.number)
    if (change !== 0) segments.countRemoved(change)
    this.#before = new Map()
  }

  /** Removes rows of a segment from the merged one, which has them by their ids: how many. */
  #move(
    path: string,
    rows: readonly number[],
    to: { readonly number: number; readonly path: string },
  ): number {
    const source = Segment.open(path)
    const merged = Segment.open(to.path)
    try {
      if (source === undefined || merged === undefined)
        throw new Error(`a merged segment is missing: ${path}`)
      let moved = 0
      for (const row of rows) {
        const found = merged.find(source.idOf(row))
        if (found >= 0 && this.tables.segments.removed.add(to.number, found)) moved += 1
      }
      return moved
    } finally {
      source?.close()
      merged?.close()
    }
  }
}
