import { type Dictionary, type WordKind, wordKind } from './dictionary.js'
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
import {
  compareRowKeys,
  heightEnd,
  heightStart,
  pendingHeight,
  pendingStart,
  rowKeyBytes,
} from './row-key.js'
import { BlockScan, type Blocks, listed, type Scan, UnionScan } from './scan.js'
import { type Looks, TagStarts } from './tag-starts.js'

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
  /** Charged with every look-up. */
  readonly effort: Effort
  /** Nothing behind this key is wanted. */
  readonly end: Uint8Array
  /** So many rows are needed at least, where every row is wanted. */
  readonly ahead?: number
  /** Reads the row with a key, and charges for it. */
  readonly read: ReadRow
  /** The rows that are found are not read: the lists are asked and not the rows, where both can tell. */
  readonly listsOnly?: boolean
}

/** What a look-up of a word or id costs: LMDB, and the runs. */
const lookUpSteps = 3
/** Row keys that are read in one step where they stand beside each other. */
const keysPerStep = 16
/** Tags of rows that are looked at in one step: most are at hand. */
const tagsPerStep = 4
/**
 * Tags that all prefixes of a selection together may stand for. Where there are more, the tags of each row are looked at
 * instead of the tags' lists: that finds the same rows.
 */
const startsMax = 2000
/** Rows read ahead at most where every row is wanted. */
const rowsAheadMax = 128

/** What is gathered of a selection before it becomes a scan. */
interface Gathered {
  /** Tags that prefixes may still stand for. */
  readonly looks: Looks
  readonly conditions: Condition[]
  readonly filters: ((key: Buffer) => boolean)[]
}

/**
 * Builds the scans for selections. Any thread; everything happens on the calling thread, straight from the
 * memory map.
 */
export class Selector {
  constructor(
    private readonly tables: IndexTables,
    private readonly dictionary: Dictionary,
  ) {}

