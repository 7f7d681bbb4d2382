import type { Table } from '../store/lmdb.js'
import { compareRowKeys, rowKeyBytes } from './row-key.js'
import { lowerBound } from './scan.js'

/**
 * Postings: for each prefix (a tag, an owner, ...) the keys of its rows in chain order, cut into blocks. An
 * entry of the table is `prefix (6 bytes), first row key (16)` -> the row keys that follow, 16 bytes each. A
 * block holds at most 126, so that it stays inside one page of LMDB: reading one costs the same as reading a
 * single row key.
 */
export const postingKind = { tag: 1, owner: 2, recipient: 3, bundle: 4, transactions: 5 } as const
export type PostingKind = (typeof postingKind)[keyof typeof postingKind]

const prefixBytes = 6
const blockMax = 126

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
export function blockAtOrBefore(table: Table, prefix: number, row: Uint8Array): Block | undefined {
  return blockOf(table.floor(blockKey(prefix, row)), prefix)
}

/** The first block that begins at or behind `row`. */
export function blockAtOrBehind(table: Table, prefix: number, row: Uint8Array): Block | undefined {
  return blockOf(table.ceiling(blockKey(prefix, row)), prefix)
}

export interface Block {
  readonly key: Uint8Array
  /** Row keys, one behind the other. */
  readonly rows: Buffer
}

function blockOf(
  entry: { key: Uint8Array; value: Uint8Array } | undefined,
  prefix: number,
): Block | undefined {
  if (entry === undefined || prefixOf(entry.key) !== prefix) return undefined
  return { key: entry.key, rows: blockRows(entry.key, entry.value) }
}

const lastRow = Buffer.alloc(rowKeyBytes, 0xff)

/** Collects changes and writes them block by block: only the keeper, inside its transaction. */
export class PostingWriter {
  readonly #added = new Prefixes<RowList>()
  readonly #removed = new Prefixes<RowList>()
  /** Prefixes that have no block yet. */
  readonly #fresh = new Prefixes<true>()

  constructor(private readonly table: Table) {}

  /** Says that a prefix is new, so that nothing need be looked up for it. */
  fresh(prefix: number): void {
    this.#fresh.set(prefix, true)
  }

  add(prefix: number, row: Buffer): void {
    if (this.#removed.size > 0) this.flush()
    const rows = this.#added.get(prefix)
    if (rows === undefined) this.#added.set(prefix, new RowList(row))
    else rows.push(row)
  }

  remove(prefix: number, row: Buffer): void {
    if (this.#added.size > 0) this.flush()
    const rows = this.#removed.get(prefix)
    if (rows === undefined) this.#removed.set(prefix, new RowList(row))
    else rows.push(row)
  }

  /** Writes everything that was collected. */
  flush(): void {
    for (const [prefix, rows] of this.#added.inOrder()) this.#insert(prefix, rows.sorted())
    for (const [prefix, rows] of this.#removed.inOrder()) this.#delete(prefix, rows.sorted())
    this.#added.clear()
    this.#removed.clear()
    this.#fresh.clear()
  }

  #insert(prefix: number, rows: Buffer): void {
    const last = this.#fresh.get(prefix) === true ? undefined : blockAtOrBefore(this.table, prefix, lastRow)
    if (last === undefined) this.#write(prefix, rows)
    // Most rows are newer than all others of their prefix.
    else if (compareRowKeys(last.rows, 0, rows, 0) <= 0) this.#replace(prefix, last, rows)
    else this.#insertBetween(prefix, rows)
  }

  #insertBetween(prefix: number, rows: Buffer): void {
    let at = 0
    while (at < rows.length) {
      const row = rows.subarray(at, at + rowKeyBytes)
      const block = blockAtOrBefore(this.table, prefix, row) ?? blockAtOrBehind(this.table, prefix, row)
      const next = block === undefined ? undefined : this.#nextBlock(prefix, block)
      const count = next === undefined ? rows.length / rowKeyBytes : lowerBound(rows, next)
      // At least this row: where it comes before the first block, it belongs to the first block.
      const end = Math.max(at + rowKeyBytes, count * rowKeyBytes)
      const part = rows.subarray(at, end)
      if (block === undefined) this.#write(prefix, part)
      else this.#replace(prefix, block, part)
      at = end
    }
  }

  /** First row keys of the block behind this one. */
  #nextBlock(prefix: number, block: Block): Buffer | undefined {
    const past = Buffer.concat([block.key, Buffer.of(0)])
    return blockOf(this.table.ceiling(past), prefix)?.rows
  }

  #replace(prefix: number, block: Block, added: Buffer): void {
    const rows = union(block.rows, added)
    if (compareRowKeys(rows, 0, block.rows, 0) !== 0) this.table.remove(block.key)
    // A block that grew in its middle is halved; one that grew at its end stays full, for the next rows come
    // behind it.
    const behind = compareRowKeys(block.rows, block.rows.length - rowKeyBytes, added, 0) < 0
    const count = rows.length / rowKeyBytes
    this.#write(prefix, rows, behind || count > 2 * blockMax ? blockMax : Math.ceil(count / 2))
  }

