import { unlessDamaged } from '../index/checked-file.js'
import { blockIdBytes, decodeBlock, heightKey } from './block-record.js'
import { countFork, type IndexTables, weaveKey } from './index-tables.js'
import { addMended } from './mended.js'
import { heightOf, heightStart } from './row-key.js'
import type { RowWriter } from './row-writer.js'
import { type LiveSegment, rowOf } from './segment-rows.js'
import type { LostStretch } from './segment-salvage.js'
import { wordsOf } from './set-writer.js'

/** Rows of tables that are read at once. */
const rowsAtOnce = 256
/** Words of rows of tables that are removed in one transaction: one takes up to 15 us. */
const wordsAtOnce = 4096
/** Blocks and groups of rows of one transaction, and one block more. */
const entriesAtOnce = 512
const blocksAtOnce = 64

/**
 * Takes blocks whose rows a damaged segment has lost out of the index, with all rows of theirs: each is a gap that the import
 * fills. In many short transactions, between any two of which the program may end: a block leaves in the transaction that takes
 * its last rows, and what a segment has lost stays lost until its blocks have left.
 */
export class LostBlocks {
  /** `rows`: the writer of the tables as of now. */
  constructor(
    private readonly tables: IndexTables,
    private readonly rows: () => RowWriter,
  ) {}

  /** Drops the blocks of a stretch of rows of a segment: how many. One transaction with each step. */
  *drop(segment: number, stretch: LostStretch): Generator<void, number> {
    const { from, to } = stretch
    while (this.#write(() => this.#dropRows(from, to, wordsAtOnce))) yield
    let blocks = 0
    for (let next: number | undefined = from; next !== undefined; ) {
      const first: number = next
      next = this.#write(() => {
        const dropped = this.#dropBlocks(first, to)
        blocks += dropped.blocks
        if (dropped.next === undefined) this.#hide(segment, stretch)
        return dropped.next
      })
      yield
    }
    return blocks
  }

  /** One transaction. */
  #write<Found>(act: () => Found): Found {
    return this.tables.environment.write(() => {
      const found = act()
      this.rows().settle()
      return found
    })
  }

  /** Removes rows of tables that have so many words together, about; false where none is left. */
  #dropRows(from: number, to: number, wordsMax: number): boolean {
    const found = this.rows().between(heightStart(from), heightStart(to + 1), rowsAtOnce)
    let words = 0
    for (const row of found) {
      if (words >= wordsMax) break
      words += wordsOf(row.row.tags.length)
      this.rows().remove(row)
    }
    return found.length > 0
  }

  /** Drops some blocks; `next`: the height to go on with, undefined where there are no more. */
  #dropBlocks(from: number, to: number): { readonly blocks: number; readonly next: number | undefined } {
    const { tables } = this
    const span = { start: heightKey(from), end: heightKey(to + 1), limit: blocksAtOnce }
    let [entries, blocks] = [0, 0]
    let next: number | undefined
    for (const key of [...tables.blocks.keys(span)].map((one) => Buffer.from(one))) {
      const height = key.readUInt32BE(0)
      if (entries >= entriesAtOnce || blocks + 1 === blocksAtOnce) {
        next = height
        break
      }
      entries += this.#dropBlock(height)
      blocks += 1
    }
    if (blocks > 0) {
      countFork(tables)
      addMended(tables.indexMeta, { segments: 0, rows: 0, blocks, lowest: from })
    }
    return { blocks, next }
  }

  /** Removes a block with all of its rows: how many entries. */
  #dropBlock(height: number): number {
    const { tables } = this
    const key = heightKey(height)
    const record = tables.blocks.get(key)
    if (record === undefined) return 0
    // What came since.
    while (this.#dropRows(height, height, Number.MAX_SAFE_INTEGER));
    const { id, weaveSize } = decodeBlock(height, record)
    tables.blockIds.remove(blockIdBytes(id))
    tables.blocks.remove(key)
    let entries = 1
    for (const live of tables.segments.all()) {
      // What a damaged segment does not say of the block it has until it is written anew, too.
      entries += unlessDamaged(() => this.#dropIn(live, height)) ?? 0
    }
    this.#unplace(height, Number(weaveSize))
    return entries
  }

  #dropIn(live: LiveSegment, height: number): number {
    const { groups } = live.segment
    const first = groups.lowerBound(height, 0)
    let [at, start, behind] = [first, 0, 0]
    for (; at < groups.count; at += 1) {
      const { height: there, first: row, place, end } = groups.group(at)
      if (there !== height) break
      if (at === first) start = row
      behind = end
      const isTransaction = place % 2 === 0 && live.isRemoved?.(row) !== true
      const whole = isTransaction ? unlessDamaged(() => rowOf(live, row)) : undefined
      // It has a place in the weave.
      if (whole !== undefined)
        this.rows().remove({ key: Buffer.from(whole.key), row: whole, place: { live, row } })
    }
    this.tables.segments.removeRange(live, start, behind)
    return at - first
  }

  /** Takes what is left of a block out of the weave, of rows that cannot be read: `weaveSize` is where the block ends. */
  #unplace(height: number, weaveSize: number): void {
    const { weave } = this.tables
    if (!Number.isSafeInteger(weaveSize)) return
    for (;;) {
      const last = weave.floor(weaveKey(weaveSize))
      if (last === undefined || heightOf(last.value) !== height) return
      weave.remove(last.key)
    }
  }

  /** No row of the stretch counts any more. */
  #hide(segment: number, { from, first, end, lost }: LostStretch): void {
    const { segments, indexMeta } = this.tables
    const live = segments.all().find(({ number }) => number === segment)
    if (live !== undefined) segments.removeRange(live, first, end)
    addMended(indexMeta, { segments: 0, rows: lost, blocks: 0, lowest: from })
  }
}
