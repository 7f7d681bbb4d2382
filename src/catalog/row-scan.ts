import type { Effort } from './effort.js'
import { LeapScan } from './leap.js'
import { localKey, localRow } from './local-key.js'
import type { Row } from './row.js'
import { compareRowKeys } from './row-key.js'
import { BlockScan, type Scan } from './scan.js'
import { SegmentListScan } from './segment-list-scan.js'
import { type LiveSegment, rowOf } from './segment-rows.js'
import { SegmentSource } from './segment-source.js'
import { type Selection, Selector } from './selection.js'

/** Rows of a selection in one direction. Begins in front of its first: seek. */
export interface RowScan {
  /** Key of the row where it stands; undefined at its end. */
  readonly key: Buffer | undefined
  /** Where it stopped for want of effort: no row before this key was left out. Undefined: it did not stop so. */
  readonly cutAt: Buffer | undefined
  /** Goes to the first row at or behind `target`, in its direction. Never goes back. */
  seek(target: Uint8Array): void
  next(): void
  /** The row where it stands; charged. */
  read(): Row
}

/** What is wanted of a scan. */
export interface Wish {
  readonly backwards: boolean
  readonly effort: Effort
  /** The first and the last key that are wanted, in the direction. */
  readonly start: Uint8Array
  readonly end: Uint8Array
  /** So many rows are needed at least, where every row is wanted. */
  readonly ahead?: number
  /** Rows are counted and not read. */
  readonly listsOnly?: boolean
  /** False: rows that are read need no tags. */
  readonly takesTags?: boolean
}

/** Counts the rows of a scan up to `end` (inclusive); undefined where that took more than the effort. */
export function countRows(
  scan: Scan,
  end: Uint8Array,
  backwards: boolean,
  effort: Effort,
): number | undefined {
  let count = 0
  for (let { row } = scan; row !== undefined; row = scan.row) {
    const order = compareRowKeys(row, 0, end, 0)
    if (backwards ? order < 0 : order > 0) break
    if (effort.spent) return undefined
    if (scan instanceof BlockScan || scan instanceof SegmentListScan) count += scan.countBlock(end)
    else {
      count += 1
      scan.next()
    }
  }
  return scan instanceof LeapScan && scan.cutAt !== undefined ? undefined : count
}

/** Rows that are wanted of the disk at once, where nobody says how many are wanted. */
const rowsAhead = 32

/** Rows of a segment between two keys. */
export class SegmentScan implements RowScan {
  readonly #scan: Scan
  readonly #first: number
  readonly #last: number
  /** The row that was read last, and its number. */
  #read: Row | undefined
  #number = -1
  #hasTags = false
  /** A tag decides which rows are wanted, so that a row may be looked at for its tags. */
  readonly #looksAtTags: boolean
  #key: Buffer | undefined
  /** The last row, in the direction, of those that are wanted of the disk already. */
  #wantedTo: number | undefined
  /** What was looked for lies behind all of its rows. */
  #isOver = false

