import { type Dictionary, type WordKind, wordKind } from './dictionary.js'
import type { Effort } from './effort.js'
import { findRow } from './ids.js'
import {
  blockAtOrBefore,
  blockAtOrBehind,
  type PostingKind,
  postingKind,
  postingPrefix,
  transactionsPrefix,
} from './postings.js'
import type { StoredRow } from './row.js'
import { compareRowKeys, rowKeyBytes } from './row-key.js'
import type { Looks, OpenList, RowRole, RowSource, WordRows } from './row-source.js'
import { BlockScan, type Blocks } from './scan.js'
import type { LiveTables } from './table-sets.js'
import { TagStarts } from './tag-starts.js'

/** What a look-up of a word or id costs: LMDB, and the runs. */
const lookUpSteps = 3
/** Row keys that are read in one step where they stand beside each other. */
const keysPerStep = 16
/** Tags of rows that are looked at in one step: most are at hand. */
const tagsPerStep = 4

const kinds: Readonly<Record<RowRole, { readonly word: WordKind; readonly posting: PostingKind }>> = {
  owner: { word: wordKind.address, posting: postingKind.owner },
  recipient: { word: wordKind.address, posting: postingKind.recipient },
  bundle: { word: wordKind.bundle, posting: postingKind.bundle },
}
/** Number of the word that a row has in a role; no word has the number 0. */
const wordOf: Readonly<Record<RowRole, (row: StoredRow) => number>> = {
  owner: (row) => row.owner,
  recipient: (row) => row.recipient,
  bundle: (row) => row.place?.parent ?? 0,
}

/** The rows of one set of tables, straight from the memory map, also those that do not count. Any thread. */
export class TableSource implements RowSource<StoredRow> {
  /** A block of a list is looked up in LMDB, as a row is. */
  readonly areListsNear = false
  constructor(
    private readonly live: LiveTables,
    private readonly dictionary: Dictionary,
  ) {}

  listed(role: RowRole, words: readonly Uint8Array[], effort: Effort): WordRows<StoredRow> {
    const { word, posting } = kinds[role]
    const numbers = known(
      words.map((bytes) => {
        effort.lookUp(lookUpSteps)
        return this.dictionary.number(word, bytes)
      }),
    )
    const lists = [...numbers].map((number) => this.#opened(postingPrefix(posting, number), effort))
    return { lists, holds: (row) => numbers.has(wordOf[role](row)) }
  }

  tagged(name: Uint8Array, values: readonly Uint8Array[], effort: Effort): WordRows<StoredRow> {
    const numbers = values.map((value) => {
      effort.lookUp(lookUpSteps)
      return this.dictionary.tag(name, value)
    })
    return this.#tagged(known(numbers), effort)
  }

  #tagged(numbers: ReadonlySet<number>, effort: Effort): WordRows<StoredRow> {
    const lists = [...numbers].map((tag) => this.#opened(postingPrefix(postingKind.tag, tag), effort))
    return { lists, holds: ({ tags }) => tags.some((tag) => numbers.has(tag)) }
  }

  /** Reads the tags' lists where they are few, else the tags of each row. */
  starting(
    name: Uint8Array,
    values: readonly Uint8Array[],
    looks: Looks,
    effort: Effort,
  ): WordRows<StoredRow> | ((row: StoredRow) => boolean) {
    const starts = new TagStarts(this.live.tables, this.dictionary, name, values)
    const before = looks.left
    const found = effort.spent ? undefined : starts.numbers(looks)
    effort.charge(lookUpSteps + (before - looks.left) / keysPerStep)
    if (found !== undefined) return this.#tagged(new Set(found), effort)
    return ({ tags }) => {
      effort.charge(tags.length / tagsPerStep)
      return tags.some((tag) => starts.has(tag))
    }
  }

  /** The rows with these ids, in chain order. */
  keysOf(ids: readonly Uint8Array[], effort: Effort): Buffer {
    const { tables, span } = this.live
    const keys = ids.flatMap((id) => {
      effort.lookUp(lookUpSteps)
      const found = findRow(tables, tables.runs.ids, id, span)
      return found === undefined ? [] : [found.key]
    })
    keys.sort((one, other) => compareRowKeys(one, 0, other, 0))
    return Buffer.concat(keys.filter((key, at) => at === 0 || !key.equals(keys[at - 1] as Buffer)))
  }

  transactions(effort: Effort): Blocks {
    return this.#postings(transactionsPrefix, effort)
  }

  #opened(prefix: number, effort: Effort): OpenList {
    const postings = this.#postings(prefix, effort)
    return (backwards) => new BlockScan(postings, backwards)
  }

  #postings(prefix: number, effort: Effort): Blocks {
    const table = this.live.tables.postings
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

  all(effort: Effort, limit: number): Blocks {
    const table = this.live.tables.rows
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

function known(numbers: readonly (number | undefined)[]): Set<number> {
  return new Set(numbers.flatMap((number) => (number === undefined ? [] : [number])))
}
