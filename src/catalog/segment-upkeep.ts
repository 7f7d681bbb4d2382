import { type Log, silentLog } from '../actor/log.js'
import { DamagedSegment } from '../index/checked-file.js'
import { type MergeLimits, SegmentKeeper, usualMerges } from '../index/segment-keeper.js'
import { isDamage } from '../store/lmdb.js'
import { Dictionary } from './dictionary.js'
import { IndexFlush } from './index-flush.js'
import { type IndexTables, openSegments, segmentLedger } from './index-tables.js'
import { compareRowKeys, heightEnd, heightStart, pendingStart, rowKeyBytes } from './row-key.js'
import type { RowTables } from './row-tables.js'
import type { RowWriter } from './row-writer.js'
import { beside } from './scan.js'
import type { SegmentIds } from './segment-ids.js'
import { type DamageSeen, SegmentMending } from './segment-mending.js'
import { SegmentRemovals } from './segment-removals.js'
import type { ClearLimits } from './set-writer.js'
import { type FrozenState, isNothing } from './table-sets.js'

/** When rows leave the tables for segments. */
export interface FlushLimits {
  /** So many rows in blocks become a segment; 0: the tables never change roles, and none leave. */
  readonly rows: number
  /** Blocks below the highest one that a fork may still replace. */
  readonly forkDepth: number
  readonly merges?: MergeLimits
  /** Rows that one step of a flush reads, at least; few in tests. */
  readonly rowsEach?: number
  /** Words (tags, addresses) of rows that are moved in one transaction, at least; few in tests. */
  readonly wordsEach?: number
  readonly clearing?: ClearLimits
  /** Nothing more is to come: does not wait until fewer rows would have to be moved. */
  readonly isLast?: boolean
}

/** What damaged pages stopped, for as long as the program runs: only what needs them stands still. */
export class UpkeepFaults implements DamageSeen {
  /** Paths of segments that cannot be merged. */
  readonly segments = new Set<string>()
  /** Rows do not leave the frozen tables. */
  isFlushStopped = false
  isMergeStopped = false
  looked = 0
  vain = 0
  roomNeeded = 0

  /** `reports`: how often threads met a damaged page. */
  constructor(readonly reports: () => number = () => 0) {}

  /** How many things stand still. */
  get count(): number {
    return this.segments.size + (this.isFlushStopped ? 1 : 0) + (this.isMergeStopped ? 1 : 0)
  }
}

/** Rows of blocks that are moved instead of flushed, about: the last blocks of a chain with many items a block. */
const movedMax = 16_384
/** Blocks that are always moved where a fork could replace them, however many rows they have: nearly all forks are shorter. */
const depthMin = 3
/** Words of a row, on average: rows that are moved may have so many for each row that leaves. */
const wordsPerRow = 12
const rowsEach = 2048
/** A word of a row that is moved takes up to 15 us of processor time. */
const wordsEach = 4096
/** Words of one transaction. */
const wordsAtOnce = 16_384
/** Steps of merging for each time, at least; one is some 4,000 rows, words or ids. */
const stepsEach = 1
/** Rows of work for each row that came in, which is read and written once. */
const rowsPerRow = 6
/** It is merged twice, in four passes over rows or ids and one over its words: up to eight that few others have. */
const stepsPerRow = 24 / 4096
/** Rows that are moved for each row that came in: a third more than is needed, so that it comes to an end. */
const movedPerRow = 16
const clearing: ClearLimits = { dropMax: 2 ** 23, entriesEach: 8192 }
/** Ids of segments that are read at once so that they are remembered. */
const idsEach = 65_536

/** Bytes of a row in a segment, with long tags; few have as many. */
const rowBytesMax = 400

/** What is to be done about segments: more at once, or nothing for now. */
export type Upkeep = 'more' | 'idle'

/**
 * Freezes the tables when they have many rows, takes these out of them in small steps, and merges segments: only the keeper,
 * between its transactions.
 */
export class SegmentUpkeep {
  readonly keeper: SegmentKeeper
  readonly #mending: SegmentMending
  /** One for each of the two sets of tables. */
  readonly #dictionaries: readonly [Dictionary, Dictionary]
  #flush: IndexFlush | undefined
  /** The highest block when it was looked whether few enough rows would have to be moved. */
  #lookedAt: number | undefined
  /** Rows that were moved out of the frozen tables. */
  #moved = 0
  /** Their words, since this was taken. */
  #movedWords = 0

