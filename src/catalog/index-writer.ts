import { type Log, silentLog } from '../actor/log.js'
import { type Id, idBytes } from '../format/id.js'
import { blockIdBytes, decodeBlock, encodeBlock, heightKey } from './block-record.js'
import { BulkWriter } from './bulk-writer.js'
import type { BlockInput, IndexOutcome, IndexRequest } from './index-protocol.js'
import { countFork, forgetState, type IndexTables } from './index-tables.js'
import { unpackOwners } from './pack.js'
import { PackedRows } from './packed-rows.js'
import {
  arrivalOf,
  heightStart,
  isItemKey,
  pendingHeight,
  pendingStart,
  rowKeyBytes,
  writePendingKey,
  writeRowKey,
} from './row-key.js'
import { type KeyedRow, RowWriter } from './row-writer.js'
import { SegmentIds } from './segment-ids.js'
import { rowOf } from './segment-rows.js'
import { type FlushLimits, SegmentUpkeep, type Upkeep, UpkeepFaults } from './segment-upkeep.js'
import { type SpillLimits, spillLimits } from './spill.js'

type ExpireRequest = Extract<IndexRequest, { kind: 'expire-pending' }>
type ItemsRequest = Extract<IndexRequest, { kind: 'index-items' }>

const idBytesEach = 32

/** Nothing leaves the tables. */
export const noFlush: FlushLimits = { rows: 0, forkDepth: 0 }

/** Rows are removed in portions of so many: nothing may be written to a table while it is read. */
const portion = 1000

/** A record is merged once for each class of sizes that it passes through: so many records for each new row, and a few more. */
const mergedEach = 8
const mergedLeast = 4096
/** Words that are new with a row, about. */
const wordsOfRow = 3

/**
 * Writes the index. Only the keeper does, inside its transaction. Every request may be repeated: an existing row stays as it is.
 * For an item in several bundles the first place in the chain is kept, whatever the order of the requests. A place with a checked
 * signature precedes all unchecked ones.
 */
export class IndexWriter {
  readonly #segmentIds: SegmentIds
  /** Undefined after a transaction was undone: what it remembered of the tables was undone, too. */
  #opened: RowWriter | undefined
  #changed: (id: Uint8Array) => void = () => undefined
  #outcome = { added: 0, known: 0, skipped: 0, removed: 0 }
  /** Rows since the files were tended, and since the segments were. */
  #added = 0
  #addedSince = 0
  readonly #segments: SegmentUpkeep
  #bulk: BulkWriter | undefined
  /** Memory for the key of the row that is put. */
  readonly #key = Buffer.allocUnsafeSlow(rowKeyBytes)
  /** Number of the last row that arrived and is in no block. */
  #arrival: number | undefined

  constructor(
    private readonly tables: IndexTables,
    private readonly limits: SpillLimits = spillLimits,
    flush: FlushLimits = noFlush,
    log: Pick<Log, 'info' | 'warn'> = silentLog,
    faults: UpkeepFaults = new UpkeepFaults(),
  ) {
    this.#segmentIds = new SegmentIds(tables.segments)
    this.#opened = new RowWriter(tables, limits, this.#segmentIds)
    this.#segments = new SegmentUpkeep(tables, this.#opened, this.#segmentIds, flush, log, faults)
  }

