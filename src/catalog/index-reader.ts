import { DamagedSegment } from '../index/checked-file.js'
import { type Environment, isDamage } from '../store/lmdb.js'
import { Recent } from '../store/recent.js'
import { type BlockRecord, decodeBlock, heightKey } from './block-record.js'
import { Dictionary, numberBytes, wordKind } from './dictionary.js'
import { type Effort, endlessEffort } from './effort.js'
import type { Generations } from './generations.js'
import { findRow } from './ids.js'
import { type RowParts, tableRows } from './index-parts.js'
import type { SegmentTotals } from './index-segments.js'
import { forksIn, type IndexTables, openIndexTables, weaveKey } from './index-tables.js'
import { mendedIn } from './mended.js'
import { cutBefore, passes, scanSpan, within } from './page-span.js'
import { decodeRow, type Row, tagBytesOf } from './row.js'
import { heightOf, pendingHeight, rowKey } from './row-key.js'
import { isBefore, MergedScan, type RowScan, SegmentScan, segmentParts, type Wish } from './row-scan.js'
import { refreshRuns } from './row-tables.js'
import { beside } from './scan.js'
import { rowOf } from './segment-rows.js'
import type { Selection } from './selection.js'
import { TableScan, tableParts } from './table-scan.js'
import { isInSpan, type LiveTables } from './table-sets.js'

/** Bundles in bundles that are followed; nothing real comes near. */
const nestingMax = 64
const noId = Buffer.alloc(32)
/** What a look-up in the tables costs. */
const tableSteps = 3
/** Keys of owners that are kept at hand (twice as many at most), and the longest: some 2 MB. An address never has another key. */
const ownerKeysMax = 1000
const ownerKeyMaxBytes = 1024
/** Bytes of tags that are read in one step. */
const bytesPerStep = 4096
/** Tags that a part of a stretch has in memory, about: an item may have 128 times as many as most clients write. */
const stretchTagBytes = 4 * 2 ** 20
/** Bundles around items that are kept at hand (twice as many at most). */
const holdersMax = 2000

/** A bundle around an item, or the transaction around all of them. */
export interface Enclosing {
  /** 32 bytes. */
  readonly id: Buffer
  readonly isItem: boolean
  /** What holds it. */
  readonly parent: Buffer | undefined
}

/** One page of an answer. */
export interface Page<Entry> {
  readonly entries: readonly Entry[]
  /** There are more behind the last one. */
  readonly more: boolean
  /**
   * Where the effort was spent before the page was full: the key behind which the next page begins. It need not be the key of
   * a row. Nothing before it is missing, and there may or may not be more behind it.
   */
  readonly place?: Uint8Array
}

export interface PageRequest {
  readonly backwards: boolean
  /** Row key of the last row of the page before, or the place where it ended. */
  readonly after?: Uint8Array
  /** Oldest first: the key up to which rows in no block are left out, because an earlier page had them. */
  readonly given?: Uint8Array
  readonly limit: number
  /** False: rows have no tags. To read them takes most of the time of a row. */
  readonly takesTags?: boolean
  /** The page ends behind the row whose tags exceed so many bytes, together with those before it. */
  readonly tagsMaxBytes?: number
}

/** The index as any thread reads it: synchronous, straight from the memory map. Never fetches. */
export class ChainIndex {
  readonly #tables: IndexTables
  /** One for each of the two sets of tables. */
  readonly dictionaries: readonly [Dictionary, Dictionary]
  #seen = Number.NaN
  /** How often the sets had changed roles. */
  #swaps = 0
  /** Holders in the state of the index that `#seen` names. */
  #holders = new Recent<string, Enclosing>(holdersMax)
  readonly #ownerKeys = new Recent<string, Uint8Array>(ownerKeysMax)

  /** `environment` is the catalog's, `generations` the table that the keeper writes. */
  constructor(
    private readonly environment: Environment,
    private readonly generations: Generations,
  ) {
    this.#tables = openIndexTables(environment)
    const [one, other] = this.#tables.sets.sets
    this.dictionaries = [new Dictionary(one), new Dictionary(other)]
  }

