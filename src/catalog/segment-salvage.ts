import { RowBatch, usualLimits } from '../index/row-batch.js'
import { type Salvaged, salvagedKeys, salvagedRows } from '../index/salvaged-rows.js'
import type { Segment } from '../index/segment.js'
import type { SegmentKeeper } from '../index/segment-keeper.js'
import type { ListedSegment } from '../index/segment-list.js'

/** Rows or public keys that are read in one step, at most. */
const rowsEach = 1024
/** As a flush has it. */
const batchBytes = 64 * 2 ** 20

/** Blocks that are to be had anew from the chain, and how many rows of theirs cannot be read. */
export class LostBlocks {
  rows = 0
  readonly heights = new Set<number>()
  /** Stretches of the chain in which rows are lost, nobody knows of which blocks. */
  readonly stretches: { readonly from: number; readonly to: number }[] = []

  add(lost: Exclude<Salvaged, { readonly row: object }>): void {
    if ('lost' in lost) {
      this.rows += lost.lost
      this.stretches.push(lost)
    } else {
      this.rows += 1
      this.heights.add(lost.height)
    }
  }

  /** The lowest and the highest of them; undefined where nothing is lost. */
  get span(): { readonly from: number; readonly to: number } | undefined {
    let [from, to] = [Number.MAX_SAFE_INTEGER, -1]
    for (const height of this.heights) [from, to] = [Math.min(from, height), Math.max(to, height)]
    for (const one of this.stretches) [from, to] = [Math.min(from, one.from), Math.max(to, one.to)]
    return to < 0 ? undefined : { from, to }
  }
}

/** Writes what can be read of a damaged segment into new ones, which nobody reads before they are listed. */
export class SegmentSalvage {
  readonly lost = new LostBlocks()
  readonly written: ListedSegment[] = []
  #batch = newBatch()
  /** Rows and keys. */
  #read = 0
  #writing: Generator<void, ListedSegment> | undefined

  /** `segment` is open for this alone. `isLeftOut`: rows that were removed when this begins. */
  constructor(
    private readonly segment: Segment,
    private readonly keeper: SegmentKeeper,
    private readonly isLeftOut: (row: number) => boolean,
  ) {}

  /** Some of the work with each step. Throws errors of the disk; then `drop`. */
  *run(): Generator<void> {
    for (const { address, key } of salvagedKeys(this.segment)) {
      this.#batch.addOwnerKey(address, key)
      yield* this.#pause()
    }
    for (const found of salvagedRows(this.segment, this.isLeftOut)) {
      if ('row' in found) this.#batch.add(found.row)
      else this.lost.add(found)
      yield* this.#pause()
    }
    yield* this.#write()
  }

  *#pause(): Generator<void> {
    this.#read += 1
    if (this.#batch.isFull) yield* this.#write()
    else if (this.#read % rowsEach === 0) yield
  }

  *#write(): Generator<void> {
    const batch = this.#batch
    if (batch.count === 0 && batch.ownerKeys.size === 0) return
    this.#writing = this.keeper.writeInSteps(batch)
    this.written.push(yield* this.#writing)
    this.#writing = undefined
    this.#batch = newBatch()
  }

  /** Ends it early, or after it was not listed: nothing is left. */
  drop(): void {
    this.#writing?.return({ number: 0, level: 0, rows: 0, bytes: 0 })
    this.#writing = undefined
    this.keeper.drop(this.written)
  }
}

function newBatch(): RowBatch {
  return new RowBatch({ ...usualLimits, bytes: batchBytes })
}
