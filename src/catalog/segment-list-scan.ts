import type { RowListReader } from '../index/row-list.js'
import type { Effort } from './effort.js'
import { localKey, localRow, rowFrom } from './local-key.js'
import type { Scan } from './scan.js'

/**
 * The rows of one list of a segment, as `BlockScan` reads lists of keys: each block that is read is charged. It compares numbers
 * of rows, and makes a key only of a row where somebody asks for it.
 */
export class SegmentListScan implements Scan {
  /** Where it stands; below zero: in front of the first, or at its end. */
  #row = -1
  #at = 0
  #key: Buffer | undefined
  #isOver = false

  constructor(
    private readonly list: RowListReader,
    private readonly backwards: boolean,
    private readonly effort: Effort,
  ) {}

  get row(): Buffer | undefined {
    if (this.#row < 0) return undefined
    this.#key ??= localKey(this.#row)
    return this.#key
  }

  seek(target: Uint8Array): void {
    if (this.#isOver) return
    const row = rowFrom(target, this.backwards)
    if (this.#hasReached(row)) return
    if (this.#holds(row) || this.#load(row)) this.#standAt(row)
  }

  isNear(target: Uint8Array): boolean {
    const row = rowFrom(target, this.backwards)
    return this.#row < 0 || this.#hasReached(row) || this.#holds(row)
  }

  next(): void {
    const at = this.#at + (this.backwards ? -1 : 1)
    if (at >= 0 && at < this.list.filled) this.#stand(at)
    else this.#nextBlock()
  }

  /** Numbers of this row and of those behind it in the same block, so many at most. */
  coming(limit: number): Uint32Array {
    if (this.#row < 0) return new Uint32Array(0)
    const [from, to] = this.backwards
      ? [Math.max(0, this.#at + 1 - limit), this.#at + 1]
      : [this.#at, Math.min(this.list.filled, this.#at + limit)]
    return this.list.rows.slice(from, to)
  }

  /** Counts this row and those behind it in the same block that do not pass `end` (inclusive), and goes on behind them. */
  countBlock(end: Uint8Array): number {
    const last = localRow(end)
    if (this.#row < 0 || (this.#row !== last && this.#hasReached(last))) {
      this.#end()
      return 0
    }
    const at = this.#lowerBound(last)
    const isThere = at < this.list.filled && this.list.rows[at] === last
    const count = this.backwards ? this.#at - at + 1 : at - this.#at + (isThere ? 1 : 0)
    this.#nextBlock()
    return count
  }

  #hasReached(row: number): boolean {
    return this.#row >= 0 && (this.backwards ? this.#row <= row : this.#row >= row)
  }

  /** Whether the block has a row at or behind this one. */
  #holds(row: number): boolean {
    const { rows, block, filled } = this.list
    if (block < 0) return false
    return this.backwards ? (rows[0] as number) <= row : (rows[filled - 1] as number) >= row
  }

  /** Reads the block that has the first row at or behind this one; false where there is none. */
  #load(row: number): boolean {
    const { list } = this
    this.effort.charge()
    const block = list.blockOf(row)
    list.load(block)
    if (this.#holds(row)) return true
    if (this.backwards || block + 1 >= list.blockCount) {
      this.#end()
      return false
    }
    list.load(block + 1)
    return true
  }

  #nextBlock(): void {
    const { list, backwards } = this
    const block = list.block + (backwards ? -1 : 1)
    this.effort.charge()
    if (block < 0 || block >= list.blockCount) {
      this.#end()
      return
    }
    list.load(block)
    this.#stand(backwards ? list.filled - 1 : 0)
  }

  #lowerBound(row: number): number {
    const { rows, filled } = this.list
    let [low, high] = [0, filled]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((rows[middle] as number) < row) low = middle + 1
      else high = middle
    }
    return low
  }

  #standAt(row: number): void {
    const at = this.#lowerBound(row)
    const isThere = at < this.list.filled && this.list.rows[at] === row
    this.#stand(this.backwards && !isThere ? at - 1 : at)
  }

  #stand(at: number): void {
    this.#at = at
    this.#row = this.list.rows[at] as number
    this.#key = undefined
  }

  #end(): void {
    this.#row = -1
    this.#key = undefined
    this.#isOver = true
  }
}
