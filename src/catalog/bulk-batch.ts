import { batchRowsMax, idNumber, keyNumbers, RowBatch } from '../index/row-batch.js'
import { rowFlag } from '../index/row-record.js'
import { textsMax } from '../index/word-sort.js'
import { blockIdBytes, decodeBlock, encodeBlock } from './block-record.js'
import { BulkIds } from './bulk-ids.js'
import type { BulkAside } from './bulk-protocol.js'
import type { BlockInput } from './index-protocol.js'
import { rowKeyBytes } from './row-key.js'
import type { Standing } from './row-writer.js'

/**
 * Bytes for which a change of LMDB counts whose key is anywhere among all others: the page that it changes stays in memory until
 * the end of the transaction, and every second one is another page.
 */
const changeBytes = 2048

export interface BulkLimits {
  /** Rows of a segment; 0: all rows go through the tables. */
  readonly rows: number
  /** Bytes of a batch; the memory that it holds is at most three times as much. */
  readonly bytes: number
}

/** Like those of a flush: with a merge beside it the writer has at most 300 MiB. */
export const bulkLimits: BulkLimits = { rows: 250_000, bytes: 64 * 2 ** 20 }

interface HeldBlock {
  readonly id: string
  readonly record: Uint8Array
}

/** What was taken in bulk and is not in the index yet: in memory only. */
export class BulkBatch {
  readonly rows: RowBatch
  readonly ids: BulkIds
  /** Keyed by their heights. */
  readonly blocks = new Map<number, HeldBlock>()
  /** Keyed by where their data ends in the weave. */
  readonly weave = new Map<number, number>()
  /** Ids of rows of the index that give way to rows of the batch. */
  readonly replaced: Buffer[] = []
  /** What else is to be done in the same transaction. */
  readonly asides: BulkAside[] = []
  #changeBytes = 0

  constructor(private readonly limits: BulkLimits) {
    this.rows = new RowBatch(limits)
    this.ids = new BulkIds(this.rows)
  }

  /** Forgets all that was taken. The memory stays, for as much again. */
  clear(): void {
    this.rows.clear()
    this.ids.clear()
    this.blocks.clear()
    this.weave.clear()
    this.replaced.length = 0
    this.asides.length = 0
    this.#changeBytes = 0
  }

  /** Nothing was taken. */
  get isEmpty(): boolean {
    const { rows, blocks, asides } = this
    return rows.count === 0 && blocks.size === 0 && asides.length === 0
  }

  /** Rows that were taken and not dropped. */
  get count(): number {
    return this.rows.count - this.rows.dropped.size
  }

  /** It is to be written. */
  get isFull(): boolean {
    return this.rows.isFull || this.bytes >= this.limits.bytes
  }

  get bytes(): number {
    const replaced = changeBytes * this.replaced.length
    return this.rows.bytes + this.#changeBytes + replaced + 64 * this.weave.size
  }

  /** Whether so many rows and words more find room. */
  hasRoom(rows: number, words: number): boolean {
    return this.rows.count + rows <= batchRowsMax && this.rows.words.count + words <= textsMax
  }

  addBlock(block: BlockInput): void {
    const record = encodeBlock(block)
    this.blocks.set(block.height, { id: block.id, record })
    this.#changeBytes += changeBytes + record.length
  }

  block(height: number): BlockInput | undefined {
    const held = this.blocks.get(height)
    return held === undefined ? undefined : decodeBlock(height, held.record)
  }

  /** Blocks by their heights: id and record. */
  *records(): Generator<{ readonly height: number; readonly id: Uint8Array; readonly record: Uint8Array }> {
    for (const [height, { id, record }] of this.blocks) yield { height, id: blockIdBytes(id), record }
  }

  addAside(request: BulkAside): void {
    this.asides.push(request)
    const isLearn = request.kind === 'learn'
    this.#changeBytes += isLearn
      ? changeBytes * request.attributes.length
      : changeBytes + request.items.length
  }

  /** The key of a row, as `rowKey` makes it. */
  keyOf(row: number): Buffer {
    const key = Buffer.allocUnsafe(rowKeyBytes)
    const at = row * keyNumbers
    const { keys } = this.rows
    key.writeUInt32BE(keys[at] as number, 0)
    key.writeUIntBE(keys[at + 1] as number, 4, 3)
    key.writeUInt32BE(keys[at + idNumber] as number, 7)
    key.writeUInt32BE(keys[at + idNumber + 1] as number, 11)
    key[15] = (keys[at + idNumber + 2] as number) >>> 24
    return key
  }

  heightOf(row: number): number {
    return this.rows.keys[row * keyNumbers] as number
  }

  indexOf(row: number): number {
    return (this.rows.keys[row * keyNumbers + 1] as number) >>> 1
  }

  isItem(row: number): boolean {
    return ((this.rows.flags[row] as number) & rowFlag.place) !== 0
  }

  seenSeconds(row: number): number {
    return this.rows.keys[row * keyNumbers + 2] as number
  }

  standing(row: number): Standing {
    const isUnjudged = ((this.rows.flags[row] as number) & rowFlag.unjudged) !== 0
    const known = { height: this.heightOf(row), place: this.rows.factsOf(row).place }
    return { key: this.keyOf(row), row: isUnjudged ? { ...known, isUnjudged } : known }
  }

  /** Leaves a row out, and gives back its place in the weave. */
  drop(row: number): void {
    const end = this.rows.factsOf(row).transfer?.weaveEnd ?? 0
    if (end > 0 && this.weave.get(end) === row) this.weave.delete(end)
    this.rows.drop(row)
  }

  /** The first 16 bits of the ids of all rows. */
  *shards(): Generator<number> {
    const { keys, count } = this.rows
    for (let row = 0; row < count; row += 1) yield (keys[row * keyNumbers + idNumber] as number) >>> 16
  }
}
