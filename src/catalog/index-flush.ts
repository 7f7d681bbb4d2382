import { RowBatch } from '../index/row-batch.js'
import type { SegmentKeeper } from '../index/segment-keeper.js'
import type { ListedSegment } from '../index/segment-list.js'
import { type Dictionary, numberOf } from './dictionary.js'
import type { IndexTables } from './index-tables.js'
import { packRows } from './pack-rows.js'
import type { PackedRows } from './packed-rows.js'
import { decodeRow, type Row, type StoredRow } from './row.js'
import { compareRowKeys, rowKeyBytes } from './row-key.js'
import { beside } from './scan.js'

/** Bytes of a batch of rows; the memory that it holds is at most three times as much. */
const batchBytes = 64 * 2 ** 20
/** A step of writing takes about as long as reading so many rows: it writes rows, or the words of some. */
const rowsPerStep = 1024
/** Rows, or public keys, that are read at once. */
const readAtOnce = 2048

/** A row that was written into a segment and has left the tables since. */
interface GoneRow {
  readonly key: Buffer
  readonly id: Buffer
}

/** The batch that is written, and whether it is the last one. */
interface Writing {
  readonly steps: Generator<void, ListedSegment>
  readonly isLast: boolean
}

/** What a flush needs. */
export interface FlushParts {
  readonly tables: IndexTables
  readonly dictionary: Dictionary
  readonly keeper: SegmentKeeper
  /** Rows of a segment. */
  readonly segmentRows: number
}

/**
 * Takes rows that do not change any more out of the tables: writes all of them up to a key into segments, some with each
 * step, and names what is left. Until the segments are listed nothing has changed, so nothing is lost where it ends early. It
 * hears of rows that are put or removed meanwhile (`put`, `removed`).
 */
export class IndexFlush {
  #batch: RowBatch
  readonly #written: ListedSegment[] = []
  /** Keys up to this are in segments. */
  #done: Buffer = Buffer.alloc(rowKeyBytes)
  /** Numbers of the addresses whose keys are in segments. */
  readonly #owners = new Set<number>()
  #ownersAfter: Buffer | undefined = Buffer.alloc(0)
  /** Keys of rows that were put after keys like theirs were written. */
  readonly #late = new Set<string>()
  readonly #gone: GoneRow[] = []
  /** Their ids: a segment has an id only once. */
  readonly #goneIds = new Set<string>()
  #writing: Writing | undefined
  isDone = false
  /** Rows that were written. */
  rows = 0

  constructor(
    private readonly parts: FlushParts,
    /** Rows behind this key stay. */
    readonly last: Buffer,
  ) {
    this.#batch = this.#newBatch()
  }

