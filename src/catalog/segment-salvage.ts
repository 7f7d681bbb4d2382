import { DamagedSegment } from '../index/checked-file.js'
import { RowBatch, usualLimits } from '../index/row-batch.js'
import { rowStretches, rowsOfStretch, salvagedKeys, salvagedRows } from '../index/salvaged-rows.js'
import type { Segment } from '../index/segment.js'
import type { SegmentKeeper } from '../index/segment-keeper.js'
import type { ListedSegment } from '../index/segment-list.js'

/** Rows or public keys that are read in one step, at most. */
const rowsEach = 1024
/** Bytes of one batch, as of a flush. */
const batchBytes = 64 * 2 ** 20

type IsLeftOut = (row: number) => boolean

/** Blocks that are to be had anew from the chain, and the stretch in which a segment has all its rows of them. */
export interface LostStretch {
  readonly from: number
  readonly to: number
  readonly first: number
  /** The last row, and one. */
  readonly end: number
  /** Rows that cannot be read. */
  readonly lost: number
}

/**
 * Blocks of which a damaged segment cannot say all rows, in the order of the chain; also those that are not in the index: another
 * damaged segment took them away. Some rows with each step. `isLeftOut`: rows that were removed.
 */
export function* lostStretches(
  segment: Segment,
  isLeftOut: IsLeftOut | undefined,
  hasBlock: (height: number) => boolean,
): Generator<void, LostStretch[]> {
  const all: LostStretch[] = []
  let [height, heightFirst, read] = [-1, 0, 0]
  for (const stretch of rowStretches(segment)) {
    const { first, end, from, to, isHidden } = stretch
    if (from !== height) heightFirst = first
    height = to
    let [lost, found] = [0, 0]
    for (const one of rowsOfStretch(segment, stretch, isLeftOut)) {
      found += 1
      if ('lost' in one) lost += one.lost
      read += 1
      if (read % rowsEach === 0) yield
    }
    const isGone = lost > 0 || (found > 0 && !hasBlock(from))
    const last = all.at(-1)
    // Of the same block, or the next one is lost, too.
    if (last !== undefined && from <= (isGone ? last.to + 1 : last.to)) {
      all[all.length - 1] = { ...last, to: isGone ? to : last.to, end, lost: last.lost + lost }
    } else if (isGone) all.push({ from, to, first: heightFirst, end, lost })
    // Nobody knows where the rows of the highest of these blocks begin.
    if (isHidden && to !== from) heightFirst = first
  }
  return all
}

/** Writes what counts of a damaged segment into new ones, which nobody reads before they are listed. */
export class SegmentSalvage {
  readonly written: ListedSegment[] = []
  #batch = newBatch()
  /** Rows and keys. */
  #read = 0
  #writing: Generator<void, ListedSegment> | undefined

  /** `segment` is open for this alone. `isLeftOut`: all rows that cannot be read, and those that were removed. */
  constructor(
    private readonly segment: Segment,
    private readonly keeper: SegmentKeeper,
    private readonly isLeftOut: IsLeftOut | undefined,
  ) {}

  /** Some of the work with each step. Throws errors of the disk, and a DamagedSegment; then `drop`. */
  *run(): Generator<void> {
    for (const { address, key } of salvagedKeys(this.segment)) {
      this.#batch.addOwnerKey(address, key)
      yield* this.#pause()
    }
    for (const found of salvagedRows(this.segment, this.isLeftOut)) {
      if ('lost' in found) throw new DamagedSegment(this.segment.file.path, 0, 'has lost more rows meanwhile')
      this.#batch.add(found.row)
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
