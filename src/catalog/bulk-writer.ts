import { idBytes } from '../format/id.js'
import type { SegmentKeeper } from '../index/segment-keeper.js'
import type { ListedSegment } from '../index/segment-list.js'
import { placeInBlock } from '../index/segment-row.js'
import { decodeBlock, heightKey } from './block-record.js'
import type { BulkBatch } from './bulk-batch.js'
import { absent, placeTaken } from './bulk-ids.js'
import type { BulkPart, BulkRows } from './bulk-protocol.js'
import { type BulkTotals, putBulkTotals } from './bulk-totals.js'
import { BulkWords } from './bulk-words.js'
import type { BlockInput, IndexOutcome } from './index-protocol.js'
import { type IndexTables, weaveKey } from './index-tables.js'
import { MessageRows } from './message-rows.js'
import { rowKeyBytes, writeRowKey } from './row-key.js'
import { givesWay, type KeyedRow, type Put, type RowWriter } from './row-writer.js'
import { spans } from './segment-rows.js'

type ItemsPart = Extract<BulkPart, { kind: 'index-items' }>

const placeBytes = 7
/** Bytes of a row of a message, at least. */
const rowBytesLeast = 40

/** The parts of a request, with their rows. */
export interface Prepared {
  readonly parts: readonly { readonly part: BulkPart; readonly rows: MessageRows | undefined }[]
  /** Rows and words that it brings at most. */
  readonly rowsMax: number
  readonly wordsMax: number
}

interface Place {
  readonly height: number
  readonly index: number
}

/** A row that is taken: the one at which `rows` stands. */
interface Taken extends Place {
  readonly batch: BulkBatch
  readonly rows: MessageRows
  readonly words: BulkWords
  readonly isUnjudged: boolean
  readonly nowSeconds: number
}

/**
 * Takes rows of blocks into a batch, past the tables, and lists them: only the keeper. What becomes of a row is what becomes of
 * it where it is put into the tables (row-writer.ts).
 */
export class BulkWriter {
  readonly #key = Buffer.allocUnsafeSlow(rowKeyBytes)
  /** A place in the chain that was looked at, and whether the index has a row there. */
  readonly #place = Buffer.alloc(rowKeyBytes, 0xff)
  #isPlaceFree = false

  constructor(
    private readonly tables: IndexTables,
    private readonly rows: RowWriter,
    private readonly segments: SegmentKeeper,
  ) {}

  /**
   * Reads a request. Undefined: it must go through the tables, because it replaces a block, or its root is in no block. Throws a
   * RangeError on what `RowPacker` did not write.
   */
  prepare(batch: BulkBatch, parts: readonly BulkPart[]): Prepared | undefined {
    const prepared: Prepared['parts'][number][] = []
    const blocks = new Map<number, string>()
    let [rowsMax, wordsMax] = [0, 0]
    for (const part of parts) {
      if (part.kind === 'index-block') {
        const { height, id } = part.block
        const standing = blocks.get(height) ?? this.#block(batch, height)?.id
        if (standing !== undefined && standing !== id) return undefined
        blocks.set(height, id)
      }
      if (part.kind === 'learn' || part.kind === 'judged') {
        prepared.push({ part, rows: undefined })
        continue
      }
      const areItems = part.kind === 'index-items'
      if (areItems && this.#isPending(batch, part)) return undefined
      const packed = areItems ? part.items : part.transactions
      const rows = new MessageRows(packed, areItems)
      rowsMax += Math.ceil(packed.length / rowBytesLeast)
      wordsMax += rows.wordCount
      prepared.push({ part, rows })
    }
    return { parts: prepared, rowsMax, wordsMax }
  }

  #isPending(batch: BulkBatch, { rootId }: ItemsPart): boolean {
    const id = idBytes(rootId)
    if (batch.ids.look(id, 0, 0) >= 0) return false
    const found = this.rows.find(id)
    return found !== undefined && found.row.height === undefined
  }