  constructor(
    private readonly live: LiveSegment,
    wanted: Selection,
    private readonly wish: Wish,
  ) {
    const { backwards, effort, start, end, ahead, listsOnly } = wish
    const [low, high] = backwards ? [end, start] : [start, end]
    this.#first = live.segment.lowerBound(low)
    this.#last = this.#atOrBefore(high)
    this.#looksAtTags = wanted.tags !== undefined
    const read = (key: Buffer): Row => this.#rowAt(localRow(key), this.#looksAtTags)
    this.#scan = new Selector(new SegmentSource(live)).scan(wanted, {
      backwards,
      effort,
      end: localKey(backwards ? this.#first : Math.max(this.#last, 0)),
      read,
      ...(ahead === undefined ? {} : { ahead }),
      ...(listsOnly === undefined ? {} : { listsOnly }),
    })
  }

  #atOrBefore(key: Uint8Array): number {
    const { segment } = this.live
    const at = segment.lowerBound(key)
    return at < segment.count && segment.keyOf(at).equals(key) ? at : at - 1
  }

  get #row(): number | undefined {
    const { row } = this.#scan
    if (row === undefined || this.#isOver) return undefined
    const number = localRow(row)
    return number < this.#first || number > this.#last ? undefined : number
  }

  get key(): Buffer | undefined {
    const row = this.#row
    if (row === undefined) return undefined
    if (this.#key === undefined) {
      if (this.live.segment.isNew(row)) this.#ahead(row)
      this.#key = this.live.segment.keyOf(row)
    }
    return this.#key
  }

  get cutAt(): Buffer | undefined {
    const at = this.#scan instanceof LeapScan && !this.#isOver ? this.#scan.cutAt : undefined
    return at === undefined ? undefined : this.live.segment.keyOf(localRow(at))
  }

  seek(target: Uint8Array): void {
    this.#key = undefined
    const { backwards } = this.wish
    const row = backwards ? this.#atOrBefore(target) : this.live.segment.lowerBound(target)
    this.#isOver = backwards ? row < this.#first : row > this.#last
    if (!this.#isOver)
      this.#scan.seek(localKey(backwards ? Math.min(row, this.#last) : Math.max(row, this.#first)))
  }

  next(): void {
    this.#key = undefined
    this.#scan.next()
  }

  read(): Row {
    const row = this.#row
    if (row === undefined) throw new Error('a scan at its end has no row')
    return this.#rowAt(row, this.wish.takesTags !== false)
  }

  /** The one that was looked at last is most often the one that is wanted next; with tags, where these were looked at. */
  #rowAt(row: number, needsTags: boolean): Row {
    if (this.#read !== undefined && this.#number === row && (this.#hasTags || !needsTags)) return this.#read
    this.wish.effort.charge()
    this.#ahead(row)
    this.#read = rowOf(this.live, row, needsTags)
    this.#number = row
    this.#hasTags = needsTags
    return this.#read
  }

  /** What is read next is wanted of the disk at once. */
  #ahead(row: number): void {
    const far = this.#wantedTo
    const { backwards, ahead = rowsAhead } = this.wish
    if (far !== undefined && (backwards ? row >= far : row <= far)) return
    const scan = this.#scan instanceof LeapScan ? this.#scan.lead : this.#scan
    const rows =
      scan instanceof SegmentListScan
        ? scan.coming(ahead)
        : Uint32Array.from(scan instanceof BlockScan ? scan.coming(ahead) : [], localRow)
    this.#wantedTo = (backwards ? rows[0] : rows.at(-1)) ?? row
    this.live.segment.ahead(rows)
  }

  /** Counts all of its rows; undefined where that took more than the effort. */
  count(): number | undefined {
    const { backwards, effort } = this.wish
    if (this.#first > this.#last) return 0
    this.#scan.seek(localKey(backwards ? this.#last : this.#first))
    return countRows(this.#scan, localKey(backwards ? this.#first : this.#last), backwards, effort)
  }
}

/** A part of the index that is not looked at before its turn. */
export interface ScanPart {
  /** No row of it comes before this key, in the direction; undefined: it is looked at at once. */
  readonly bound: Buffer | undefined
  open(): RowScan
}

/** The segments that have rows between the two keys of a wish. */
export function segmentParts(live: readonly LiveSegment[], wanted: Selection, wish: Wish): ScanPart[] {
  const { backwards, start, end } = wish
  return live.flatMap((one) => {
    const { span } = one
    if (span === undefined) return []
    const [bound, far] = backwards ? [span.last, span.first] : [span.first, span.last]
    const isApart = isBefore(end, bound, backwards) || isBefore(far, start, backwards)
    return isApart ? [] : [{ bound, open: () => new SegmentScan(one, wanted, wish) }]
  })
}

/** Whether a key comes before another one in a direction. */
export function isBefore(one: Uint8Array, other: Uint8Array, backwards: boolean): boolean {
  const order = compareRowKeys(one, 0, other, 0)
  return backwards ? order > 0 : order < 0
}

/** The rows of all parts, in the order of the chain. No row is in two of them. */
export class MergedScan implements RowScan {
  key: Buffer | undefined
  cutAt: Buffer | undefined
  readonly #open: RowScan[] = []
  readonly #waiting: ScanPart[]
  readonly #effort: Effort
  readonly #backwards: boolean
  #nearest: RowScan | undefined
  #target: Uint8Array | undefined
  /** A part with a bound is open. */
  #hasBegun = false

  constructor(parts: readonly ScanPart[], { backwards, effort }: Pick<Wish, 'backwards' | 'effort'>) {
    this.#backwards = backwards
    this.#effort = effort
    const rank = (part: ScanPart): number => (part.bound === undefined ? 0 : 1)
    this.#waiting = [...parts].sort((one, other) => {
      if (one.bound === undefined || other.bound === undefined) return rank(one) - rank(other)
      return compareRowKeys(one.bound, 0, other.bound, 0) * (backwards ? -1 : 1)
    })
  }

  seek(target: Uint8Array): void {
    this.#target = target
    for (const scan of this.#open) {
      if (scan.key !== undefined && isBefore(scan.key, target, this.#backwards)) scan.seek(target)
    }
    this.#settle()
  }

  next(): void {
    this.#nearest?.next()
    this.#settle()
  }

  read(): Row {
    if (this.#nearest === undefined) throw new Error('a scan at its end has no row')
    return this.#nearest.read()
  }

  /**
   * Whether it stops before a part: each looks all values up before it can. One is opened always, so that a page that begins
   * with a spent effort has a row, and those that may have rows at the target, so that it goes on. Throws an OutOfEffort where
   * these alone take too long.
   */
  #isCutAt({ bound }: ScanPart): boolean {
    if (bound === undefined || !this.#hasBegun || !this.#effort.spent) return false
    if (this.#target === undefined || !isBefore(this.#target, bound, this.#backwards)) {
      this.#effort.goOn()
      return false
    }
    this.#nearest = undefined
    this.key = undefined
    this.cutAt = bound
    return true
  }

  /** Stands at the nearest row of all parts; at its end, where a part stopped before it for want of effort. */
  #settle(): void {
    for (;;) {
      let nearest: RowScan | undefined
      let place: Buffer | undefined
      for (const scan of this.#open) {
        const at = scan.key ?? scan.cutAt
        if (at === undefined) continue
        const order = place === undefined ? -1 : compareRowKeys(at, 0, place, 0) * (this.#backwards ? -1 : 1)
        // A row that was removed from a segment may be in the tables again: the next page begins with it, and not behind it.
        if (order > 0 || (order === 0 && scan.key !== undefined)) continue
        place = at
        nearest = scan
      }
      const [next] = this.#waiting
      const isDue =
        next !== undefined &&
        (next.bound === undefined || place === undefined || !isBefore(place, next.bound, this.#backwards))
      if (isDue) {
        if (this.#isCutAt(next)) return
        this.#waiting.shift()
        this.#hasBegun ||= next.bound !== undefined
        const scan = next.open()
        this.#open.push(scan)
        if (this.#target !== undefined) scan.seek(this.#target)
        continue
      }
      this.#nearest = nearest
      this.key = nearest?.key
      this.cutAt = nearest?.key === undefined ? nearest?.cutAt : undefined
      return
    }
  }
}