  constructor(
    private readonly tables: IndexTables,
    private rows: RowWriter,
    private readonly segmentIds: SegmentIds,
    private readonly limits: FlushLimits,
    private readonly log: Pick<Log, 'info' | 'warn'> = silentLog,
    private readonly faults: UpkeepFaults = new UpkeepFaults(),
  ) {
    const files = openSegments(tables.environment, tables.indexMeta)
    tables.environment.onClose(() => files.close())
    const removals = new SegmentRemovals(tables, segmentIds)
    this.keeper = new SegmentKeeper(files, segmentLedger(tables), limits.merges ?? usualMerges, removals)
    for (const path of faults.segments) this.keeper.leaveOut(path)
    this.#mending = new SegmentMending(tables, this.keeper, faults, log)
    const [one, other] = tables.sets.sets
    this.#dictionaries = [new Dictionary(one), new Dictionary(other)]
    tables.segments.isOwn = true
  }

  /** Rows are written by another one from here on, because a transaction was undone. */
  follow(rows: RowWriter): void {
    this.rows = rows
    this.#flush?.undone()
    rows.watch = this.#flush
  }

  /** Goes on with what is to be done, in proportion to the rows that were put since. Throws errors of the disk. */
  tend(added: number): Upkeep {
    // What was committed in this turn is read, too.
    this.tables.environment.refresh()
    const isBusy = !this.faults.isFlushStopped && this.#flushing(() => this.#tendTables(added))
    const isMending = this.#mending.step(this.rows)
    const merging = this.faults.isMergeStopped ? 'idle' : this.#merging(added)
    this.segmentIds.tend(idsEach)
    this.tables.segments.changed()
    return isBusy || isMending || merging === 'more' ? 'more' : 'idle'
  }

