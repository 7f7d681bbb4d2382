import { unlessDamaged } from './checked-file.js'
import type { Segment } from './segment.js'
import type { SegmentRow } from './segment-row.js'

/** A row of a segment that has damaged pages, or what cannot be read of it. */
export type Salvaged =
  | { readonly row: SegmentRow }
  /** One row of this block. */
  | { readonly height: number }
  /** Rows whose places in the chain cannot be read: they are in blocks from `from` to `to`. */
  | { readonly lost: number; readonly from: number; readonly to: number }

/**
 * All rows of a segment in their order, as far as pages that they need are sound. Words, forms and groups are needed; where rows
 * begin, ids and lists are not. `segment` should be open for nothing else: it believes pages that were sound when it read them.
 */
export function* salvagedRows(segment: Segment, isLeftOut?: (row: number) => boolean): Generator<Salvaged> {
  const { groups, footer } = segment
  // Of the last group that could be read, and behind it.
  let [height, next] = [footer.lowest, 0]
  for (let at = 0; at < groups.count; at += 1) {
    const group = unlessDamaged(() => groups.open(at))
    if (group === undefined) continue
    if (group.first > next) yield { lost: group.first - next, from: height, to: group.height }
    height = group.height
    next = group.end
    for (let number = group.first; number < group.end; number += 1) {
      if (isLeftOut?.(number) === true) continue
      const row = unlessDamaged(() => segment.row(number))
      yield row === undefined ? { height } : { row }
    }
  }
  if (next < footer.rowCount) yield { lost: footer.rowCount - next, from: height, to: footer.highest }
}

/** Public keys of a segment by their addresses, those that can be read. */
export function* salvagedKeys(
  segment: Segment,
): Generator<{ readonly address: Buffer; readonly key: Buffer }> {
  for (let at = 0; at < segment.footer.keyCount; at += 1) {
    const found = unlessDamaged(() => segment.ownerKeyAt(at))
    if (found !== undefined) yield found
  }
}
