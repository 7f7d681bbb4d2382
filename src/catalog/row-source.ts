import type { Effort } from './effort.js'
import type { Blocks, Scan } from './scan.js'

/** How many words may still be looked at, for all starts of tags of a selection together. */
export interface Looks {
  left: number
}

/** Opens a list where it is read in one direction. */
export type OpenList = (backwards: boolean) => Scan

/** Rows that have one of some words: their lists, and whether a row is in one, by what it says itself. */
export interface WordRows<R> {
  readonly lists: readonly OpenList[]
  /** Rows of all of them; undefined where that is not known. */
  readonly count?: number
  readonly holds: (row: R) => boolean
}

/** What every kind of row says. */
export interface AnyRow {
  readonly isItem: boolean
  /** Seconds since 1970. */
  readonly seenSeconds: number
}

/** Fields of a row by which rows are found, but for tags. */
export type RowRole = 'owner' | 'recipient' | 'bundle'

/**
 * Where rows of the index are: the tables, or one segment. Its lists have keys of 16 bytes in an order of its own: row keys in
 * the tables, numbers of rows in a segment. Everything that is read is charged.
 */
export interface RowSource<R extends AnyRow> {
  /** Rows that have one of these addresses or bundles (32 bytes). */
  listed(role: RowRole, words: readonly Uint8Array[], effort: Effort): WordRows<R>
  /** Rows that have a tag of this name with one of these values. */
  tagged(name: Uint8Array, values: readonly Uint8Array[], effort: Effort): WordRows<R>
  /**
   * Rows that have a tag of this name whose value begins with one of these; where `looks` ran out, only whether a row has one,
   * which is charged, too.
   */
  starting(
    name: Uint8Array,
    values: readonly Uint8Array[],
    looks: Looks,
    effort: Effort,
  ): WordRows<R> | ((row: R) => boolean)
  /** Transactions of the base layer, without the items. */
  transactions(effort: Effort): Blocks
  /** All rows; so many keys are read at once, at most. */
  all(effort: Effort, limit: number): Blocks
  /** Keys of the rows with these ids (32 bytes), in order, each once. */
  keysOf(ids: readonly Uint8Array[], effort: Effort): Buffer
  /** To look into a list takes a small part of the time of reading a row. */
  readonly areListsNear: boolean
  /** Whether the row with a key is none any more: it is left out. Absent: all are rows. */
  readonly isGone?: (key: Buffer) => boolean
}
