import { DamagedSegment } from '../index/checked-file.js'
import { RowBatch } from '../index/row-batch.js'
import { Segment } from '../index/segment.js'
import type { SegmentKeeper } from '../index/segment-keeper.js'
import { type ListedSegment, segmentPath } from '../index/segment-list.js'
import { type Dictionary, numberOf } from './dictionary.js'
import type { IndexSegments } from './index-segments.js'
import { decodeRow, type Row } from './row.js'
import { compareRowKeys } from './row-key.js'
import type { RowTables } from './row-tables.js'
import { beside } from './scan.js'

/** Bytes of a batch of rows; the memory that it holds is at most three times as much. */
const batchBytes = 64 * 2 ** 20
/** A step of writing takes about as long as reading so many rows: it writes rows, or the words of some. */
const rowsPerStep = 1024
/** Rows, or public keys, that are read at once. */
const readAtOnce = 2048

/** A segment that is written and not listed: rows that were taken out of the tables meanwhile are among its rows. */
interface Written {
  readonly listed: ListedSegment
  readonly segment: Segment
  /** Numbers of these rows. */
  readonly gone: Set<number>
}

/** What a flush needs. */
export interface FlushParts {
  /** The frozen tables. */
  readonly tables: RowTables
  readonly dictionary: Dictionary
  readonly segments: IndexSegments
  readonly keeper: SegmentKeeper
  /** Rows of a segment. */
  readonly segmentRows: number
}

/**
 * Takes rows that do not change any more out of the frozen tables: writes them into segments, some with each step. A segment that
 * is whole is listed (`list`) in one transaction with what says that its rows do not count in the tables any more; until then
 * nothing has changed, so nothing is lost where it ends early. It hears of rows that are removed meanwhile (`removed`).
 */
export class IndexFlush {
  #batch: RowBatch
  #writing: Generator<void, ListedSegment> | undefined
  #written: Written | undefined
  /** Keys up to this have been read. */
  #done: Buffer
  /** Keys up to this are in listed segments. */
  #listed: Buffer
  #ownersAfter: Buffer | undefined = Buffer.alloc(0)
  /** Ids of rows that were read into the segment at hand and are gone since. */
  #gone: Buffer[] = []
  /** The same, of the transaction that is under way. */
  #goneNow: Buffer[] = []
  /** All rows are read. */
  #isAtEnd = false
  isDone = false
  /** Rows in segments. */
  rows = 0

  /** Writes the rows whose keys are behind `after`, up to `last`. */
  constructor(
    private readonly parts: FlushParts,
    after: Buffer,
    private readonly last: Buffer,
  ) {
    this.#batch = this.#newBatch()
    this.#done = after
    this.#listed = after
  }