  #delete(prefix: number, rows: Buffer): void {
    let at = 0
    while (at < rows.length) {
      const block = blockAtOrBefore(this.table, prefix, rows.subarray(at, at + rowKeyBytes))
      if (block === undefined) throw new Error('a posting that is to be removed is not there')
      const left = Buffer.allocUnsafe(block.rows.length)
      let size = 0
      for (let from = 0; from < block.rows.length; from += rowKeyBytes) {
        if (at < rows.length && compareRowKeys(block.rows, from, rows, at) === 0) at += rowKeyBytes
        else size += block.rows.copy(left, size, from, from + rowKeyBytes)
      }
      if (size === block.rows.length) throw new Error('a posting that is to be removed is not there')
      if (size === 0 || compareRowKeys(left, 0, block.rows, 0) !== 0) this.table.remove(block.key)
      if (size > 0) this.#write(prefix, left.subarray(0, size))
    }
  }

  /** Writes sorted rows in blocks of `share` rows; what fits into one block stays in one. */
  #write(prefix: number, rows: Buffer, share = blockMax): void {
    const count = rows.length / rowKeyBytes
    const step = count <= blockMax ? blockMax : share
    for (let from = 0; from < count; from += step) {
      const end = Math.min(from + step, count) * rowKeyBytes
      this.table.put(blockKey(prefix, rows, from * rowKeyBytes), rows.subarray((from + 1) * rowKeyBytes, end))
    }
  }
}

const kinds = 8

/** Values by prefix. A map for each kind: small whole numbers are far quicker keys than the whole prefix. */
class Prefixes<Value> {
  readonly #kinds = Array.from({ length: kinds }, () => new Map<number, Value>())
  #size = 0

  get size(): number {
    return this.#size
  }

  get(prefix: number): Value | undefined {
    const kind = Math.floor(prefix / 2 ** 40)
    return this.#kinds[kind]?.get(prefix - kind * 2 ** 40)
  }

  set(prefix: number, value: Value): void {
    const kind = Math.floor(prefix / 2 ** 40)
    this.#kinds[kind]?.set(prefix - kind * 2 ** 40, value)
    this.#size += 1
  }

  *inOrder(): Generator<[prefix: number, value: Value]> {
    for (const [kind, words] of this.#kinds.entries()) {
      const sorted = Float64Array.from(words.keys()).sort()
      for (const word of sorted) yield [kind * 2 ** 40 + word, words.get(word) as Value]
    }
  }

  clear(): void {
    for (const words of this.#kinds) words.clear()
    this.#size = 0
  }
}

/** Row keys that are collected for one prefix, one behind the other. Most lists stay short, most others in order. */
class RowList {
  #bytes: Buffer
  #size = rowKeyBytes

  constructor(row: Buffer) {
    this.#bytes = row
  }

  push(row: Buffer): void {
    if (this.#size + rowKeyBytes > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, rowKeyBytes * 8))
      this.#bytes.copy(larger, 0, 0, this.#size)
      this.#bytes = larger
    }
    this.#bytes.set(row, this.#size)
    this.#size += rowKeyBytes
  }

  /** In chain order, each once. */
  sorted(): Buffer {
    const rows = this.#bytes.subarray(0, this.#size)
    for (let at = rowKeyBytes; at < rows.length; at += rowKeyBytes) {
      if (compareRowKeys(rows, at - rowKeyBytes, rows, at) >= 0) return sorted(rows)
    }
    return rows
  }
}

function sorted(rows: Buffer): Buffer {
  const keys: Buffer[] = []
  for (let at = 0; at < rows.length; at += rowKeyBytes) keys.push(rows.subarray(at, at + rowKeyBytes))
  keys.sort((one, other) => compareRowKeys(one, 0, other, 0))
  return Buffer.concat(
    keys.filter((key, at) => at === 0 || compareRowKeys(key, 0, keys[at - 1] as Buffer, 0) !== 0),
  )
}

/** Both lists merged, each row once. */
function union(one: Buffer, other: Buffer): Buffer {
  const both = Buffer.concat([one, other])
  const behind = one.length === 0 || compareRowKeys(one, one.length - rowKeyBytes, other, 0) < 0
  return behind ? both : sorted(both)
}