  /** Sees the latest commit from here on: once per question, so that one answer comes from one state. */
  refresh(): void {
    const commits = this.generations.commits
    if (commits === this.#seen) return
    this.environment.refresh()
    for (const set of this.#tables.sets.sets) refreshRuns(set)
    this.#holders = new Recent(holdersMax)
    this.#seen = commits
  }

  /**
   * What `read` finds in the index; undefined where a page of the database that it needs is damaged: then the index counts as not
   * knowing it. For answers that may be had elsewhere.
   */
  known<Found>(read: () => Found): Found | undefined {
    this.refresh()
    try {
      return read()
    } catch (error) {
      if (!this.reportDamage(error)) throw error
      return undefined
    }
  }

  /** Reports an error of a damaged page, so that reading can go on; false where it is another error. */
  reportDamage(error: unknown): boolean {
    if (!isDamage(error) && !(error instanceof DamagedSegment)) return false
    this.generations.reportDamage()
    this.environment.refresh()
    return true
  }

  /** The tables whose rows count: before words are looked up, which may have other numbers after tables changed roles. */
  #live(): readonly LiveTables[] {
    const { sets } = this.#tables
    const { swaps } = sets.state
    if (swaps !== this.#swaps) for (const dictionary of this.dictionaries) dictionary.forget()
    this.#swaps = swaps
    return sets.live()
  }

  /**
   * The row with this id (32 bytes): what is in the tables can still change, and comes first. Without `takesTags` it has no tags.
   */
  row(id: Uint8Array, takesTags = true): Row | undefined {
    for (const live of this.#live()) {
      const found = findRow(live.tables, live.tables.runs.ids, id, live.span)
      if (found !== undefined) return this.#whole(live, found.key, found.record, takesTags)
    }
    const place = this.#tables.segments.find(id)
    return place === undefined ? undefined : rowOf(place.live, place.row, takesTags)
  }

  /**
   * Rows of a selection, newest first where `backwards`, else oldest first. Where the effort is spent the page ends with a
   * `place`, which is always behind `after`. Throws an OutOfEffort where the values alone take twice the time.
   */
  rows(wanted: Selection, request: PageRequest, effort: Effort): Page<Row> {
    const { backwards, after, given, limit, takesTags = true } = request
    const { start, end } = scanSpan(wanted, backwards, after)
    if (start === undefined) return { entries: [], more: false }
    const scan = this.#scan(wanted, { backwards, effort, start, end, ahead: limit + 1, takesTags })
    const entries: Row[] = []
    let tagsLeft = request.tagsMaxBytes ?? Number.POSITIVE_INFINITY
    scan.seek(start)
    for (let { key } = scan; key !== undefined && !passes(key, end, backwards); key = scan.key) {
      if (given !== undefined && heightOf(key) === undefined && !isBefore(given, key, false)) {
        const behind = beside(given, false)
        if (behind === undefined) break
        scan.seek(behind)
        continue
      }
      if (entries.length === limit) return { entries, more: true }
      if (entries.length > 0 && (effort.spent || tagsLeft < 0)) return cutBefore(key, entries, backwards)
      const row = scan.read()
      const tagBytes = tagBytesOf(row)
      effort.charge(Math.floor(tagBytes / bytesPerStep))
      tagsLeft -= tagBytes
      entries.push(row)
      scan.next()
    }
    const { cutAt } = scan
    return cutAt === undefined ? { entries, more: false } : cutBefore(cutAt, entries, backwards)
  }

  /** The rows of the tables and of the segments, as one. */
  #scan(wanted: Selection, wish: Wish): RowScan {
    const parts = [
      ...tableParts(this.#live(), this.dictionaries, wanted, wish),
      ...segmentParts(this.#tables.segments.all(), wanted, wish),
    ]
    const [only] = parts
    return only !== undefined && parts.length === 1 ? only.open() : new MergedScan(parts, wish)
  }

  /** The rows by where they are: of one state, until the next `refresh`. */
  parts(): RowParts {
    const live = this.#live()
    return {
      segments: this.#tables.segments.all(),
      tables: (from, to) => tableRows(live, this.dictionaries, { from, to }, (scan) => scan.read()),
      tableHeights: (from, to) =>
        tableRows(live, this.dictionaries, { from, to }, (_, key) => heightOf(key) ?? to),
    }
  }

  /**
   * Rows between two heights (inclusive) in chain order, at most `limit`, those behind the row with key `after`. Fewer where
   * their tags have some megabytes: only where there is none at all is the stretch over. Without `takesTags` they have no tags.
   */
  stretch(from: number, to: number, after: Uint8Array | undefined, limit: number, takesTags = true): Row[] {
    const bounds = { limit, takesTags, tagsMaxBytes: stretchTagBytes }
    const page = { backwards: false, ...bounds, ...(after === undefined ? {} : { after }) }
    return [...this.rows({ minHeight: from, maxHeight: to }, page, endlessEffort()).entries]
  }

  /** Number of rows of a selection, or undefined where counting them took more than the effort. */
  count(wanted: Selection, effort: Effort): number | undefined {
    if (Object.keys(wanted).length === 0) return this.counts().rows
    const { start, end } = scanSpan(wanted, false, undefined)
    if (start === undefined) return 0
    const wish = { backwards: false, effort, start, end, listsOnly: true }
    const parts = [
      ...this.#live().map((live) => () => new TableScan(live, this.dictionaries[live.at], wanted, wish)),
      ...this.#tables.segments.all().map((live) => () => new SegmentScan(live, wanted, wish)),
    ]
    let sum = 0
    for (const open of parts) {
      // Each part looks all values up before it can stop.
      const rows = effort.spent ? undefined : within(() => open().count())
      if (rows === undefined) return undefined
      sum += rows
    }
    return sum
  }

  /** The transaction at the top of a row: itself, or the one that holds the item. */
  rootOf(row: Row): Row | undefined {
    if (!row.isItem) return row
    if (row.height === undefined) return this.#climb(row)
    return this.transactionIn(row.height, row.index)
  }

  /** The transaction at this position of a block. */
  transactionIn(height: number, index: number): Row | undefined {
    const start = rowKey(height, index, false, noId)
    for (const live of this.#live()) {
      for (const { key, value } of live.tables.rows.span({ start, limit: 1 })) {
        const found = decodeRow(key, value)
        const isIt = found.height === height && found.index === index && !found.isItem
        if (isIt && isInSpan(live.span, key)) return this.#whole(live, key, value)
      }
    }
    return this.#tables.segments.transactionIn(height, index)
  }

  #whole({ at }: LiveTables, key: Uint8Array, record: Uint8Array, takesTags = true): Row {
    return this.dictionaries[at].whole(decodeRow(key, record), takesTags)
  }

  /** Bundles from the root down to the direct parent; undefined where one of them is not in the index. */
  pathOf(row: Row): Enclosing[] | undefined {
    const path: Enclosing[] = []
    for (let id = row.place?.parent; id !== undefined; ) {
      const holder = this.#holder(id)
      if (holder === undefined || path.length === nestingMax) return undefined
      path.unshift(holder)
      id = holder.parent
    }
    return path
  }

  /** Items share the bundles around them, and may lie in very many of these. */
  #holder(id: Buffer): Enclosing | undefined {
    const name = id.toString('latin1')
    const known = this.#holders.get(name)
    if (known !== undefined) return known
    const row = this.row(id, false)
    if (row === undefined) return undefined
    const { isItem, place } = row
    const holder = { id: Buffer.from(id), isItem, parent: place && Buffer.from(place.parent) }
    this.#holders.set(name, holder)
    return holder
  }

  #climb(row: Row): Row | undefined {
    const [top] = this.pathOf(row) ?? []
    return top && this.row(top.id)
  }