  #newBatch(): RowBatch {
    return new RowBatch({ rows: this.parts.segmentRows, bytes: batchBytes })
  }

  /** A row was taken out of the frozen tables. */
  removed(key: Uint8Array, id: Uint8Array): void {
    const isRead = compareRowKeys(key, 0, this.#done, 0) <= 0 && compareRowKeys(key, 0, this.#listed, 0) > 0
    if (isRead) this.#goneNow.push(Buffer.from(id))
  }

  /** The transaction in which rows were taken out was undone. */
  undone(): void {
    this.#goneNow = []
  }

  /** A segment is written and can be listed. */
  get isWritten(): boolean {
    return this.#written !== undefined && this.#gone.length === 0
  }

  /** Goes on: reads or writes about so many rows, until a segment is written. Between two transactions. */
  step(rows: number): void {
    for (const id of this.#goneNow) this.#gone.push(id)
    this.#goneNow = []
    let left = rows
    while (left > 0 && !this.isDone && !this.isWritten) {
      if (this.#written !== undefined) left -= this.#lookUp(this.#written, left)
      else if (this.#writing !== undefined) {
        this.#goOn(this.#writing)
        left -= rowsPerStep
      } else if (this.#batch.isFull || this.#isAtEnd) this.#write()
      else left -= this.#ownersAfter === undefined ? this.#readRows(left) : this.#readOwners()
    }
  }

  /** Begins to write what was read. */
  #write(): void {
    const isEmpty = this.#batch.count === 0 && this.#batch.ownerKeys.size === 0
    if (isEmpty) this.isDone = this.#isAtEnd
    else this.#writing = this.parts.keeper.writeInSteps(this.#batch)
    this.#batch = this.#newBatch()
  }

  #goOn(writing: Generator<void, ListedSegment>): void {
    const step = writing.next()
    if (step.done !== true) return
    this.#writing = undefined
    const listed = step.value
    const path = segmentPath(this.parts.segments.files.folder, listed.number)
    const segment = Segment.open(path)
    if (segment === undefined) throw new DamagedSegment(path, 0, 'is missing, with its file')
    this.#written = { listed, segment, gone: new Set() }
  }

  /** Which rows of the segment are those that are gone. */
  #lookUp({ segment, gone }: Written, limit: number): number {
    const some = this.#gone.splice(0, Math.min(limit, readAtOnce))
    for (const id of some) {
      const row = segment.find(id)
      if (row < 0) throw new Error('a row that was read is not in its segment')
      gone.add(row)
    }
    return Math.max(some.length, 1)
  }

  /** Public keys that no segment has. */
  #readOwners(): number {
    const { owners, numbers } = this.parts.tables
    const start = this.#ownersAfter
    let read = 0
    this.#ownersAfter = undefined
    for (const { key, value } of owners.span({ limit: readAtOnce, ...(start?.length ? { start } : {}) })) {
      read += 1
      const address = numbers.get(key)?.subarray(1)
      if (address === undefined) throw new Error(`the index has lost the address ${numberOf(key)}`)
      if (!this.#hasOwner(address)) this.#batch.addOwnerKey(address, value)
      if (read === readAtOnce || this.#batch.isFull) {
        this.#ownersAfter = Buffer.concat([key, Buffer.of(0)])
        break
      }
    }
    return Math.max(read, 1)
  }

  /** Where a segment cannot tell, it is as if none had the key: two segments may have the same one. */
  #hasOwner(address: Uint8Array): boolean {
    try {
      return this.parts.segments.ownerKey(address) !== undefined
    } catch (error) {
      if (error instanceof DamagedSegment) return false
      throw error
    }
  }

  #readRows(limit: number): number {
    const { tables, dictionary } = this.parts
    const start = beside(this.#done, false)
    const end = beside(this.last, false)
    if (start === undefined || end === undefined) throw new Error('a flush has no end')
    const most = Math.min(limit, readAtOnce)
    // All are read first: words are looked up in other tables.
    const found =
      compareRowKeys(start, 0, end, 0) < 0 ? [...tables.rows.span({ start, end, limit: most })] : []
    for (const { key, value } of found) {
      this.#batch.add(segmentRow(dictionary.whole(decodeRow(key, value))))
      this.#done = Buffer.from(key)
      if (this.#batch.isFull) return found.length
    }
    this.#isAtEnd = found.length < most
    if (this.#isAtEnd && compareRowKeys(this.#done, 0, this.last, 0) < 0) this.#done = this.last
    return Math.max(found.length, 1)
  }

  /** Lists the segment that is written, in one transaction with `leave`, which gets its last key and how many rows count. */
  list(leave: (last: Buffer, rows: number) => void): void {
    const { keeper, segments } = this.parts
    const written = this.#written
    if (written === undefined || !this.isWritten)
      throw new Error('no segment is written that could be listed')
    const { listed, segment, gone } = written
    keeper.list([listed], () => {
      segments.changed()
      segments.removeAll(listed.number, gone)
      leave(this.#done, listed.rows - gone.size)
    })
    segment.close()
    this.#written = undefined
    this.#listed = this.#done
    this.rows += listed.rows - gone.size
    this.isDone = this.#isAtEnd && this.#batch.count === 0
  }

  /** Ends it early: what is not listed was never there. */
  drop(): void {
    this.#writing?.return({ number: 0, level: 0, rows: 0, bytes: 0 })
    this.#writing = undefined
    if (this.#written === undefined) return
    this.#written.segment.close()
    this.parts.keeper.drop([this.#written.listed])
    this.#written = undefined
  }
}

function segmentRow(row: Row) {
  const { height, isUnjudged = false } = row
  if (height === undefined) throw new Error('what is in no block is not flushed')
  return { ...row, height, isUnjudged }
}