  #newBatch(): RowBatch {
    return new RowBatch({ rows: this.parts.segmentRows, bytes: batchBytes })
  }

  /** A row was put into the tables. */
  put(key: Uint8Array): void {
    if (compareRowKeys(key, 0, this.#done, 0) <= 0) this.#late.add(textOf(key))
  }

  /** A row was taken out of the tables. */
  removed(key: Uint8Array, id: Uint8Array): void {
    if (compareRowKeys(key, 0, this.#done, 0) > 0 || this.#late.delete(textOf(key))) return
    this.#gone.push({ key: Buffer.from(key), id: Buffer.from(id) })
    this.#goneIds.add(textOf(id))
  }

  /** Goes on: reads or writes about so many rows. */
  step(rows: number): void {
    let left = rows
    while (left > 0 && !this.isDone) {
      if (this.#writing !== undefined) {
        this.#goOn(this.#writing)
        left -= rowsPerStep
        continue
      }
      if (this.#batch.isFull) {
        this.#write(false)
        continue
      }
      left -= this.#ownersAfter === undefined ? this.#readRows(left) : this.#readOwners()
    }
  }

  /** Begins to write what was read. */
  #write(isLast: boolean): void {
    const isEmpty = this.#batch.count === 0 && this.#batch.ownerKeys.size === 0
    if (isEmpty) this.isDone = isLast
    else this.#writing = { steps: this.parts.keeper.writeInSteps(this.#batch), isLast }
    this.#batch = this.#newBatch()
  }

  #goOn({ steps, isLast }: Writing): void {
    const step = steps.next()
    if (step.done !== true) return
    this.#written.push(step.value)
    this.rows += step.value.rows
    this.#writing = undefined
    this.isDone = isLast
  }

  /** Public keys that no segment has. */
  #readOwners(): number {
    const { owners, numbers, segments } = this.parts.tables
    const start = this.#ownersAfter
    let read = 0
    this.#ownersAfter = undefined
    for (const { key, value } of owners.span({ limit: readAtOnce, ...(start?.length ? { start } : {}) })) {
      read += 1
      const address = numbers.get(key)?.subarray(1)
      if (address === undefined) throw new Error('the index has lost an address')
      if (segments.ownerKey(address) === undefined) this.#batch.addOwnerKey(address, value)
      this.#owners.add(numberOf(key))
      if (read === readAtOnce || this.#batch.isFull) {
        this.#ownersAfter = Buffer.concat([key, Buffer.of(0)])
        break
      }
    }
    return Math.max(read, 1)
  }

  #readRows(limit: number): number {
    const { tables, dictionary } = this.parts
    const start = beside(this.#done, false)
    const end = beside(this.last, false)
    if (start === undefined || end === undefined) throw new Error('a flush has no end')
    const most = Math.min(limit, readAtOnce)
    // All are read first: words are looked up in other tables.
    const found = [...tables.rows.span({ start, end, limit: most })]
    for (const { key, value } of found) {
      const row = decodeRow(key, value)
      if (this.#goneIds.has(textOf(row.id))) this.#late.add(textOf(key))
      else this.#batch.add(segmentRow(dictionary.whole(row)))
      this.#done = Buffer.from(key)
      if (this.#batch.isFull) return found.length
    }
    if (found.length < most) {
      this.#done = this.last
      this.#write(true)
    }
    return Math.max(found.length, 1)
  }

  /**
   * Lists the segments in one transaction with what `also` does, which takes everything but `left` out of the tables. Only when
   * it is done.
   */
  finish(also: (left: LeftInTables) => void): void {
    const { keeper, tables } = this.parts
    keeper.list(this.#written, () => {
      const { segments } = tables
      segments.changed()
      const numbers = new Set(this.#written.map(({ number }) => number))
      const added = segments.all().filter(({ number }) => numbers.has(number))
      for (const { key, id } of this.#gone) {
        for (const live of added) {
          const row = live.segment.find(id)
          if (row >= 0 && live.segment.keyOf(row).equals(key)) segments.remove({ live, row })
        }
      }
      // Only now the places of those are free, where another row stands by now.
      also({ rows: this.#leftRows(), owners: this.#leftOwners() })
    })
  }

  #leftRows(): LeftRows[] {
    const { tables } = this.parts
    const late = [...this.#late]
      .map((text) => Buffer.from(text, 'latin1'))
      .sort((one, other) => compareRowKeys(one, 0, other, 0))
      .map((key) => {
        const record = tables.rows.get(key)
        if (record === undefined) throw new Error('a row that was put during a flush is not there')
        return decodeRow(key, record)
      })
    const packed = this.#packed(late)
    for (let start = beside(this.last, false); start !== undefined; ) {
      const found = [...tables.rows.span({ start, limit: readAtOnce })]
      packed.push(...this.#packed(found.map(({ key, value }) => decodeRow(key, value))))
      const after = found.at(-1)?.key
      start = after === undefined || found.length < readAtOnce ? undefined : beside(after, false)
    }
    return packed
  }

  /** Rows are packed, which takes a fifth of the memory. */
  #packed(rows: readonly StoredRow[]): LeftRows[] {
    return [false, true].flatMap((areItems) => {
      const some = rows.filter(({ isItem }) => isItem === areItems)
      if (some.length === 0) return []
      const whole = some.map((row) => this.parts.dictionary.whole(row))
      const told = some.map(({ key, seenSeconds, isUnjudged = false }) => {
        return { key: Buffer.from(key), seenSeconds, isUnjudged }
      })
      return [{ packed: packRows(whole, areItems), told }]
    })
  }

  #leftOwners(): { address: Buffer; key: Buffer }[] {
    const { owners, numbers } = this.parts.tables
    const left = [...owners.keys({})].filter((number) => !this.#owners.has(numberOf(number)))
    return left.map((number) => {
      const [address, key] = [numbers.get(number)?.subarray(1), owners.get(number)]
      if (address === undefined || key === undefined) throw new Error('the index has lost an address')
      return { address: Buffer.from(address), key: Buffer.from(key) }
    })
  }

  /** Ends it early: nothing has changed. */
  drop(): void {
    this.#writing?.steps.return({ number: 0, level: 0, rows: 0, bytes: 0 })
    this.parts.keeper.drop(this.#written)
  }
}

/** Rows that stay in the tables, and what their message does not say of each. */
export interface LeftRows {
  readonly packed: PackedRows
  readonly told: readonly {
    readonly key: Buffer
    readonly seenSeconds: number
    readonly isUnjudged: boolean
  }[]
}

/** What stays in the tables after a flush. */
export interface LeftInTables {
  readonly rows: readonly LeftRows[]
  readonly owners: readonly { readonly address: Buffer; readonly key: Buffer }[]
}

function segmentRow(row: Row) {
  const { height, isUnjudged = false } = row
  if (height === undefined) throw new Error('what is in no block is not flushed')
  return { ...row, height, isUnjudged }
}

/** One character per byte. */
function textOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1')
}