  /** The scan of all rows of `wanted`, not yet at its first row. */
  scan(wanted: Selection, scanning: Scanning): Scan {
    const { backwards, effort, end, ahead = rowsAheadMax, read, listsOnly = false } = scanning
    const { conditions, filters } = this.#gather(wanted, scanning)
    const isNot = (wanted.tags ?? []).filter(({ match }) => match === 'isNot')
    const without = isNot.map((tag) => this.#tagged(tag, scanning))
    if (conditions.length === 0) {
      const all = this.#allRows(effort, Math.min(ahead, rowsAheadMax))
      conditions.push({ scan: new BlockScan(all, backwards) })
    }
    const [only] = conditions
    const isPlain = conditions.length === 1 && without.length === 0 && filters.length === 0
    if (isPlain && only !== undefined) return only.scan
    const asked = { conditions, without, filters, backwards, end, effort }
    return new LeapScan(listsOnly ? asked : { ...asked, read })
  }

  #gather(wanted: Selection, scanning: Scanning): Gathered {
    const { tags = [], recipients, owners, bundledIn, ids } = wanted
    const { effort, read } = scanning
    const gathered: Gathered = { looks: { left: startsMax }, conditions: [], filters: [] }
    const { conditions } = gathered
    if (ids !== undefined) conditions.push({ scan: this.#any([listed(this.#keysOf(ids, effort))], scanning) })
    for (const tag of tags) {
      if (tag.match === 'is') conditions.push(this.#tagged(tag, scanning))
      else if (tag.match === 'starts') this.#starting(tag, scanning, gathered)
    }
    if (recipients !== undefined) {
      const found = this.#numbers(wordKind.address, recipients, effort)
      const holds = (row: Row, set: ReadonlySet<number>): boolean => set.has(row.recipient)
      conditions.push(this.#listed(postingKind.recipient, found, scanning, holds))
    }
    if (owners !== undefined) {
      const found = this.#numbers(wordKind.address, owners, effort)
      conditions.push(this.#listed(postingKind.owner, found, scanning, (row, set) => set.has(row.owner)))
    }
    if (bundledIn === null) {
      const scan = this.#any([this.#postings(transactionsPrefix, effort)], scanning)
      conditions.push({ scan, holds: (row) => !row.isItem })
    } else if (bundledIn !== undefined) {
      const found = this.#numbers(wordKind.bundle, bundledIn, effort)
      const holds = ({ place }: Row, set: ReadonlySet<number>): boolean =>
        place !== undefined && set.has(place.parent)
      conditions.push(this.#listed(postingKind.bundle, found, scanning, holds))
    }
    const { minSeen = 0, maxSeen = Number.POSITIVE_INFINITY } = wanted
    if (wanted.minSeen !== undefined || wanted.maxSeen !== undefined) {
      gathered.filters.push((key) => {
        const { seenSeconds } = read(key)
        return seenSeconds >= minSeen && seenSeconds <= maxSeen
      })
    }
    return gathered
  }

  #any(lists: readonly Blocks[], { backwards }: Scanning): Scan {
    const scans = lists.map((list) => new BlockScan(list, backwards))
    const [only] = scans
    return only !== undefined && scans.length === 1 ? only : new UnionScan(scans, backwards)
  }

  /** The condition that a row is in one of the lists of `found`. */
  #listed(
    kind: PostingKind,
    found: readonly (number | undefined)[],
    scanning: Scanning,
    holds: (row: Row, numbers: ReadonlySet<number>) => boolean,
  ): Condition {
    const numbers = new Set(found.flatMap((number) => (number === undefined ? [] : [number])))
    const lists = [...numbers].map((number) => this.#postings(postingPrefix(kind, number), scanning.effort))
    return { scan: this.#any(lists, scanning), holds: (row) => holds(row, numbers) }
  }

  #numbers(kind: WordKind, words: readonly Uint8Array[], effort: Effort): (number | undefined)[] {
    effort.charge(words.length * lookUpSteps)
    return words.map((word) => this.dictionary.number(kind, word))
  }

  /** The condition that a row has one of these tags. */
  #tagged(tag: TagSelection, scanning: Scanning): Condition {
    scanning.effort.charge(tag.values.length * lookUpSteps)
    const found = tag.values.map((value) => this.dictionary.tag(tag.name, value))
    return this.#tagList(found, scanning)
  }

  #tagList(found: readonly (number | undefined)[], scanning: Scanning): Condition {
    return this.#listed(postingKind.tag, found, scanning, ({ tags }, set) => tags.some((tag) => set.has(tag)))
  }

  /** Tags with these starts: by their lists where they are few, else by a look at the tags of each row. */
  #starting({ name, values }: TagSelection, scanning: Scanning, gathered: Gathered): void {
    const { effort, read } = scanning
    const { looks } = gathered
    const starts = new TagStarts(this.tables, this.dictionary, name, values)
    const before = looks.left
    const found = effort.spent ? undefined : starts.numbers(looks)
    effort.charge(lookUpSteps + (before - looks.left) / keysPerStep)
    if (found !== undefined) {
      gathered.conditions.push(this.#tagList(found, scanning))
      return
    }
    gathered.filters.push((key) => {
      const { tags } = read(key)
      effort.charge(tags.length / tagsPerStep)
      return tags.some((tag) => starts.has(tag))
    })
  }

  /** The rows with these ids, in chain order. */
  #keysOf(ids: readonly Uint8Array[], effort: Effort): Buffer {
    effort.charge(ids.length * lookUpSteps)
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
        effort.charge()
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
        const keys = [...table.keys({ start: row, backwards, limit })]
        effort.charge(1 + keys.length / keysPerStep)
        if (backwards) keys.reverse()
        return keys.length === 0 ? undefined : Buffer.concat(keys)
      },
    }
  }
}

/** First and last key that the heights of a selection allow, in chain order. */
export function boundsOf(wanted: Selection): { first: Buffer; last: Buffer } {
  const bounded = wanted.minHeight !== undefined || wanted.maxHeight !== undefined
  const max = Math.min(wanted.maxHeight ?? pendingStart, pendingStart - 1)
  return {
    first: heightStart(Math.min(wanted.minHeight ?? 0, pendingStart - 1)),
    last: heightEnd(bounded ? Math.max(max, 0) : pendingHeight),
  }
}
