import type { Table } from '../store/lmdb.js'
import { rowKeyBytes } from './row-key.js'

/**
 * Postings: for each prefix (a tag, an owner, ...) the keys of its rows in chain order, cut into blocks. An
 * entry of the table is `prefix (6 bytes), first row key (16)` -> the row keys that follow, 16 bytes each. A
 * block holds at most 126, so that it stays inside one page of LMDB: reading one costs the same as reading a
 * single row key.
 */
export const postingKind = { tag: 1, owner: 2, recipient: 3, bundle: 4, transactions: 5 } as const
export type PostingKind = (typeof postingKind)[keyof typeof postingKind]

export const prefixBytes = 6
/** Row keys of a block at most. */
export const blockMax = 126

/** A prefix as one number: the kind in front of a word's number of 40 bits. */
export function postingPrefix(kind: PostingKind, word: number): number {
  return kind * 2 ** 40 + word
}

/** All transactions of the base layer, without the items. */
export const transactionsPrefix: number = postingPrefix(postingKind.transactions, 0)

/** The table's key for the block of `prefix` that begins with the row key at `at` of `keys`. */
export function blockKey(prefix: number, keys: Uint8Array, at = 0): Buffer {
  const key = Buffer.allocUnsafe(prefixBytes + rowKeyBytes)
  key.writeUIntBE(prefix, 0, prefixBytes)
  key.set(keys.subarray(at, at + rowKeyBytes), prefixBytes)
  return key
}

/** The prefix in a key of the table. */
export function prefixOf(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).readUIntBE(0, prefixBytes)
}

/** The row keys of an entry, one behind the other. */
export function blockRows(key: Uint8Array, value: Uint8Array): Buffer {
  const rows = Buffer.allocUnsafe(rowKeyBytes + value.length)
  rows.set(key.subarray(prefixBytes), 0)
  rows.set(value, rowKeyBytes)
  return rows
}

/** Number of row keys in an entry with this value. */
export function blockCount(value: Uint8Array): number {
  return 1 + value.length / rowKeyBytes
}

/** The block in which `row` is or would be: the last that begins at or before it. */
export function blockAtOrBefore(table: Table, prefix: number, row: Uint8Array): PostingBlock | undefined {
  return blockOf(table.floor(blockKey(prefix, row)), prefix)
}

/** The first block that begins at or behind `row`. */
export function blockAtOrBehind(table: Table, prefix: number, row: Uint8Array): PostingBlock | undefined {
  return blockOf(table.ceiling(blockKey(prefix, row)), prefix)
}

export interface PostingBlock {
  readonly key: Uint8Array
  /** Row keys, one behind the other. */
  readonly rows: Buffer
}

function blockOf(
  entry: { key: Uint8Array; value: Uint8Array } | undefined,
  prefix: number,
): PostingBlock | undefined {
  if (entry === undefined || prefixOf(entry.key) !== prefix) return undefined
  return { key: entry.key, rows: blockRows(entry.key, entry.value) }
}
