import type { Effort } from './effort.js'
import { type Condition, LeapScan, type ReadRow } from './leap.js'
import { heightEnd, heightStart, pendingHeight, pendingStart, rowKeyBytes } from './row-key.js'
import type { AnyRow, Looks, OpenList, RowSource, WordRows } from './row-source.js'
import { BlockScan, type Blocks, listed, type Scan, UnionScan } from './scan.js'

/** Which rows are wanted: all conditions hold at once, any of the values of one condition will do. */
export interface Selection {
  /** Ids of 32 bytes. */
  readonly ids?: readonly Uint8Array[]
  /** Addresses of 32 bytes. */
  readonly owners?: readonly Uint8Array[]
  readonly recipients?: readonly Uint8Array[]
  readonly tags?: readonly TagSelection[]
  /** Items of these bundles; null: transactions of the base layer only. */
  readonly bundledIn?: readonly Uint8Array[] | null
  /** Inclusive. Either bound leaves out what is in no block yet. */
  readonly minHeight?: number
  readonly maxHeight?: number
  /** Only what is above this height, or in no block yet. */
  readonly aboveHeight?: number
  /** First seen, seconds since 1970, inclusive. */
  readonly minSeen?: number
  readonly maxSeen?: number
}

export interface TagSelection {
  readonly name: Uint8Array
  readonly values: readonly Uint8Array[]
  /**
   * `is`: a tag has one of the values; `isNot`: no tag of this name has; `starts`: one starts with one of
   * them.
   */
  readonly match: 'is' | 'isNot' | 'starts'
}

/** How rows of a selection are looked for. */
export interface Scanning<R> {
  readonly backwards: boolean
  /** Charged with every look-up. */
  readonly effort: Effort
  /** Nothing behind this key is wanted. */
  readonly end: Uint8Array
  /** So many rows are needed at least, where every row is wanted. */
  readonly ahead?: number
  /** Reads the row with a key, and charges for it. */
  readonly read: ReadRow<R>
  /** The rows that are found are not read: the lists are searched and not the rows, where both show it. */
  readonly listsOnly?: boolean
}

/**
 * Tags that all prefixes of a selection together may stand for. Where there are more, the tags of each row are looked at
 * instead of the tags' lists: that finds the same rows.
 */
const startsMax = 2000
/** Rows read ahead at most where every row is wanted. */
const rowsAheadMax = 128

/** What is gathered of a selection before it becomes a scan. */
interface Gathered<R> {
  /** Tags that prefixes may still stand for. */
  readonly looks: Looks
  readonly conditions: Condition<R>[]
  readonly filters: ((key: Buffer) => boolean)[]
}

/** Builds the scans for selections of the rows of one source. Any thread; everything happens on the calling thread. */
export class Selector<R extends AnyRow> {
  constructor(private readonly source: RowSource<R>) {}

  /** The scan of all rows of `wanted`, not yet at its first row. */
  scan(wanted: Selection, scanning: Scanning<R>): Scan {
    const { backwards, effort, end, ahead = rowsAheadMax, read, listsOnly = false } = scanning
    const { conditions, filters } = this.#gather(wanted, scanning)
    const isNot = (wanted.tags ?? []).filter(({ match }) => match === 'isNot')
    const without = isNot.map(({ name, values }) =>
      conditionOf(this.source.tagged(name, values, effort), scanning),
    )
    if (conditions.length === 0) {
      const all = this.source.all(effort, Math.min(ahead, rowsAheadMax))
      conditions.push({ scan: new BlockScan(all, backwards) })
    }
    const [only] = conditions
    const isPlain = conditions.length === 1 && without.length === 0 && filters.length === 0
    if (isPlain && only !== undefined) return only.scan
    const { areListsNear } = this.source
    // What fewer rows have comes first.
    if (areListsNear) conditions.sort((one, other) => countOf(one) - countOf(other))
    const leaping = { conditions, without, filters, backwards, end, effort, areListsNear }
    return new LeapScan(listsOnly ? leaping : { ...leaping, read })
  }

  #gather(wanted: Selection, scanning: Scanning<R>): Gathered<R> {
    const { tags = [], recipients, owners, bundledIn, ids } = wanted
    const { effort, read } = scanning
    const { source } = this
    const gathered: Gathered<R> = { looks: { left: startsMax }, conditions: [], filters: [] }
    const { conditions, filters } = gathered
    if (ids !== undefined) {
      const keys = source.keysOf(ids, effort)
      conditions.push({ scan: blockwise(listed(keys), scanning), count: keys.length / rowKeyBytes })
    }
    for (const { name, values, match } of tags) {
      if (match === 'is') conditions.push(conditionOf(source.tagged(name, values, effort), scanning))
      if (match !== 'starts') continue
      const found = source.starting(name, values, gathered.looks, effort)
      if (typeof found === 'function') filters.push((key) => found(read(key)))
      else conditions.push(conditionOf(found, scanning))
    }
    if (recipients !== undefined) {
      conditions.push(conditionOf(source.listed('recipient', recipients, effort), scanning))
    }
    if (owners !== undefined) conditions.push(conditionOf(source.listed('owner', owners, effort), scanning))
    if (bundledIn === null) {
      conditions.push({
        scan: blockwise(source.transactions(effort), scanning),
        holds: (row) => !row.isItem,
      })
    } else if (bundledIn !== undefined) {
      conditions.push(conditionOf(source.listed('bundle', bundledIn, effort), scanning))
    }
    const { minSeen = 0, maxSeen = Number.POSITIVE_INFINITY } = wanted
    if (wanted.minSeen !== undefined || wanted.maxSeen !== undefined) {
      filters.push((key) => {
        const { seenSeconds } = read(key)
        return seenSeconds >= minSeen && seenSeconds <= maxSeen
      })
    }
    const { isGone } = source
    if (isGone !== undefined) filters.unshift((key) => !isGone(key))
    return gathered
  }
}

function blockwise<R>(blocks: Blocks, { backwards }: Scanning<R>): Scan {
  return new BlockScan(blocks, backwards)
}

function any<R>(lists: readonly OpenList[], { backwards }: Scanning<R>): Scan {
  const scans = lists.map((open) => open(backwards))
  const [only] = scans
  return only !== undefined && scans.length === 1 ? only : new UnionScan(scans, backwards)
}

/** The condition that a row has one of some words. */
function conditionOf<R>({ lists, holds, count }: WordRows<R>, scanning: Scanning<R>): Condition<R> {
  const scan = any(lists, scanning)
  return count === undefined ? { scan, holds } : { scan, holds, count }
}

function countOf<R>({ count = Number.POSITIVE_INFINITY }: Condition<R>): number {
  return Math.min(count, Number.MAX_SAFE_INTEGER)
}

/** First and last key that the heights of a selection allow, in chain order. */
export function boundsOf(wanted: Selection): { first: Buffer; last: Buffer } {
  const bounded = wanted.minHeight !== undefined || wanted.maxHeight !== undefined
  const max = Math.min(wanted.maxHeight ?? pendingStart, pendingStart - 1)
  const min = Math.max(wanted.minHeight ?? 0, (wanted.aboveHeight ?? -1) + 1)
  return {
    first: heightStart(Math.min(min, pendingStart - 1)),
    last: heightEnd(bounded ? Math.max(max, 0) : pendingHeight),
  }
}
