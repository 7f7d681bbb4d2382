import type { Log } from '../actor/log.js'
import { DamagedSegment, unlessDamaged } from '../index/checked-file.js'
import { Segment } from '../index/segment.js'
import type { SegmentKeeper } from '../index/segment-keeper.js'
import { type ListedSegment, segmentPath } from '../index/segment-list.js'
import { blockIdBytes, decodeBlock, heightKey } from './block-record.js'
import { countFork, type IndexTables } from './index-tables.js'
import { addMended } from './mended.js'
import { heightStart } from './row-key.js'
import type { RowWriter } from './row-writer.js'
import { type LiveSegment, rowOf } from './segment-rows.js'
import { type LostBlocks, SegmentSalvage } from './segment-salvage.js'

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
  /** Paths of segments that cannot be merged. */
  readonly segments: Set<string>
}

/**
 * Writes segments with damaged pages anew, from the rows that can be read. Blocks with rows that cannot be read leave the index
 * in the same transaction, so that the import fills the gap from the chain: only the keeper, between its transactions. All pages
 * are looked at, some at a time, after any thread met a damaged one.
 */
export class SegmentMending {
  #looking: Generator<void> | undefined
  #salvage: SegmentSalvage | undefined
  /** As of the last step: another one takes its place where a transaction is undone. */
  #rows: RowWriter | undefined

  constructor(
    private readonly tables: IndexTables,
    private readonly keeper: SegmentKeeper,
    private readonly seen: DamageSeen,
    private readonly log: Pick<Log, 'info' | 'warn'>,
  ) {}

  /** Goes on; false where there is nothing to do. Throws errors of the disk. */
  step(rows: RowWriter): boolean {
    const { seen } = this
    this.#rows = rows
    if (this.#looking === undefined) {
      const reports = seen.reports()
      if (reports === seen.looked || seen.vain >= looksMax) return false
      seen.looked = reports
      this.#looking = this.#look()
    }
    try {
      if (this.#looking.next().done === true) this.#looking = undefined
    } catch (error) {
      this.close()
      // Something else that this needs is damaged, too: what it began was undone.
      if (!(error instanceof DamagedSegment)) throw error
      seen.vain += 1
      this.log.warn({ err: error }, cannotMend)
    }
    return true
  }

  *#look(): Generator<void> {
    let mended = 0
    for (const { number } of this.tables.segments.all()) {
      if (yield* this.#mend(number)) mended += 1
      yield
    }
    if (mended === 0) this.seen.vain += 1
  }

  /** Looks at all pages of a segment. True where some were damaged, and it was written anew. */
  *#mend(number: number): Generator<void, boolean> {
    const path = segmentPath(this.tables.segments.files.folder, number)
    const segment = Segment.open(path)
    if (segment === undefined) return false
    try {
      const pages: number[] = []
      for (let from = 0; from < Math.max(1, segment.file.pages); from += pagesEach) {
        for (const page of segment.damaged(from, from + pagesEach)) pages.push(page)
        yield
        // It gave way to another one meanwhile.
        if (!this.tables.segments.all().some((live) => live.number === number)) return false
      }
      if (pages.length === 0) return false
      if (!this.keeper.hasRoom(segment.file.sizeBytes)) {
        this.log.warn({ path, pages: pages.slice(0, 9) }, noRoom)
        return false
      }
      yield* this.#rewrite(number, segment, pages)
      return true
    } finally {
      segment.close()
    }
  }

