import type { Environment } from '../store/lmdb.js'
import { type BlockRecord, decodeBlock, heightKey } from './block.js'
import type { Effort } from './effort.js'
import type { Generations } from './generations.js'
import { findRow } from './ids.js'
import { type IndexTables, openIndexTables, refreshRuns, weaveKey } from './index-tables.js'
import { decodeRow, type Row, rowSeenSeconds } from './row.js'
import { compareRowKeys, heightEnd, heightStart, pendingHeight, rowKey } from './row-key.js'
import { BlockScan, beside, type Scan } from './scan.js'
import { boundsOf, type Selection, Selector } from './selection.js'
import { numberBytes, Words, wordKind } from './words.js'

/** Bundles in bundles that are followed; nothing real comes near. */
const nestingMax = 64
const noId = Buffer.alloc(32)

/** One page of an answer. */
export interface Page<Entry> {
  readonly entries: readonly Entry[]
  /** There are more behind the last one. */
  readonly more: boolean
  /**
   * The effort was spent, or a list was cut: entries may be missing, none is wrong, and the order is right.
   */
  readonly partial: boolean
}

export interface PageRequest {
  readonly backwards: boolean
  /** Row key of the last row of the page before. */
  readonly after?: Uint8Array
  readonly limit: number
}

/** The index as any thread reads it: synchronous, straight from the memory map. Never fetches. */
export class ChainIndex {
  readonly words: Words
  readonly #tables: IndexTables
  readonly #selector: Selector
  #seen = Number.NaN

  /** `environment` is the catalog's, `generations` the table that the keeper writes. */
  constructor(
    private readonly environment: Environment,
    private readonly generations: Generations,
  ) {
    this.#tables = openIndexTables(environment)
    this.words = new Words(this.#tables)
    this.#selector = new Selector(this.#tables, this.words)
  }

  /** Sees the latest commit from here on: once per question, so that one answer comes from one state. */
  refresh(): void {
    const commits = this.generations.commits
    if (commits === this.#seen) return
    this.environment.refresh()
    refreshRuns(this.#tables)
    this.#seen = commits
  }

  /** The row with this id (32 bytes). */
  row(id: Uint8Array): Row | undefined {
    const found = findRow(this.#tables, this.#tables.runs.ids, id)
    return found === undefined ? undefined : decodeRow(found.key, found.record)
  }

  /** Rows of a selection, newest first where `backwards`, else oldest first. */
  rows(wanted: Selection, { backwards, after, limit }: PageRequest, effort: Effort): Page<Row> {
    let cut = false
    // The row that was looked at last is most often the one that is wanted next.
    let last: Row | undefined
    const read = (key: Buffer): Row => {
      if (last?.key !== key) last = this.#rowAt(key)
      return last
    }
    const scan = this.#selector.scan(wanted, {
      ...{ backwards, effort, ahead: limit + 1 },
      read: (key) => (effort.step() ? read(key) : undefined),
      cut: () => {
        cut = true
      },
    })
    const { start, end } = span(wanted, backwards, after)
    const entries: Row[] = []
    if (start !== undefined) scan.seek(start)
    let more = false
    for (let row = scan.row; start !== undefined && row !== undefined; scan.next(), row = scan.row) {
      if (passes(row, end, backwards)) break
      if (!this.#seenInside(row, wanted, effort)) continue
      if (entries.length === limit) {
        more = true
        break
      }
      entries.push(read(row))
    }
    return { entries, more: more || effort.spent, partial: effort.spent || cut }
  }

  #rowAt(key: Buffer): Row {
    const record = this.#tables.rows.get(key)
    if (record === undefined) throw new Error('a posting of the index has no row')
    return decodeRow(key, record)
  }

  /** Rows between two heights (inclusive) in chain order, at most `limit`, those behind the row with key `after`. */
  stretch(from: number, to: number, after: Uint8Array | undefined, limit: number): Row[] {
    const start = after === undefined ? heightStart(from) : beside(after, false)
    if (start === undefined) return []
    const end = beside(heightEnd(to), false)
    const rows: Row[] = []
    for (const { key, value } of this.#tables.rows.span({
      start,
      limit,
      ...(end === undefined ? {} : { end }),
    })) {
      rows.push(decodeRow(Buffer.from(key), Buffer.from(value)))
    }
    return rows
  }

