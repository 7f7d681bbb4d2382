import { type Log, silentLog } from '../actor/log.js'
import { type MergeLimits, SegmentKeeper, usualMerges } from '../index/segment-keeper.js'
import { Dictionary } from './dictionary.js'
import { IndexFlush } from './index-flush.js'
import { type IndexTables, openSegments, segmentLedger } from './index-tables.js'
import { decodeRow } from './row.js'
import { heightEnd, heightStart, pendingStart } from './row-key.js'
import type { RowWriter } from './row-writer.js'
import { beside } from './scan.js'
import { SegmentRemovals } from './segment-removals.js'

/** When rows leave the tables for segments. */
export interface FlushLimits {
  /** So many rows that do not change any more become a segment; 0: none leave. */
  readonly rows: number
  /** Blocks below the highest one that a fork may still replace. */
  readonly forkDepth: number
  readonly merges?: MergeLimits
  /** Rows that one step of a flush reads, at least; few in tests. */
  readonly rowsEach?: number
  /** Words (tags, addresses) of the rows that stay, at most; fewer in tests. */
  readonly leftWordsMax?: number
}

/** Rows of blocks that stay in the tables, about: they are put a second time with each flush. */
const leftMax = 16_384
/**
 * Rows that stay are put again in one transaction, at up to 15 us of processor time a word. Strangers may bring rows of 128 tags
 * that are in no block, and the flush waits then until they have one. Three blocks of 12,000 items have 470,000 words.
 */
const leftWordsMax = 1_000_000
/** As many more may come while a flush is under way: it is not in vain, and its end takes half a minute at most. */
const endFactor = 2
/** Words of a row beside its tags. */
const rowWords = 4
/** Blocks that always stay, however many rows they have: nearly all forks are shorter. */
const depthMin = 3
const rowsEach = 2048
/** Steps of merging for each time, at least; one is some 4,000 rows, words or ids. */
const stepsEach = 1
/** For each row that came in: it is read and written once, and merged twice in some five passes. */
const rowsPerRow = 6
const stepsPerRow = 16 / 4096

/** Bytes of a row in a segment, with long tags; few have as many. */
const rowBytesMax = 400

/** What is to be done about segments: more at once, or nothing for now. */
export type Upkeep = 'more' | 'idle'

/** Takes what is stable out of the tables and merges segments, in steps: only the keeper, between its transactions. */
export class SegmentUpkeep {
  readonly keeper: SegmentKeeper
  readonly #dictionary: Dictionary
  #flush: IndexFlush | undefined
  /** Rows that were put since it was last looked whether there are enough. */
  #since = Number.POSITIVE_INFINITY

  constructor(
    private readonly tables: IndexTables,
    private readonly rows: RowWriter,
    private readonly limits: FlushLimits,
    private readonly log: Pick<Log, 'info' | 'warn'> = silentLog,
  ) {
    const files = openSegments(tables.environment, tables.indexMeta)
    tables.environment.onClose(() => files.close())
    const removals = new SegmentRemovals(tables, rows.segmentIds)
    this.keeper = new SegmentKeeper(files, segmentLedger(tables), limits.merges ?? usualMerges, removals)
    this.#dictionary = new Dictionary(tables)
    tables.segments.isOwn = true
  }

  /** Goes on with what is to be done, in proportion to the rows that were put since. Throws errors of the disk. */
  tend(added: number): Upkeep {
    this.#since += added
    // What was committed in this turn is read, too.
    this.tables.environment.refresh()
    this.#flush ??= this.#due()
    const isFlushing = this.#flush !== undefined
    if (this.#flush !== undefined) {
      this.#goOn(this.#flush, (this.limits.rowsEach ?? rowsEach) + added * rowsPerRow)
    }
    const tended = this.keeper.tend(stepsEach + Math.ceil(added * stepsPerRow))
    this.tables.segments.changed()
    return isFlushing || tended === 'more' ? 'more' : 'idle'
  }

  #goOn(flush: IndexFlush, rows: number): void {
    if (!flush.isDone) {
      const before = flush.rows
      flush.step(rows)
      // A flush of one segment is soon over; an old index takes many.
      const { rows: written } = flush
      if (written > before && !flush.isDone)
        this.log.info({ written }, 'stable rows of the index go into segments')
      return
    }
    this.#flush = undefined
    this.rows.watch = undefined
    // More may have come while it was under way.
    if (!this.#isLittle(flush.last, Number.POSITIVE_INFINITY, endFactor)) {
      flush.drop()
      return
    }
    flush.finish((left) => this.rows.rebuild(left))
    const left = this.tables.rows.count()
    this.log.info({ written: flush.rows, left }, 'stable rows of the index are in segments')
    this.#dictionary.forget()
    this.tables.segments.changed()
  }

  /** A flush, where enough rows are stable. */
  #due(): IndexFlush | undefined {
    const { rows: segmentRows } = this.limits
    if (segmentRows === 0 || this.#since < segmentRows / 8) return undefined
    const total = this.tables.rows.count()
    if (total < segmentRows) return undefined
    this.#since = 0
    const last = this.#lastStable()
    if (last === undefined) return undefined
    // What stays is put again: no more than what leaves.
    const isLittle = this.#isLittle(last, Math.min(total - segmentRows, Math.floor(total / 2)))
    if (!isLittle || !this.keeper.hasRoom(total * rowBytesMax)) return undefined
    const { tables } = this
    const parts = { tables, dictionary: this.#dictionary, keeper: this.keeper, segmentRows }
    const flush = new IndexFlush(parts, last)
    this.rows.watch = flush
    return flush
  }

  /** The last key that rows can have which leave; undefined where there is none. */
  #lastStable(): Buffer | undefined {
    const [top] = [...this.tables.blocks.keys({ backwards: true, limit: 1 })]
    if (top === undefined) return undefined
    const height = Buffer.from(top).readUInt32BE(0)
    const behind = { start: heightStart(pendingStart), backwards: true, limit: leftMax }
    let lowest = height
    for (const key of this.tables.rows.keys(behind)) lowest = Buffer.from(key).readUInt32BE(0)
    const { forkDepth } = this.limits
    const stable = Math.min(height - Math.min(depthMin, forkDepth), Math.max(height - forkDepth, lowest - 1))
    return stable < 0 ? undefined : heightEnd(stable)
  }

  /** Whether the rows behind a key are at most `rowsMax`, and their words no more than are put again in a few seconds. */
  #isLittle(last: Buffer, rowsMax: number, factor = 1): boolean {
    const start = beside(last, false)
    if (start === undefined) return true
    const wordsMax = (this.limits.leftWordsMax ?? leftWordsMax) * factor
    let [rows, words] = [0, 0]
    for (const { key, value } of this.tables.rows.span({ start })) {
      rows += 1
      words += rowWords + decodeRow(Buffer.from(key), value).tags.length
      if (rows > rowsMax) return false
      if (words > wordsMax) {
        this.log.warn(
          { words, most: wordsMax },
          'stable rows of the index stay in the tables: rows without a block, or of the last blocks, have too many tags',
        )
        return false
      }
    }
    return true
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
    this.keeper.close()
  }
}
