import type { Table } from '../store/lmdb.js'
import { type PostingList, PostingLists } from './posting-lists.js'
import { PostingTails } from './posting-tails.js'
import {
  blockAtOrBefore,
  blockAtOrBehind,
  blockKey,
  blockMax,
  type PostingBlock,
  prefixBytes,
  prefixOf,
} from './postings.js'
import { compareRowKeys, rowKeyBytes } from './row-key.js'
import { lowerBound } from './scan.js'

const lastRow = Buffer.alloc(rowKeyBytes, 0xff)

/** Collects changes and writes them block by block: only the keeper, inside its transaction. */
export class PostingWriter {
  readonly #added = new PostingLists()
  readonly #removed = new PostingLists()
  readonly #tails = new PostingTails()
  readonly #key = Buffer.allocUnsafeSlow(prefixBytes + rowKeyBytes)
  /** A last block and the rows that come behind it. */
  #rows = Buffer.allocUnsafeSlow(4 * blockMax * rowKeyBytes)

  constructor(private readonly table: Table) {}

  /** Whether what was collected since is written: lists are to be requested again. */
  get round(): number {
    return this.#added.round
  }

  /** The list of a prefix, to add rows to. `isFresh`: its word is new, so nothing need be looked up for it. */
  list(prefix: number, isFresh: boolean): PostingList {
    return this.#added.list(prefix, isFresh)
  }

  /** Keeps a row key for `add`. */
  key(row: Uint8Array): number {
    if (!this.#removed.isEmpty) this.flush()
    return this.#added.key(row)
  }

  /** Adds the row whose key was kept at `key`. */
  add(list: PostingList, key: number): void {
    list.rows.push(key)
  }

  remove(prefix: number, row: Uint8Array): void {
    if (!this.#added.isEmpty) this.flush()
    this.#removed.list(prefix).rows.push(this.#removed.key(row))
  }

  /** Writes everything that was collected. */
  flush(): void {
    for (const list of this.#added.inOrder()) if (list.rows.length > 0) this.#insert(list)
    for (const list of this.#removed.inOrder()) {
      const rows = Buffer.allocUnsafe(list.rows.length * rowKeyBytes)
      this.#delete(list.prefix, rows.subarray(0, this.#removed.copy(list, rows) * rowKeyBytes))
    }
    this.#added.clear()
    this.#removed.clear()
  }

  /** Forgets where lists end: they are found anew. */
  forget(): void {
    this.#tails.clear()
  }

  /** Drops all lists. */
  clear(): void {
    this.#added.clear()
    this.#removed.clear()
    this.#tails.clear()
    this.table.clear()
  }

  #insert(list: PostingList): void {
    const { prefix } = list
    const room = (blockMax + list.rows.length) * rowKeyBytes
    if (room > this.#rows.length) this.#rows = Buffer.allocUnsafeSlow(room * 2)
    const before = list.isFresh ? 0 : this.#readTail(prefix)
    const rows = this.#rows
    const count = this.#added.copy(list, rows.subarray(before * rowKeyBytes))
    const isBehind =
      before === 0 || compareRowKeys(rows, (before - 1) * rowKeyBytes, rows, before * rowKeyBytes) < 0
    // Most rows are newer than all others of their prefix.
    if (isBehind) this.#append(prefix, before, before + count)
    else {
      const behind = rows.subarray(before * rowKeyBytes, (before + count) * rowKeyBytes)
      this.#insertBetween(prefix, Buffer.from(behind))
    }
  }

  /** Copies the rows of the last block to the start of `#rows`: how many. */
  #readTail(prefix: number): number {
    if (this.#tails.read(prefix, this.#rows, 0)) {
      const value = this.table.view(this.#keyAt(prefix, 0))
      if (value === undefined) throw new Error('the last block of a list is not where it was written')
      this.#rows.set(value, rowKeyBytes)
      return 1 + value.length / rowKeyBytes
    }
    const last = blockAtOrBefore(this.table, prefix, lastRow)
    this.#rows.set(last?.rows ?? lastRow.subarray(0, 0))
    return (last?.rows.length ?? 0) / rowKeyBytes
  }

  /** Writes the `count` rows in `#rows` in full blocks: `before` of the last block, then those that are new. */
  #append(prefix: number, before: number, count: number): void {
    const isFull = before === blockMax && count > blockMax
    for (let from = isFull ? blockMax : 0; from < count; from += blockMax) {
      const end = Math.min(from + blockMax, count) * rowKeyBytes
      this.table.put(this.#keyAt(prefix, from), this.#rows.subarray((from + 1) * rowKeyBytes, end))
      if (end === count * rowKeyBytes) this.#tails.set(prefix, this.#rows, from * rowKeyBytes)
    }
  }

  /** The key of a block that begins with this row of `#rows`; valid until the next one. */
  #keyAt(prefix: number, row: number): Buffer {
    this.#key.writeUIntBE(prefix, 0, prefixBytes)
    const at = row * rowKeyBytes
    for (let byte = 0; byte < rowKeyBytes; byte += 1) {
      this.#key[prefixBytes + byte] = this.#rows[at + byte] as number
    }
    return this.#key
  }

  #insertBetween(prefix: number, rows: Buffer): void {
    this.#tails.forget(prefix)
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
  #nextBlock(prefix: number, block: PostingBlock): Buffer | undefined {
    const next = this.table.ceiling(Buffer.concat([block.key, Buffer.of(0)]))
    return next === undefined || prefixOf(next.key) !== prefix
      ? undefined
      : Buffer.from(next.key.subarray(prefixBytes))
  }

  #replace(prefix: number, block: PostingBlock, added: Buffer): void {
    const rows = union(block.rows, added)
    if (compareRowKeys(rows, 0, block.rows, 0) !== 0) this.table.remove(block.key)
    // A block that grew in its middle is halved; one that grew at its end stays full, for the next rows come
    // behind it.
    const behind = compareRowKeys(block.rows, block.rows.length - rowKeyBytes, added, 0) < 0
    const count = rows.length / rowKeyBytes
    this.#write(prefix, rows, behind || count > 2 * blockMax ? blockMax : Math.ceil(count / 2))
  }

  #delete(prefix: number, rows: Buffer): void {
    this.#tails.forget(prefix)
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

/** Both lists merged, each row once. */
function union(one: Buffer, other: Buffer): Buffer {
  const both = Buffer.concat([one, other])
  const behind = one.length === 0 || compareRowKeys(one, one.length - rowKeyBytes, other, 0) < 0
  return behind ? both : sorted(both)
}

function sorted(rows: Buffer): Buffer {
  const keys: Buffer[] = []
  for (let at = 0; at < rows.length; at += rowKeyBytes) keys.push(rows.subarray(at, at + rowKeyBytes))
  keys.sort((one, other) => compareRowKeys(one, 0, other, 0))
  return Buffer.concat(keys.filter((key, at) => at === 0 || !key.equals(keys[at - 1] as Buffer)))
}
