import { Segment } from '../index/segment.js'
import type { Removals } from '../index/segment-keeper.js'
import { segmentPath } from '../index/segment-list.js'
import type { IndexTables } from './index-tables.js'
import type { RemovedMarks } from './removed-rows.js'
import type { SegmentIds } from './segment-ids.js'

/** Removed rows of the tables, for segments that are written anew: only the keeper. */
export class SegmentRemovals implements Removals {
  /** Rows that were removed when this began, by segment. */
  readonly #before = new Map<number, RemovedMarks>()

  constructor(
    private readonly tables: Pick<IndexTables, 'segments'>,
    private readonly ids: SegmentIds,
  ) {}

  snapshot(segment: number): ((row: number) => boolean) | undefined {
    const marks = this.tables.segments.removed.marks(segment)
    this.#before.set(segment, marks)
    return marks.isEmpty ? undefined : (row) => marks.has(row)
  }

  moved(from: readonly number[], to: readonly number[]): void {
    const { segments } = this.tables
    let change = 0
    for (const number of from) {
      const before = this.#before.get(number)
      const late: number[] = []
      for (const row of segments.removed.marks(number).rows()) {
        change -= 1
        if (before?.has(row) !== true) late.push(row)
      }
      if (late.length > 0) change += this.#move(number, late, to)
      segments.removed.drop(number)
      this.#before.delete(number)
    }
    this.ids.moved(from, to)
    if (change !== 0) segments.countRemoved(change)
  }

  /** Removes rows of a segment from those that have them now, by their ids: how many. */
  #move(from: number, rows: readonly number[], to: readonly number[]): number {
    const [source, ...targets] = [from, ...to].map((number) => ({ number, segment: this.#open(number) }))
    let moved = 0
    try {
      for (const row of rows) {
        const id = source?.segment?.idOf(row)
        for (const { number, segment } of targets) {
          if (id === undefined || segment === undefined)
            throw new Error(`a segment is missing that was written anew from ${from}`)
          const found = segment.find(id)
          if (found >= 0 && this.tables.segments.removed.add(number, found)) moved += 1
        }
      }
    } finally {
      for (const { segment } of [...(source === undefined ? [] : [source]), ...targets]) segment?.close()
    }
    return moved
  }

  #open(number: number): Segment | undefined {
    return Segment.open(segmentPath(this.tables.segments.files.folder, number))
  }
}