  /** Number of rows of a selection, or undefined where counting them took more than the effort. */
  count(wanted: Selection, effort: Effort): number | undefined {
    let cut = false
    const scan = this.#selector.scan(wanted, {
      ...{ backwards: false, effort },
      cut: () => {
        cut = true
      },
    })
    const { start, end } = span(wanted, false, undefined)
    if (start === undefined) return 0
    scan.seek(start)
    const bySeen = wanted.minSeen !== undefined || wanted.maxSeen !== undefined
    const count =
      scan instanceof BlockScan && !bySeen
        ? countBlocks(scan, end)
        : this.#countRows(scan, end, wanted, effort)
    return effort.spent || cut ? undefined : count
  }

  #countRows(scan: Scan, end: Buffer, wanted: Selection, effort: Effort): number {
    let count = 0
    for (let row = scan.row; row !== undefined && !passes(row, end, false); scan.next(), row = scan.row) {
      if (this.#seenInside(row, wanted, effort)) count += 1
    }
    return count
  }

  #seenInside(row: Uint8Array, { minSeen, maxSeen }: Selection, effort: Effort): boolean {
    if (minSeen === undefined && maxSeen === undefined) return true
    if (!effort.step()) return false
    const record = this.#tables.rows.view(row)
    if (record === undefined) throw new Error('a posting of the index has no row')
    const seen = rowSeenSeconds(record)
    return seen >= (minSeen ?? 0) && seen <= (maxSeen ?? Number.POSITIVE_INFINITY)
  }

  /** The transaction at the top of a row: itself, or the one that holds the item. */
  rootOf(row: Row): Row | undefined {
    if (!row.isItem) return row
    if (row.height === undefined) return this.#climb(row)
    const start = rowKey(row.height, row.index, false, noId)
    for (const { key, value } of this.#tables.rows.span({ start, limit: 1 })) {
      const found = decodeRow(key, value)
      return found.height === row.height && found.index === row.index && !found.isItem ? found : undefined
    }
    return undefined
  }

  /** Bundles from the root down to the direct parent; undefined where one of them is not in the index. */
  pathOf(row: Row): Row[] | undefined {
    const path: Row[] = []
    for (let at: Row = row; at.place !== undefined; ) {
      const parent = this.row(this.words.bytes(at.place.parent))
      if (parent === undefined || path.length === nestingMax) return undefined
      path.unshift(parent)
      at = parent
    }
    return path
  }

  #climb(row: Row): Row | undefined {
    return this.pathOf(row)?.[0]
  }

  /** The public key of an address (its number), if any row brought it. */
  ownerKey(address: number): Uint8Array | undefined {
    return this.#tables.owners.get(numberBytes(address))
  }

  /** The public key of an address (32 bytes), if it is known. */
  keyOf(address: Uint8Array): Uint8Array | undefined {
    const number = this.words.number(wordKind.address, address)
    return number === undefined ? undefined : this.ownerKey(number)
  }

  /**
   * The transaction whose data holds the byte at this offset of the weave (1-based), if its place is known.
   */
  transactionAt(offset: number): Row | undefined {
    const entry = this.#tables.weave.ceiling(weaveKey(offset))
    const record = entry === undefined ? undefined : this.#tables.rows.get(entry.value)
    if (entry === undefined || record === undefined) return undefined
    const row = decodeRow(entry.value, record)
    const end = row.transfer?.weaveEnd ?? 0
    return offset > end - row.size && offset <= end ? row : undefined
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

  /** Number of rows, of blocks, and of rows that are in no block yet. */
  counts(): { rows: number; blocks: number; pending: number } {
    const { rows, blocks, pending } = this.#tables
    return { rows: rows.count(), blocks: blocks.count(), pending: pending.count() }
  }
}

/**
 * Where a scan begins and which key (inclusive) it does not pass; no start: nothing can be behind `after`.
 */
function span(
  wanted: Selection,
  backwards: boolean,
  after: Uint8Array | undefined,
): { start: Buffer | undefined; end: Buffer } {
  const { first, last } = boundsOf(wanted)
  const [near, end] = backwards ? [last, first] : [first, last]
  const next = after === undefined ? near : beside(after, backwards)
  const start = next !== undefined && isBefore(next, near, backwards) ? near : next
  return { start: start === undefined || passes(start, end, backwards) ? undefined : start, end }
}

function isBefore(one: Uint8Array, other: Uint8Array, backwards: boolean): boolean {
  const order = compareRowKeys(one, 0, other, 0)
  return backwards ? order > 0 : order < 0
}

function passes(row: Uint8Array, end: Uint8Array, backwards: boolean): boolean {
  return isBefore(end, row, backwards)
}

function countBlocks(scan: BlockScan, end: Buffer): number {
  let count = 0
  while (scan.row !== undefined) count += scan.countBlock(end)
  return count
}
