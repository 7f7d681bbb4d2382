import { unlessDamaged } from './checked-file.js'
import type { Segment } from './segment.js'
import type { SegmentRow } from './segment-row.js'

/** Rows that stand in a row: a group, or what lies between groups that can be read. In blocks from `from` to `to`. */
export interface RowStretch {
  readonly first: number
  /** The last one, and one. */
  readonly end: number
  readonly from: number
  readonly to: number
  /** Their places in the chain cannot be read. */
  readonly isHidden: boolean
}

/** A row of a segment that has damaged pages, or how many cannot be read, of blocks from `from` to `to`. */
export type Salvaged =
  | { readonly row: SegmentRow }
  | { readonly lost: number; readonly from: number; readonly to: number }

/** Whether a row does not count any more. */
type IsLeftOut = (row: number) => boolean

/** All rows of a segment in their order. `segment` should be open for nothing else. */
export function* rowStretches(segment: Segment): Generator<RowStretch> {
  const { groups, footer, words } = segment
  words.skipsDamage = true
  // Of the last group that could be read, and behind it.
  let [height, next] = [footer.lowest, 0]
  for (let at = 0; at < groups.count; at += 1) {
    const group = unlessDamaged(() => groups.open(at))
    if (group === undefined) continue
    const { first, end } = group
    if (first > next) yield { first: next, end: first, from: height, to: group.height, isHidden: true }
    height = group.height
    next = end
    yield { first, end, from: height, to: height, isHidden: false }
  }
  const end = footer.rowCount
  if (next < end) yield { first: next, end, from: height, to: footer.highest, isHidden: true }
}

/** Rows of a stretch that count, as far as they can be read. */
export function* rowsOfStretch(
  segment: Segment,
  { first, end, from, to, isHidden }: RowStretch,
  isLeftOut?: IsLeftOut,
): Generator<Salvaged> {
  let hidden = 0
  for (let number = first; number < end; number += 1) {
    if (isLeftOut?.(number) === true) continue
    const row = isHidden ? undefined : unlessDamaged(() => segment.row(number))
    if (row !== undefined) yield { row }
    else if (isHidden) hidden += 1
    else yield { lost: 1, from, to }
  }
  if (hidden > 0) yield { lost: hidden, from, to }
}

/**
 * All rows of a segment in their order, as far as pages that they need are sound. Words, forms and groups are needed; where rows
 * begin, ids and lists are not. `segment` should be open for nothing else: it believes pages that were sound when it read them.
 */
export function* salvagedRows(segment: Segment, isLeftOut?: IsLeftOut): Generator<Salvaged> {
  for (const stretch of rowStretches(segment)) yield* rowsOfStretch(segment, stretch, isLeftOut)
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
