import type { Log } from '../actor/log.js'
import { DamagedSegment } from '../index/checked-file.js'
import { lostRows } from '../index/lost-rows.js'
import type { SegmentKeeper } from '../index/segment-keeper.js'
import { blockIdBytes, decodeBlock, heightKey } from './block-record.js'
import { countFork, type IndexTables } from './index-tables.js'
import { addMended } from './mended.js'
import { heightStart } from './row-key.js'
import type { RowWriter } from './row-writer.js'
import { type LiveSegment, rowOf } from './segment-rows.js'

/** Pages that are compared with their checksums in one step: some ms. */
const pagesEach = 1024
const rowsAtOnce = 1024
/** So often damage is looked for without finding any that can be mended. */
const looksMax = 4

/** What is known of damage, for as long as the program runs. */
export interface DamageSeen {
  /** How often threads met a damaged page of the catalog, or of a segment. */
  reports(): number
  /** Of them, those that were looked into. */
  looked: number
  /** Looks that found nothing which can be mended. */
  vain: number
  /** Paths of segments that cannot be mended. */
  readonly unmended: Set<string>
}

/**
 * Takes the blocks whose rows lie in damaged pages of segments out of the index, so that the import fills the gap from the chain,
 * and has the segment written anew without them: only the keeper, between its transactions. All pages are looked at, some at a
 * time, after any thread met a damaged one. Damage anywhere but in rows stays: what needs it is not answered.
 */
export class SegmentMending {
  #looking: Generator<void> | undefined

  constructor(
    private readonly tables: IndexTables,
    private readonly keeper: SegmentKeeper,
    private readonly seen: DamageSeen,
    private readonly log: Pick<Log, 'info' | 'warn'>,
  ) {}

  /** Goes on; false where there is nothing to do. */
  step(rows: RowWriter): boolean {
    const { seen } = this
    if (this.#looking === undefined) {
      const reports = seen.reports()
      if (reports === seen.looked || seen.vain >= looksMax) return false
      seen.looked = reports
      this.#looking = this.#look(() => rows)
    }
    try {
      if (this.#looking.next().done === true) this.#looking = undefined
    } catch (error) {
      // Another segment that this one needs is damaged, too: what it began was undone.
      this.#looking = undefined
      if (!(error instanceof DamagedSegment)) throw error
      seen.vain += 1
      this.log.warn({ err: error }, cannotMend)
    }
    return true
  }

  *#look(rows: () => RowWriter): Generator<void> {
    let mended = false
    for (const { number } of this.tables.segments.all()) {
      const pages = yield* this.#damaged(number)
      const live = this.#live(number)
      if (pages.length > 0 && live !== undefined && this.#mend(live, pages, rows())) mended = true
      yield
    }
    if (!mended) this.seen.vain += 1
  }

  /** A segment of the list; undefined where it gave way to another one meanwhile. */
  #live(number: number): LiveSegment | undefined {
    return this.tables.segments.all().find((live) => live.number === number)
  }

  *#damaged(number: number): Generator<void, number[]> {
    const pages: number[] = []
    for (let from = 0; ; from += pagesEach) {
      const live = this.#live(number)
      if (live === undefined) return []
      const { file } = live.segment
      for (let page = from; page < Math.min(from + pagesEach, file.pages); page += 1) {
        if (!file.isSound(page)) pages.push(page)
      }
      if (from + pagesEach >= file.pages) return pages
      yield
    }
  }

  /** True where the segment can be mended. */
  #mend(live: LiveSegment, pages: readonly number[], rows: RowWriter): boolean {
    const { path } = live.segment.file
    const lost = within(() => lostRows(live.segment, pages))
    if (lost === undefined) {
      if (!this.seen.unmended.has(path)) this.log.warn({ path, pages: pages.slice(0, 9) }, cannotMend)
      this.seen.unmended.add(path)
      return false
    }
    const standing = lost.filter((row) => live.isRemoved?.(row) !== true)
    const heights = new Set(standing.map((row) => live.segment.groups.of(row).height))
    let [from, to] = [Number.MAX_SAFE_INTEGER, 0]
    for (const height of heights) [from, to] = [Math.min(from, height), Math.max(to, height)]
    this.tables.environment.write(() => {
      for (const row of standing) this.tables.segments.remove({ live, row })
      this.tables.segments.changed()
      for (const height of heights) this.#dropBlock(height, rows)
      if (heights.size > 0) countFork(this.tables)
      if (heights.size > 0)
        addMended(this.tables.indexMeta, {
          segments: 1,
          rows: standing.length,
          blocks: heights.size,
          lowest: from,
        })
      rows.settle()
    })
    this.tables.segments.changed()
    this.keeper.mend(live.number)
    const about = { path, pages: pages.length, rows: standing.length, blocks: heights.size }
    this.log.warn(heights.size === 0 ? about : { ...about, from, to }, mends)
    return true
  }

  /** Removes a block with all of its rows: it is a gap that the import fills. */
  #dropBlock(height: number, rows: RowWriter): void {
    const { tables } = this
    const key = heightKey(height)
    const record = tables.blocks.get(key)
    if (record !== undefined) {
      tables.blockIds.remove(blockIdBytes(decodeBlock(height, record).id))
      tables.blocks.remove(key)
    }
    const [start, end] = [heightStart(height), heightStart(height + 1)]
    for (;;) {
      const found = rows.between(start, end, rowsAtOnce)
      for (const row of found) rows.remove(row)
      if (found.length === 0) break
    }
    for (const live of tables.segments.all()) this.#dropIn(live, height, rows)
  }

  #dropIn(live: LiveSegment, height: number, rows: RowWriter): void {
    const { segment, isRemoved } = live
    const { groups } = segment
    const first = groups.lowerBound(height, 0)
    if (first >= groups.count) return
    for (let row = groups.group(first).first; row < segment.count; row += 1) {
      if (groups.of(row).height !== height) return
      if (isRemoved?.(row) === true) continue
      const whole = within(() => rowOf(live, row))
      if (whole === undefined) this.tables.segments.remove({ live, row })
      else rows.remove({ key: segment.keyOf(row), row: whole, place: { live, row } })
    }
  }
}

const mends = 'pages of the index are damaged: the blocks in them are fetched anew'
const cannotMend = 'pages of the index are damaged that are not of rows: what needs them is not answered'

/** Undefined where a damaged page is needed. */
function within<Found>(read: () => Found): Found | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof DamagedSegment) return undefined
    throw error
  }
}