  *#rewrite(number: number, segment: Segment, pages: readonly number[]): Generator<void> {
    const { path } = segment.file
    this.keeper.hold(number)
    const removed = new Set(this.tables.segments.removed.rows(number))
    const salvage = new SegmentSalvage(segment, this.keeper, (row) => removed.has(row))
    this.#salvage = salvage
    yield* salvage.run()
    const { written, lost } = salvage
    const blocks = this.#replace(number, { segment, written, lost, removed })
    this.#salvage = undefined
    this.seen.segments.delete(path)
    const about = { path, pages: pages.length, rows: lost.rows, blocks }
    if (lost.span === undefined) this.log.warn(about, writesAnew)
    else this.log.warn({ ...about, ...lost.span }, fetchesAnew)
  }

  /** Lists what was written in the place of a segment, and takes lost blocks out of the index: how many. */
  #replace(
    number: number,
    about: {
      readonly segment: Segment
      readonly written: readonly ListedSegment[]
      readonly lost: LostBlocks
      readonly removed: ReadonlySet<number>
    },
  ): number {
    const { tables } = this
    const { written, lost } = about
    let heights: readonly number[] = []
    this.keeper.replace(number, written, () => {
      tables.segments.changed()
      this.#moveRemovals(number, about)
      heights = this.#blocksOf(lost)
      for (const height of heights) this.#dropBlock(height)
      if (lost.span !== undefined) {
        countFork(tables)
        const { from } = lost.span
        addMended(tables.indexMeta, { segments: 1, rows: lost.rows, blocks: heights.length, lowest: from })
      }
      this.#rows?.settle()
    })
    tables.segments.changed()
    return heights.length
  }

  /** Rows that were removed while the others were written are removed from the new segments. */
  #moveRemovals(
    number: number,
    about: {
      readonly segment: Segment
      readonly written: readonly ListedSegment[]
      readonly removed: ReadonlySet<number>
    },
  ): void {
    const { segments } = this.tables
    const now = segments.removed.rows(number)
    const numbers = new Set(about.written.map((one) => one.number))
    segments.removed.drop(number)
    segments.countRemoved(-now.length)
    for (const row of now) {
      const id = about.removed.has(row) ? undefined : unlessDamaged(() => about.segment.idOf(row))
      if (id === undefined) continue
      for (const live of segments.all()) {
        const found = numbers.has(live.number) ? live.segment.find(id) : -1
        if (found >= 0) segments.remove({ live, row: found })
      }
    }
  }

  /** Heights of blocks that are in the index and have lost rows. */
  #blocksOf({ heights, stretches }: LostBlocks): number[] {
    const all = new Set(heights)
    for (const { from, to } of stretches) {
      const span = { start: heightKey(from), end: heightKey(to + 1) }
      for (const key of this.tables.blocks.keys(span)) all.add(Buffer.from(key).readUInt32BE(0))
    }
    return [...all].sort((one, other) => one - other)
  }

  /** Removes a block with all of its rows: it is a gap that the import fills. */
  #dropBlock(height: number): void {
    const { tables } = this
    const key = heightKey(height)
    const record = tables.blocks.get(key)
    if (record !== undefined) {
      tables.blockIds.remove(blockIdBytes(decodeBlock(height, record).id))
      tables.blocks.remove(key)
    }
    const [start, end] = [heightStart(height), heightStart(height + 1)]
    for (;;) {
      const found = this.#rows?.between(start, end, rowsAtOnce) ?? []
      for (const row of found) this.#rows?.remove(row)
      if (found.length === 0) break
    }
    // What a second damaged segment does not say of the block it has until it is written anew, too.
    for (const live of tables.segments.all()) unlessDamaged(() => this.#dropIn(live, height))
  }

  #dropIn(live: LiveSegment, height: number): void {
    const { segment, isRemoved } = live
    const { groups } = segment
    const first = groups.lowerBound(height, 0)
    if (first >= groups.count) return
    for (let row = groups.group(first).first; row < segment.count; row += 1) {
      if (groups.of(row).height !== height) return
      if (isRemoved?.(row) === true) continue
      const whole = unlessDamaged(() => rowOf(live, row))
      if (whole === undefined) this.tables.segments.remove({ live, row })
      else this.#rows?.remove({ key: segment.keyOf(row), row: whole, place: { live, row } })
    }
  }

  /** Drops what is half done. */
  close(): void {
    this.#looking?.return(undefined)
    this.#looking = undefined
    this.#salvage?.drop()
    this.#salvage = undefined
    this.tables.segments.changed()
  }
}

const fetchesAnew = 'pages of the index are damaged: the blocks that they hide are fetched anew'
const writesAnew = 'pages of the index are damaged: they are written anew, and no row is lost'
const noRoom = 'pages of the index are damaged, and the disk has no room to write them anew'
const cannotMend =
  'pages of the index are damaged that cannot be written anew: what needs them is not answered'