  #block(batch: BulkBatch, height: number): BlockInput | undefined {
    const held = batch.block(height)
    if (held !== undefined) return held
    const record = this.tables.blocks.get(heightKey(height))
    return record === undefined ? undefined : decodeBlock(height, record)
  }

  /** Takes the rows of a request. Throws where a page of the index is damaged: then the batch is lost. */
  take(batch: BulkBatch, { parts }: Prepared, nowSeconds: number): IndexOutcome {
    const outcome = { added: 0, known: 0, skipped: 0, removed: 0 }
    this.#place.fill(0xff)
    for (const { part, rows } of parts) {
      if (part.kind === 'learn' || part.kind === 'judged') {
        batch.addAside(part)
        continue
      }
      if (rows === undefined) throw new Error('rows were not read')
      const place = this.#placeOf(batch, part)
      const isUnjudged = part.kind === 'index-items' && part.isUnjudged === true
      const words = new BulkWords(batch.rows, rows)
      while (rows.next()) {
        if (place === undefined) {
          if (rows.areItems) outcome.skipped += 1
          continue
        }
        const index = rows.areItems ? place.index : rows.index
        const put = this.#put({ batch, rows, words, height: place.height, index, isUnjudged, nowSeconds })
        outcome[put === 'moved' ? 'added' : put] += 1
      }
    }
    return outcome
  }

  /** Where the rows of a part stand; undefined where their block or root is unknown. Takes the block. */
  #placeOf(batch: BulkBatch, part: BulkRows): Place | undefined {
    if (part.kind === 'index-items') return this.#root(batch, idBytes(part.rootId))
    if (part.kind === 'index-transactions')
      return this.#block(batch, part.height) === undefined ? undefined : { height: part.height, index: 0 }
    const { block } = part
    const standing = this.#block(batch, block.height)
    // A repeated request; perhaps with more of the header than an earlier version of this program kept.
    const isKnown = standing !== undefined && (block.header === undefined || standing.header !== undefined)
    if (!isKnown) batch.addBlock(block)
    return { height: block.height, index: 0 }
  }

  /** Where a root stands in the chain; undefined where it is unknown, or an item. */
  #root(batch: BulkBatch, id: Uint8Array): Place | undefined {
    const row = batch.ids.look(id, 0, 0)
    if (row >= 0) {
      return batch.isItem(row) ? undefined : { height: batch.heightOf(row), index: batch.indexOf(row) }
    }
    const found = this.rows.find(id)?.row
    if (found === undefined || found.isItem || found.height === undefined) return undefined
    return { height: found.height, index: found.index }
  }

  #put(taken: Taken): Put {
    const { batch, rows, height, index, isUnjudged, nowSeconds } = taken
    const key = writeRowKey(this.#key, height, index, rows.areItems, rows.id)
    const known = batch.ids.look(rows.id, height, placeInBlock(index, rows.areItems))
    if (known === placeTaken) return 'skipped'
    if (known !== absent) {
      if (!givesWay(batch.standing(known), key, rows, isUnjudged)) return 'known'
      const seenSeconds = batch.seenSeconds(known)
      batch.drop(known)
      this.#add(taken, seenSeconds)
      return 'moved'
    }
    const standing = this.rows.find(rows.id)
    if (standing !== undefined && !givesWay(standing, key, rows, isUnjudged)) return 'known'
    if (standing?.key.equals(key) !== true && !this.#isFree()) return 'skipped'
    this.#add(taken, standing?.row.seenSeconds ?? nowSeconds, standing)
    if (standing === undefined) return 'added'
    batch.replaced.push(Buffer.from(rows.id))
    return 'moved'
  }

  /** Adds the row whose id was looked for last. `standing`: gives way to it. */
  #add(
    { batch, rows, words, height, index, isUnjudged }: Taken,
    seenSeconds: number,
    standing?: KeyedRow,
  ): void {
    const to = batch.rows
    const row = to.count
    to.begin(rows.tagCount)
    const { numbers } = words
    to.word(numbers[rows.owner - 1] as number)
    if (rows.recipient > 0) to.word(numbers[rows.recipient - 1] as number)
    if (rows.areItems) to.word(numbers[rows.parent - 1] as number)
    const { tags, tagCount } = rows
    for (let tag = 0; tag < tagCount; tag += 1) to.word(numbers[(tags[tag] as number) - 1] as number)
    const { transfer } = rows
    const end = transfer?.weaveEnd ?? 0
    if (transfer !== undefined && end > 0) {
      if (this.#isWeaveFree(batch, end, standing)) batch.weave.set(end, row)
      else rows.transfer = { ...transfer, weaveEnd: 0 }
    }
    const { id, areItems: isItem, size, anchor, signatureType, signature, place } = rows
    const facts = { size, anchor, signatureType, signature, place, transfer: rows.transfer }
    to.end({ height, index, isItem, id, seenSeconds, isUnjudged, ...facts }, rows.recipient > 0)
    batch.ids.put(row)
  }

  /** Two transactions cannot end at the same place: the first statement counts. */
  #isWeaveFree(batch: BulkBatch, end: number, standing: KeyedRow | undefined): boolean {
    if (batch.weave.has(end)) return false
    const there = this.tables.weave.get(weaveKey(end))
    return there === undefined || this.#key.equals(there) || standing?.key.equals(there) === true
  }

  /** Whether the key of the row that is put is free in the index. */
  #isFree(): boolean {
    const key = this.#key
    if (key.compare(this.#place, 0, placeBytes, 0, placeBytes) !== 0) {
      key.copy(this.#place, 0, 0, placeBytes)
      this.#isPlaceFree = this.#hasNone()
    }
    if (this.#isPlaceFree) return true
    return this.rows.at(key) === undefined
  }

  /** Whether the index has no row at the place of the row that is put. */
  #hasNone(): boolean {
    const start = Buffer.alloc(rowKeyBytes)
    this.#key.copy(start, 0, 0, placeBytes)
    for (const { tables } of this.tables.sets.live()) {
      // Also one that does not count any more: then each key is looked at.
      const next = tables.rows.ceiling(start)?.key
      if (next !== undefined && this.#key.compare(next, 0, placeBytes, 0, placeBytes) === 0) return false
    }
    const [height, place] = [start.readUInt32BE(0), start.readUIntBE(4, 3)]
    return this.tables.segments.all().every((live) => {
      if (!spans(live, this.#key)) return true
      const { groups } = live.segment
      const number = groups.lowerBound(height, place)
      if (number === groups.count) return true
      const group = groups.group(number)
      return group.height !== height || group.place !== place
    })
  }

  /** Writes the rows as a segment that nobody reads yet; undefined where there are none. Throws errors of the disk. */
  write({ rows, count }: BulkBatch): ListedSegment | undefined {
    return count === 0 && rows.ownerKeys.size === 0 ? undefined : this.segments.write(rows)
  }

  /** Lists what was written, in one transaction with all else that was taken and with what `also` does. */
  list(batch: BulkBatch, written: ListedSegment | undefined, totals: BulkTotals, also: () => void): void {
    const { tables } = this
    // Known before the list changes: what gives way is looked for where it was.
    tables.segments.all()
    this.segments.list(written === undefined ? [] : [written], () => {
      // All are looked for before the first is removed: then the new segment is there, too.
      const replaced = batch.replaced.map((id) => this.rows.find(id))
      for (const row of replaced) if (row !== undefined) this.rows.remove(row)
      for (const { height, id, record } of batch.records()) {
        const key = heightKey(height)
        tables.blocks.put(key, record)
        tables.blockIds.put(id, key)
      }
      for (const [end, row] of batch.weave) tables.weave.put(weaveKey(end), batch.keyOf(row))
      putBulkTotals(tables.indexMeta, totals)
      also()
      tables.segments.changed()
    })
  }
}
