import {
  AllCursor,
  AllOfCursor,
  AnyCursor,
  ListCursor,
  type RowCursor,
  TransactionCursor,
} from './row-cursor.js'
import type { Segment } from './segment.js'
import type { SegmentRow } from './segment-row.js'
import { fieldKey, tagKey, wordField } from './word-key.js'

const heightMax = 0xffff_ffff

/** Which rows are wanted: all conditions hold at once, any of the values of one condition will do. */
export interface RowsWanted {
  readonly tags?: readonly { readonly name: Uint8Array; readonly values: readonly Uint8Array[] }[]
  /** Addresses of 32 bytes. */
  readonly owners?: readonly Uint8Array[]
  readonly recipients?: readonly Uint8Array[]
  /** Items of these bundles; null: transactions of the base layer only. */
  readonly bundledIn?: readonly Uint8Array[] | null
  /** Inclusive. */
  readonly minHeight?: number
  readonly maxHeight?: number
}

export interface PageWish {
  readonly backwards: boolean
  /** Key of the last row of the page before. */
  readonly after?: Uint8Array
  readonly limit: number
}

export interface SegmentPage {
  readonly rows: readonly SegmentRow[]
  /** There are more behind the last one. */
  readonly more: boolean
}

/** Rows of one segment that are wanted, from a key on to another one. */
class Source {
  key: Buffer | undefined
  row = -1
  readonly #cursor: RowCursor
  readonly #last: number

  constructor(
    readonly segment: Segment,
    { first, end }: { readonly first: number; readonly end: number },
    backwards: boolean,
    cursor: RowCursor,
  ) {
    this.#cursor = cursor
    this.#last = backwards ? first : end - 1
    cursor.seek(backwards ? end - 1 : first)
    this.#stand(backwards)
  }

  next(backwards: boolean): void {
    this.#cursor.next()
    this.#stand(backwards)
  }

  #stand(backwards: boolean): void {
    const { row } = this.#cursor
    const isOver = row < 0 || (backwards ? row < this.#last : row > this.#last)
    this.row = isOver ? -1 : row
    this.key = isOver ? undefined : this.segment.keyOf(row)
  }
}

/** A segment that is not looked at before its turn. */
interface Waiting {
  readonly segment: Segment
  readonly span: { readonly first: number; readonly end: number }
  /** No row of it comes before this key, in the direction of the page. */
  readonly bound: Buffer
}

/** A page of the rows of some segments: in the order of the chain, newest first where it goes backwards. */
export function pageOf(segments: readonly Segment[], wanted: RowsWanted, wish: PageWish): SegmentPage {
  const { backwards, limit } = wish
  const waiting = segments
    .flatMap((segment) => waitingOf(segment, wanted, wish))
    .sort((one, other) => compareKeys(one.bound, other.bound, backwards))
  const [only] = waiting
  if (only !== undefined && waiting.length === 1) return pageOfOne(only, wanted, wish)
  const sources: Source[] = []
  const rows: SegmentRow[] = []
  let last: Buffer | undefined
  for (;;) {
    const source = nearest(sources, backwards)
    const [next] = waiting
    const isDue =
      next !== undefined && (source?.key === undefined || compareKeys(next.bound, source.key, backwards) <= 0)
    if (isDue) {
      waiting.shift()
      const cursor = cursorOf(next.segment, wanted, backwards)
      if (cursor !== undefined) sources.push(new Source(next.segment, next.span, backwards, cursor))
      continue
    }
    if (source?.key === undefined) return { rows, more: false }
    // Two segments may have a row while they are not merged.
    const isKnown = last?.equals(source.key) === true
    if (!isKnown && rows.length === limit) return { rows, more: true }
    if (!isKnown) rows.push(source.segment.row(source.row))
    last = source.key
    source.next(backwards)
  }
}