  /**
   * The public key of an address (32 bytes), if any row brought it. It may take a look into each segment, and each is charged:
   * throws an OutOfEffort where that takes too long.
   */
  ownerKey(address: Uint8Array, effort?: Effort): Uint8Array | undefined {
    const name = Buffer.from(address.buffer, address.byteOffset, address.byteLength).toString('latin1')
    const known = this.#ownerKeys.get(name)
    if (known !== undefined) return known
    const key = this.#keyInTables(address, effort) ?? this.#tables.segments.ownerKey(address, effort)
    if (key !== undefined && key.length <= ownerKeyMaxBytes) this.#ownerKeys.set(name, key)
    return key
  }

  #keyInTables(address: Uint8Array, effort: Effort | undefined): Uint8Array | undefined {
    for (const { at, tables } of this.#live()) {
      effort?.lookUp(tableSteps)
      const number = this.dictionaries[at].number(wordKind.address, address)
      const key = number === undefined ? undefined : tables.owners.get(numberBytes(number))
      if (key !== undefined) return key
    }
    return undefined
  }

  /** Steps that a look-up of a row by its id takes at most: of the tables, and of each segment. */
  get rowSteps(): number {
    return this.#live().length * tableSteps + this.#tables.segments.all().length
  }

  /**
   * The transaction whose data holds the byte at this offset of the weave (1-based), if its place is known.
   */
  transactionAt(offset: number): Row | undefined {
    const entry = this.#tables.weave.ceiling(weaveKey(offset))
    const row = entry === undefined ? undefined : this.#rowAt(entry.value)
    const end = row?.transfer?.weaveEnd ?? 0
    return row !== undefined && offset > end - row.size && offset <= end ? row : undefined
  }

  /** The row with this key. */
  #rowAt(key: Uint8Array): Row | undefined {
    for (const live of this.#live()) {
      const record = isInSpan(live.span, key) ? live.tables.rows.get(key) : undefined
      if (record !== undefined) return this.#whole(live, key, record)
    }
    const place = this.#tables.segments.at(key)
    return place === undefined ? undefined : rowOf(place.live, place.row)
  }

  /** The block at this height. */
  block(height: number): BlockRecord | undefined {
    const record = this.#tables.blocks.get(heightKey(height))
    return record === undefined ? undefined : decodeBlock(height, record)
  }

  /** Height of the block with this id. */
  heightOfBlock(id: Uint8Array): number | undefined {
    const height = this.#tables.blockIds.get(id)
    return height === undefined ? undefined : Buffer.from(height).readUInt32BE(0)
  }

  /** Blocks between two heights (inclusive), at most `limit`, the highest first where `backwards`. */
  blocks(min: number, max: number, backwards: boolean, limit: number): BlockRecord[] {
    const found: BlockRecord[] = []
    const first = Math.min(Math.max(backwards ? max : min, 0), pendingHeight)
    const start = heightKey(first)
    for (const { key, value } of this.#tables.blocks.span({ start, backwards, limit })) {
      const height = Buffer.from(key).readUInt32BE(0)
      if (height < min || height > max) break
      found.push(decodeBlock(height, value))
    }
    return found
  }

  /** Height of the lowest block that was dropped because its rows were damaged. */
  get lowestMended(): number | undefined {
    return mendedIn(this.#tables.indexMeta).lowest
  }

  /** How often blocks were dropped, modulo 2^32. */
  get forks(): number {
    return forksIn(this.#tables)
  }

  /** Height of the highest block. */
  topHeight(): number | undefined {
    for (const key of this.#tables.blocks.keys({ backwards: true, limit: 1 })) {
      return Buffer.from(key).readUInt32BE(0)
    }
    return undefined
  }

  /** Height of the lowest block that is there without a gap below the one at `height`; at most `limit` blocks are looked at. */
  linkedDown(height: number, limit: number): number {
    let lowest = height
    for (const key of this.#tables.blocks.keys({ start: heightKey(height), backwards: true, limit })) {
      const at = Buffer.from(key).readUInt32BE(0)
      if (at < lowest - 1) break
      lowest = at
    }
    return lowest
  }

  /** What the segments of the index have together. */
  segmentTotals(): SegmentTotals {
    return this.#tables.segments.totals()
  }

  /** Number of rows, of blocks, and of rows that are in no block yet. */
  counts(): { rows: number; blocks: number; pending: number } {
    const { sets, blocks, segments } = this.#tables
    const { rows, pending } = sets.counts()
    return { rows: rows + segments.count(), blocks: blocks.count(), pending }
  }
}