  /** Where a damaged page is met, merges go on without this. */
  #flushing(act: () => boolean): boolean {
    try {
      return act()
    } catch (error) {
      this.faults.isFlushStopped ||= isDamage(error) || error instanceof DamagedSegment
      throw error
    }
  }

  /** Where a damaged page is met, its segment is not merged any more. */
  #merging(added: number): Upkeep {
    try {
      return this.keeper.tend(stepsEach + Math.ceil(added * stepsPerRow)) === 'more' ? 'more' : 'idle'
    } catch (error) {
      const { segments } = this.faults
      if (error instanceof DamagedSegment && !segments.has(error.path)) segments.add(error.path)
      // It is not only a merge that needs it.
      else this.faults.isMergeStopped ||= isDamage(error) || error instanceof DamagedSegment
      throw error
    }
  }

  /** True where there is more to do. */
  #tendTables(added: number): boolean {
    const { frozen } = this.tables.sets.state
    if (this.limits.rows === 0) return false
    if (frozen === undefined) return this.#freeze()
    if (isNothing(frozen)) {
      const { environment } = this.tables
      const isEmpty = environment.write(() => this.rows.clearSome(this.limits.clearing ?? clearing))
      if (isEmpty) this.#sayDone()
      return true
    }
    this.#flush ??= this.#begin(frozen)
    if (this.#flush === undefined) return false
    if (!this.#flush.isDone) this.#write(this.#flush, (this.limits.rowsEach ?? rowsEach) + added * rowsPerRow)
    else this.#move((this.limits.wordsEach ?? wordsEach) + added * movedPerRow)
    return true
  }

  /** Freezes the current tables where enough rows could leave, and what would have to be moved is no more than that. */
  #freeze(): boolean {
    const { rows, pending, pendingWords } = this.rows.currentCounts()
    const inBlocks = rows - pending
    if (inBlocks < this.limits.rows || pendingWords > inBlocks * wordsPerRow) return false
    if (!this.keeper.hasRoom(inBlocks * rowBytesMax)) return false
    this.tables.environment.write(() => this.rows.swap())
    return true
  }

  /** A flush of the frozen tables, where few of their rows would have to be moved. */
  #begin(frozen: FrozenState): IndexFlush | undefined {
    const { tables, segments } = this.#frozenParts()
    const leaving = this.#lastLeaving(tables, frozen)
    if (leaving === undefined) return undefined
    // Rows behind the last one that counts were moved before this program was started.
    const last = compareRowKeys(leaving, 0, frozen.last, 0) < 0 ? leaving : frozen.last
    const { rows: segmentRows } = this.limits
    const dictionary = this.#dictionaries[this.tables.sets.state.current === 0 ? 1 : 0]
    const parts = { tables, dictionary, segments, keeper: this.keeper, segmentRows }
    const flush = new IndexFlush(parts, beside(frozen.first, true) ?? Buffer.alloc(rowKeyBytes), last)
    this.rows.watch = flush
    this.#moved = 0
    return flush
  }

  #frozenParts() {
    const { sets, segments } = this.tables
    return { tables: sets.sets[sets.state.current === 0 ? 1 : 0], segments }
  }

  #write(flush: IndexFlush, rows: number): void {
    flush.step(rows)
    if (!flush.isWritten) return
    flush.list((last, count) => this.rows.leave(last, count))
    this.log.info({ written: flush.rows }, 'stable rows of the index go into segments')
    this.tables.segments.changed()
  }

  #move(wordsMax: number): void {
    const { environment, sets } = this.tables
    for (let left = wordsMax; left > 0 && sets.live().length > 1; ) {
      const { rows, words } = environment.write(() => this.rows.moveLast(Math.min(left, wordsAtOnce)))
      left -= Math.max(1, words)
      this.#moved += rows
      this.#movedWords += words
    }
  }

  /** How many words were put into the current tables with rows that were moved, since the last call. */
  takeMovedWords(): number {
    const words = this.#movedWords
    this.#movedWords = 0
    return words
  }

  #sayDone(): void {
    const written = this.#flush?.rows ?? 0
    this.log.info({ written, moved: this.#moved }, 'stable rows of the index are in segments')
    for (const dictionary of this.#dictionaries) dictionary.forget()
    this.#flush = undefined
    this.rows.watch = undefined
    this.#lookedAt = undefined
  }

  /** The last key that rows can have which leave the frozen tables for segments; undefined where it is better to wait. */
  #lastLeaving({ rows }: RowTables, { first }: FrozenState): Buffer | undefined {
    const before = { start: heightStart(pendingStart), backwards: true, limit: 1 }
    const [highest] = [...rows.keys(before)].map(heightIn)
    // No block is there any more.
    if (highest === undefined) return first
    const [top = highest] = [...this.tables.blocks.keys({ backwards: true, limit: 1 })].map(heightIn)
    const { forkDepth, isLast = false, rows: segmentRows } = this.limits
    if (highest <= top - forkDepth) return heightEnd(highest)
    // Each block that comes makes fewer of them.
    const isUrgent = isLast || this.rows.currentCounts().rows * 4 >= segmentRows
    if (!isUrgent || top === this.#lookedAt) return undefined
    this.#lookedAt = top
    let lowest = top
    for (const key of rows.keys({ ...before, limit: movedMax })) lowest = heightIn(key)
    const stable = Math.min(top - Math.min(depthMin, forkDepth), Math.max(top - forkDepth, lowest - 1))
    if (stable < 0) return undefined
    return this.#isMost(rows, heightEnd(stable)) ? heightEnd(stable) : undefined
  }

  /** Whether at most half of the rows have keys behind this one, without those in no block. */
  #isMost(rows: RowTables['rows'], last: Buffer): boolean {
    const limit = Math.floor(rows.count() / 2) + 1
    const start = beside(last, false) ?? last
    let behind = 0
    for (const _ of rows.keys({ start, end: heightStart(pendingStart), limit })) behind += 1
    return behind < limit
  }

  /** Files that no list names any more: to be removed when the commit that dropped them would survive a power cut. */
  takeRetired(): string[] {
    return this.keeper.takeRetired()
  }

  /** Drops what is half done. */
  close(): void {
    this.#flush?.drop()
    this.#flush = undefined
    this.rows.watch = undefined
    this.#mending.close()
    this.keeper.close()
  }
}

function heightIn(key: Uint8Array): number {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).readUInt32BE(0)
}