/** The same of one segment, which needs no keys. */
function pageOfOne(
  { segment, span }: Waiting,
  wanted: RowsWanted,
  { backwards, limit }: PageWish,
): SegmentPage {
  const cursor = cursorOf(segment, wanted, backwards)
  const rows: SegmentRow[] = []
  if (cursor === undefined) return { rows, more: false }
  cursor.seek(backwards ? span.end - 1 : span.first)
  for (let { row } = cursor; row >= span.first && row < span.end; row = cursor.row) {
    if (rows.length === limit) return { rows, more: true }
    rows.push(segment.row(row))
    cursor.next()
  }
  return { rows, more: false }
}

function nearest(sources: readonly Source[], backwards: boolean): Source | undefined {
  let best: Source | undefined
  for (const source of sources) {
    if (source.key === undefined) continue
    if (best?.key === undefined || compareKeys(source.key, best.key, backwards) < 0) best = source
  }
  return best
}

function compareKeys(one: Uint8Array, other: Uint8Array, backwards: boolean): number {
  return backwards ? Buffer.compare(other, one) : Buffer.compare(one, other)
}

/** The rows of a segment that the heights of a page and its beginning allow; none where there are none. */
function waitingOf(segment: Segment, wanted: RowsWanted, { backwards, after }: PageWish): Waiting[] {
  const { groups } = segment
  const { minHeight = 0, maxHeight = heightMax } = wanted
  if (minHeight > maxHeight || segment.count === 0) return []
  let first = minHeight <= 0 ? 0 : groups.firstRow(minHeight, 0)
  let end = maxHeight >= heightMax ? segment.count : groups.firstRow(maxHeight + 1, 0)
  if (after !== undefined) {
    const at = segment.lowerBound(after)
    if (backwards) end = Math.min(end, at)
    else first = Math.max(first, behind(segment, at, after))
  }
  if (first >= end) return []
  return [{ segment, span: { first, end }, bound: segment.keyOf(backwards ? end - 1 : first) }]
}

/** The first row behind a key; `at`: the first at or behind it. */
function behind(segment: Segment, at: number, key: Uint8Array): number {
  let row = at
  while (row < segment.count && segment.keyOf(row).equals(key)) row += 1
  return row
}

/** Rows of a segment that fulfil all conditions; undefined where there are none. */
function cursorOf(segment: Segment, wanted: RowsWanted, backwards: boolean): RowCursor | undefined {
  const { tags = [], owners, recipients, bundledIn } = wanted
  const keys = tags.map(({ name, values }) => values.map((value) => tagKey(name, value)))
  if (owners !== undefined) keys.push(owners.map((owner) => fieldKey(wordField.owner, owner)))
  if (recipients !== undefined) keys.push(recipients.map((each) => fieldKey(wordField.recipient, each)))
  if (bundledIn !== undefined && bundledIn !== null) {
    keys.push(bundledIn.map((bundle) => fieldKey(wordField.parent, bundle)))
  }
  const lists = keys.map((some) => some.flatMap((key) => segment.list(key) ?? []))
  if (lists.some((some) => some.length === 0)) return undefined
  // The shortest leads.
  const total = (some: (typeof lists)[number]): number => some.reduce((sum, { count }) => sum + count, 0)
  const cursors = lists
    .sort((one, other) => total(one) - total(other))
    .map((some) =>
      any(
        some.map((list) => new ListCursor(segment.reader(list), backwards)),
        backwards,
      ),
    )
  if (bundledIn === null) cursors.push(new TransactionCursor(segment.groups, segment.count, backwards))
  const [only] = cursors
  if (only === undefined) return new AllCursor(segment.count, backwards)
  return cursors.length === 1 ? only : new AllOfCursor(cursors, backwards)
}

function any(cursors: readonly RowCursor[], backwards: boolean): RowCursor {
  const [only] = cursors
  return only !== undefined && cursors.length === 1 ? only : new AnyCursor(cursors, backwards)
}
