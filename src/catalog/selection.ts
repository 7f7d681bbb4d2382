import type { Effort } from './effort.js'
import { findRow } from './ids.js'
import type { IndexTables } from './index-tables.js'
import { type Condition, LeapScan, type ReadRow } from './leap.js'
import {
  blockAtOrBefore,
  blockAtOrBehind,
  type PostingKind,
  postingKind,
  postingPrefix,
  transactionsPrefix,
} from './postings.js'
import type { Row } from './row.js'
import { compareRowKeys, heightEnd, heightStart, pendingHeight, rowKeyBytes } from './row-key.js'
import { BlockScan, type Blocks, listed, type Scan, UnionScan } from './scan.js'
import { type WordKind, type Words, wordKind } from './words.js'

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
export interface Scanning {
  readonly backwards: boolean
  readonly effort: Effort
  /** Is told where the answer cannot be whole. */
  readonly cut: () => void
  /** So many rows are needed at least, where every row is wanted. */
  readonly ahead?: number
  /** Where the rows that are found are read too. */
  readonly read?: ReadRow
}

/**
 * Tags that one prefix may stand for. Where there are more, the rest is not looked at and the answer is
 * partial.
 */
const startsMax = 2000
/** Rows read ahead at most where every row is wanted. */
const rowsAheadMax = 128

/**
 * Builds the scans for selections. Any thread; everything happens on the calling thread, straight from the
 * memory map.
 */
export class Selector {
  constructor(
    private readonly tables: IndexTables,
    private readonly words: Words,
  ) {}

  /**
   * The scan of all rows of `wanted`, not yet at its first row.
   */
  scan(wanted: Selection, { backwards, effort, cut, ahead = rowsAheadMax, read }: Scanning): Scan {
    const { tags = [], recipients, owners, bundledIn } = wanted
    const conditions: Condition[] = []
    const any = (lists: readonly Blocks[]): Scan => {
      const [only, ...others] = lists
      if (only !== undefined && others.length === 0) return new BlockScan(only, backwards)
      const scans = lists.map((list) => new BlockScan(list, backwards))
      return new UnionScan(scans, backwards)
    }
    const of = (
      kind: PostingKind,
      found: readonly (number | undefined)[],
      holds: (row: Row, numbers: ReadonlySet<number>) => boolean,
    ): Condition => {
      const numbers = new Set(found.flatMap((number) => (number === undefined ? [] : [number])))
      const lists = [...numbers].map((number) => this.#postings(postingPrefix(kind, number), effort))
      return { scan: any(lists), holds: (row) => holds(row, numbers) }
    }
    const numbers = (kind: WordKind, words: readonly Uint8Array[]) =>
      words.map((word) => this.words.number(kind, word))
    const tagged = (tag: TagSelection): Condition =>
      of(postingKind.tag, this.#tagNumbers(tag, cut), (row, set) => row.tags.some((one) => set.has(one)))

    if (wanted.ids !== undefined) conditions.push({ scan: any([listed(this.#keysOf(wanted.ids))]) })
    for (const tag of tags) if (tag.match !== 'isNot') conditions.push(tagged(tag))
    if (recipients !== undefined) {
      const found = numbers(wordKind.address, recipients)
      conditions.push(of(postingKind.recipient, found, (row, set) => set.has(row.recipient)))
    }
    if (owners !== undefined) {
      const found = numbers(wordKind.address, owners)
      conditions.push(of(postingKind.owner, found, (row, set) => set.has(row.owner)))
    }
    if (bundledIn === null) {
      const scan = any([this.#postings(transactionsPrefix, effort)])
      conditions.push({ scan, holds: (row) => !row.isItem })
    } else if (bundledIn !== undefined) {
      const found = numbers(wordKind.bundle, bundledIn)
      const holds = ({ place }: Row, set: ReadonlySet<number>): boolean =>
        place !== undefined && set.has(place.parent)
      conditions.push(of(postingKind.bundle, found, holds))
    }
    const without = tags.flatMap((tag) => (tag.match === 'isNot' ? [tagged(tag)] : []))
    if (conditions.length === 0) {
      conditions.push({ scan: any([this.#allRows(effort, Math.min(ahead, rowsAheadMax))]) })
    }
    const [only] = conditions
    return conditions.length === 1 && without.length === 0 && only !== undefined
      ? only.scan
      : new LeapScan(conditions, without, backwards, read)
  }

  #tagNumbers(tag: TagSelection, cut: () => void): (number | undefined)[] {
    if (tag.match !== 'starts') return tag.values.map((value) => this.words.tag(tag.name, value))
    const found = tag.values.flatMap((value) => this.words.tagsWith(tag.name, value, startsMax + 1, cut))
    if (found.length > startsMax) cut()
    return found.slice(0, startsMax)
  }

  /** The rows with these ids, in chain order. */
  #keysOf(ids: readonly Uint8Array[]): Buffer {
    const keys = ids.flatMap((id) => {
      const found = findRow(this.tables, this.tables.runs.ids, id)
      return found === undefined ? [] : [found.key]
    })
    keys.sort((one, other) => compareRowKeys(one, 0, other, 0))
    return Buffer.concat(keys.filter((key, at) => at === 0 || !key.equals(keys[at - 1] as Buffer)))
  }

  #postings(prefix: number, effort: Effort): Blocks {
    const table = this.tables.postings
    return {
      from(row, backwards) {
        if (!effort.step()) return undefined
        const before = blockAtOrBefore(table, prefix, row)
        if (backwards) return before?.rows
        const reaches =
          before !== undefined && compareRowKeys(before.rows, before.rows.length - rowKeyBytes, row, 0) >= 0
        return reaches ? before.rows : blockAtOrBehind(table, prefix, row)?.rows
      },
    }
  }

  #allRows(effort: Effort, limit: number): Blocks {
    const table = this.tables.rows
    return {
      from(row, backwards) {
        if (!effort.step()) return undefined
        const keys = [...table.keys({ start: row, backwards, limit })]
        if (backwards) keys.reverse()
        return keys.length === 0 ? undefined : Buffer.concat(keys)
      },
    }
  }
}

/** First and last key that the heights of a selection allow, in chain order. */
export function boundsOf(wanted: Selection): { first: Buffer; last: Buffer } {
  const bounded = wanted.minHeight !== undefined || wanted.maxHeight !== undefined
  const max = Math.min(wanted.maxHeight ?? pendingHeight, pendingHeight - 1)
  return {
    first: heightStart(Math.min(wanted.minHeight ?? 0, pendingHeight - 1)),
    last: heightEnd(bounded ? Math.max(max, 0) : pendingHeight),
  }
}
