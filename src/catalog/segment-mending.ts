import type { Log } from '../actor/log.js'
import { Segment } from '../index/segment.js'
import type { SegmentKeeper } from '../index/segment-keeper.js'
import { segmentPath } from '../index/segment-list.js'
import { heightKey } from './block-record.js'
import type { IndexTables } from './index-tables.js'
import { LostBlocks } from './lost-blocks.js'
import { addMended } from './mended.js'
import type { RowWriter } from './row-writer.js'
import { lostStretches, SegmentSalvage } from './segment-salvage.js'

/** Pages that are compared with their checksums in one step: some ms. */
const pagesEach = 1024
/** So often damage is looked for in turn without finding any that can be mended. */
const looksMax = 4

/** What is known of damage, for as long as the program runs. */
export interface DamageSeen {
  /** How often threads met a damaged page of the catalog, or of a segment. */
  reports(): number
  /** How many of them were looked into. */
  looked: number
  /** Looks in turn that found nothing which can be mended. */
  vain: number
  /** Bytes that the disk needs room for before the next look; 0: it does not wait for that. */
  roomNeeded: number
  /** Paths of segments that cannot be merged. */
  readonly segments: Set<string>
}

/**
 * Writes segments with damaged pages anew, from the rows that can be read. Before, blocks with rows that cannot be read leave the
 * index, so that the import fills the gap from the chain. All in short steps, between any two of which the program may end: what
 * is left of the damage is found again. Only the keeper, between its transactions. All pages are looked at, some at a time, after
 * any thread met a damaged one.
 */
export class SegmentMending {
  #looking: Generator<void> | undefined
  #salvage: SegmentSalvage | undefined
  /** Size of the segment that is written anew. */
  #bytes = 0
  /** The writer of the last step: another one takes its place where a transaction is undone. */
  #rows: RowWriter | undefined

  constructor(
    private readonly tables: IndexTables,
    private readonly keeper: SegmentKeeper,
    private readonly seen: DamageSeen,
    private readonly log: Pick<Log, 'info' | 'warn'>,
  ) {}

  /**
   * Goes on; false where there is nothing to do. Throws errors of the disk, and a DamagedSegment where something else that this
   * needs is damaged, too: a transaction may have been undone.
   */
  step(rows: RowWriter): boolean {
    this.#rows = rows
    if (this.#looking === undefined) {
      if (!this.#isDue()) return false
      this.seen.roomNeeded = 0
      this.#looking = this.#look(this.seen.reports())
    }
    try {
      if (this.#looking.next().done === true) this.#looking = undefined
    } catch (error) {
      const bytes = this.#bytes
      this.close()
      if (bytes > 0 && !this.keeper.hasRoom(bytes)) this.seen.roomNeeded = bytes
      else this.seen.vain += 1
      this.log.warn({ err: error }, cannotMend)
      throw error
    }
    return true
  }

  #isDue(): boolean {
    const { seen, keeper } = this
    if (seen.roomNeeded > 0) return keeper.hasRoom(seen.roomNeeded)
    return seen.reports() !== seen.looked && seen.vain < looksMax
  }

  *#look(reports: number): Generator<void> {
    const { seen } = this
    let mended = 0
    for (const { number } of this.tables.segments.all()) {
      if (yield* this.#mend(number)) mended += 1
      yield
    }
    // One that ends early, for whatever reason, begins again.
    seen.looked = reports
    if (mended > 0) seen.vain = 0
    else if (seen.roomNeeded === 0) seen.vain += 1
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
      const { sizeBytes } = segment.file
      if (!this.keeper.hasRoom(sizeBytes)) {
        this.seen.roomNeeded = Math.max(this.seen.roomNeeded, sizeBytes)
        this.log.warn({ path, pages: pages.slice(0, 9) }, noRoom)
        return false
      }
      this.#bytes = sizeBytes
      yield* this.#rewrite(number, segment, pages.length)
      this.#bytes = 0
      return true
    } finally {
      segment.close()
    }
  }

  *#rewrite(number: number, segment: Segment, pages: number): Generator<void> {
    const { tables, keeper } = this
    const { path } = segment.file
    keeper.hold(number)
    const hasBlock = (height: number): boolean => tables.blocks.view(heightKey(height)) !== undefined
    const stretches = yield* lostStretches(segment, keeper.removedIn(number), hasBlock)
    const dropping = new LostBlocks(tables, () => this.#rowWriter())
    let [blocks, rows] = [0, 0]
    for (const stretch of stretches) {
      blocks += yield* dropping.drop(number, stretch)
      rows += stretch.lost
    }
    const salvage = new SegmentSalvage(segment, keeper, keeper.removedIn(number))
    this.#salvage = salvage
    yield* salvage.run()
    keeper.replace([number], salvage.written, () => {
      if (stretches.length > 0) addMended(tables.indexMeta, { segments: 1, rows: 0, blocks: 0 })
    })
    tables.segments.changed()
    this.#salvage = undefined
    this.seen.segments.delete(path)
    const [first, last] = [stretches[0], stretches.at(-1)]
    const about = { path, pages, rows, blocks }
    if (first === undefined || last === undefined) this.log.warn(about, writesAnew)
    else this.log.warn({ ...about, from: first.from, to: last.to }, fetchesAnew)
  }

  #rowWriter(): RowWriter {
    if (this.#rows === undefined) throw new Error('nobody writes rows')
    return this.#rows
  }

  /** Drops what is half done. */
  close(): void {
    this.#looking?.return(undefined)
    this.#looking = undefined
    this.#salvage?.drop()
    this.#salvage = undefined
    this.#bytes = 0
    this.tables.segments.changed()
  }
}

const fetchesAnew = 'pages of the index are damaged: the blocks that they hide are fetched anew'
const writesAnew = 'pages of the index are damaged: they are written anew, and no row is lost'
const noRoom = 'pages of the index are damaged, and the disk has no room to write them anew'
const cannotMend =
  'pages of the index are damaged that cannot be written anew: what needs them is not answered'