  get #rows(): RowWriter {
    return this.#opened ?? this.#open()
  }

  /** Begins anew after a transaction was undone: that reads the disk, and may fail like any change. */
  #open(): RowWriter {
    this.tables.environment.refresh()
    forgetState(this.tables)
    const rows = new RowWriter(this.tables, this.limits, this.#segmentIds)
    this.#opened = rows
    this.#segments.follow(rows)
    return rows
  }

  /** The transaction failed in which requests were applied. What is done about segments between transactions goes on. */
  undone(): void {
    this.#opened?.close()
    this.#opened = undefined
    this.#bulk = undefined
  }

  /**
   * Applies one request. `nowSeconds` since 1970; `changed` gets the id of every changed row (32 bytes).
   */
  apply(request: IndexRequest, nowSeconds: number, changed: (id: Uint8Array) => void): IndexOutcome {
    this.#changed = changed
    this.#outcome = { added: 0, known: 0, skipped: 0, removed: 0 }
    switch (request.kind) {
      case 'index-block':
        this.#block(request.block)
        this.#transactions(request.transactions, request.block.height, nowSeconds)
        break
      case 'index-transactions':
        if (this.tables.blocks.view(heightKey(request.height)) === undefined) break
        this.#transactions(request.transactions, request.height, nowSeconds)
        break
      case 'index-items':
        this.#items(request, nowSeconds)
        break
      case 'index-pending':
        this.#transactions(request.transactions, undefined, nowSeconds)
        break
      case 'index-offsets':
        for (const { id, weaveEnd } of request.offsets) this.#place(id, weaveEnd)
        break
      case 'index-owners':
        for (const { address, key } of unpackOwners(request.owners)) this.#rows.keepOwner(address, key)
        break
      case 'remove-items':
        this.#removeItems(request.keys)
        break
      case 'remove-pending':
        this.#removePending(request.ids)
        break
      case 'expire-pending':
        this.#expire(request)
        break
      case 'unwind':
        this.#unwind(request.fromHeight)
        break
    }
    return this.#outcome
  }

  /** The way past the tables. */
  get bulk(): BulkWriter {
    this.#bulk ??= new BulkWriter(this.tables, this.#rows, this.#segments.keeper)
    return this.#bulk
  }

  /** So many rows came past the tables: segments are merged in proportion. */
  addedInBulk(rows: number): void {
    this.#addedSince += rows
  }

  /** Writes what was collected: before every commit. */
  settle(): void {
    this.#rows.settle()
  }

  /** Goes on with merging files, in proportion to what came in: after a commit. */
  tend(): void {
    this.#addedSince += this.#added
    this.#tendRuns(this.#added)
    this.#added = 0
  }

  #tendRuns(rows: number): void {
    for (const run of this.#rows.runs) run.tend(mergedLeast + rows * mergedEach)
  }

  /** Paths of files that are not needed any more once the last commit is on the disk, each given once. */
  takeRetired(): string[] {
    return [...this.#rows.takeRetired(), ...this.#segments.takeRetired()]
  }

  /** Goes on with taking stable rows out of the tables, and with merging segments: between two transactions. */
  tendSegments(): Upkeep {
    const added = this.#addedSince
    this.#addedSince = 0
    if (this.#opened === undefined) this.#open()
    const upkeep = this.#segments.tend(added)
    const words = this.#segments.takeMovedWords()
    // What is moved makes files, too, also where nothing is committed meanwhile.
    if (words > 0) this.#tendRuns(Math.ceil(words / wordsOfRow))
    return upkeep
  }

  /** Drops what is half done. */
  close(): void {
    this.#segments.close()
    this.#opened?.close()
  }

  #block(block: BlockInput): void {
    const key = heightKey(block.height)
    const record = encodeBlock(block)
    const known = this.tables.blocks.get(key)
    const standing = known === undefined ? undefined : decodeBlock(block.height, known)
    // Stated again; perhaps with more of its header than an earlier version of this program kept.
    if (standing?.id === block.id && (block.header === undefined || standing.header !== undefined)) return
    // Another block at this height: what stood on the old one is not on the chain.
    if (standing !== undefined && standing.id !== block.id) this.#unwind(block.height)
    this.tables.blocks.put(key, record)
    this.tables.blockIds.put(blockIdBytes(block.id), key)
  }

  #transactions(packed: Uint8Array, height: number | undefined, nowSeconds: number): void {
    const rows = new PackedRows(packed, false)
    while (rows.next()) {
      this.#put(rows, this.#keyOf(rows, height, rows.index, nowSeconds), nowSeconds)
    }
    this.#rows.relieve()
  }

  #items({ rootId, items, optimistic = false, isUnjudged = false }: ItemsRequest, nowSeconds: number): void {
    const found = this.#rows.find(idBytes(rootId))
    // An item is nobody's root.
    const root = found?.row.isItem === true ? undefined : found
    const height = root?.row.height
    const index = root?.row.index ?? 0
    const rows = new PackedRows(items, true)
    while (rows.next()) {
      if (root === undefined && !optimistic) this.#outcome.skipped += 1
      else this.#put(rows, this.#keyOf(rows, height, index, nowSeconds), nowSeconds, isUnjudged)
    }
    this.#rows.relieve()
  }

  /** The key of a row that is put, in a block or (`height` undefined) behind all that arrived before it. */
  #keyOf(
    { id, areItems }: PackedRows,
    height: number | undefined,
    index: number,
    nowSeconds: number,
  ): Buffer {
    if (height !== undefined) return writeRowKey(this.#key, height, index, areItems, id)
    this.#arrival = Math.max(nowSeconds * 1000, 1 + (this.#arrival ?? this.#lastArrival()))
    return writePendingKey(this.#key, this.#arrival, areItems, id)
  }

  /** The highest number that a row which is in no block has; 0 where there is none. */
  #lastArrival(): number {
    const last = this.#rows.highest(heightStart(pendingHeight))
    return last === undefined ? 0 : (arrivalOf(last) ?? 0)
  }

  #put(row: PackedRows, key: Buffer, nowSeconds: number, isUnjudged = false): void {
    const put = this.#rows.put(row, key, nowSeconds, isUnjudged)
    this.#outcome[put === 'moved' ? 'added' : put] += 1
    this.#added += 1
    if (put === 'added' || put === 'moved') this.#changed(row.id)
  }

  #place(id: Id, weaveEnd: number): void {
    const standing = this.#rows.find(idBytes(id))
    const known = standing?.row.transfer?.weaveEnd === weaveEnd
    if (standing === undefined || weaveEnd < 1) this.#outcome.skipped += 1
    else if (known) this.#outcome.known += 1
    else this.#outcome[this.#rows.place(standing, weaveEnd) ? 'added' : 'skipped'] += 1
  }

  #expire({ beforeSeconds, itemsBeforeSeconds }: ExpireRequest): void {
    for (const pending of this.#rows.pendingBefore(beforeSeconds, portion)) {
      for (const key of pending) {
        const row = key.subarray(4)
        if (!isItemKey(row) || key.readUInt32BE(0) < itemsBeforeSeconds) this.#remove(row)
      }
    }
  }

  #removeItems(keys: Uint8Array): void {
    for (let at = 0; at < keys.length; at += rowKeyBytes) {
      const key = keys.subarray(at, at + rowKeyBytes)
      const found = isItemKey(key) ? this.#rows.at(key) : undefined
      if (found === undefined) this.#outcome.skipped += 1
      else this.#drop(found)
    }
  }

  #removePending(ids: Uint8Array): void {
    for (let at = 0; at < ids.length; at += idBytesEach) {
      const found = this.#rows.find(ids.subarray(at, at + idBytesEach))
      if (found?.row.isItem === true && found.row.height === undefined) this.#remove(found.key)
      else this.#outcome.skipped += 1
    }
  }

  #unwind(fromHeight: number): void {
    countFork(this.tables)
    const [start, end] = [heightStart(fromHeight), heightStart(pendingStart)]
    for (let rows = this.#rows.between(start, end, portion); rows.length > 0; ) {
      for (const found of rows) this.#drop(found)
      rows = this.#rows.between(start, end, portion)
    }
    this.#unwindSegments(heightStart(fromHeight))
    for (;;) {
      const blocks = [...this.tables.blocks.span({ start: heightKey(fromHeight), limit: portion })]
      for (const { key, value } of blocks) {
        this.tables.blockIds.remove(blockIdBytes(decodeBlock(0, value).id))
        this.tables.blocks.remove(key)
      }
      if (blocks.length < portion) return
    }
  }

  #remove(key: Uint8Array): void {
    const found = this.#rows.at(key)
    if (found === undefined) throw new Error('a row that is to be removed is not there')
    this.#drop(found)
  }

  #drop(found: KeyedRow): void {
    this.#rows.remove(found)
    this.#outcome.removed += 1
    this.#changed(found.row.id)
  }

  /** A fork that is deeper than the blocks that stay in the tables, or an order of the operator. */
  #unwindSegments(from: Buffer): void {
    for (const live of this.tables.segments.all()) {
      const { segment } = live
      for (let row = segment.lowerBound(from); row < segment.count; row += 1) {
        if (live.isRemoved?.(row) === true) continue
        this.#drop({ key: segment.keyOf(row), row: rowOf(live, row), place: { live, row } })
      }
    }
  }
}
