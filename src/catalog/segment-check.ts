import { DamagedSegment } from '../index/checked-file.js'
import { Segment } from '../index/segment.js'
import { findRow } from './ids.js'
import { type IndexTables, weaveKey } from './index-tables.js'
import { compareRowKeys, heightStart, rowKey } from './row-key.js'
import { type LiveSegment, rowOf } from './segment-rows.js'
import { lostStretches } from './segment-salvage.js'
import { hasTransaction } from './set-check.js'

const noId = Buffer.alloc(32)

/** Checks the segments of the index: against their checksums, against themselves, and against the tables. */
export class SegmentCheck {
  /** Transactions whose place in the weave is known. */
  placed = 0
  #removed = 0

  constructor(
    private readonly tables: IndexTables,
    private readonly live: readonly LiveSegment[],
    private readonly expect: (right: boolean, problem: string) => void,
  ) {}

  /** Number of rows, without those that were removed. */
  run(): number {
    let rows = 0
    for (const one of this.live) {
      const { path } = one.segment.file
      const damaged = [...one.segment.damaged()]
      this.expect(
        damaged.length === 0,
        `${path} has ${damaged.length} damaged pages: ${damaged.slice(0, 9)}${lostIn(one, damaged)}`,
      )
      try {
        rows += this.#rows(one)
      } catch (error) {
        if (!(error instanceof DamagedSegment)) throw error
        this.expect(false, error.message)
      }
    }
    const recorded =
      this.live.reduce((sum, { segment }) => sum + segment.count, 0) - this.tables.segments.count()
    this.expect(recorded === this.#removed, `${this.#removed} removed rows of segments, of ${recorded}`)
    return rows
  }

  #rows(one: LiveSegment): number {
    const { segment, isRemoved } = one
    let rows = 0
    let before: Buffer | undefined
    for (let number = 0; number < segment.count; number += 1) {
      const key = segment.keyOf(number)
      const isBehind = before === undefined || compareRowKeys(before, 0, key, 0) < 0
      this.expect(isBehind, `row ${number} of ${segment.file.path} is out of order`)
      if (isRemoved?.(number) === true) this.#removed += 1
      else {
        rows += 1
        this.#row(one, number, before === undefined || before.compare(key, 0, 7, 0, 7) !== 0)
      }
      before = key
    }
    return rows
  }

  /** `isFirst`: of its place in the chain. */
  #row(one: LiveSegment, number: number, isFirst: boolean): void {
    const { tables } = this
    const row = rowOf(one, number)
    const name = Buffer.from(row.id).toString('base64url')
    this.expect(one.segment.find(row.id) === number, `no id leads to ${name}`)
    const inTables = tables.sets
      .live()
      .some(({ tables: set, span }) => findRow(set, set.runs.ids, row.id, span) !== undefined)
    this.expect(!inTables, `${name} is in the tables, too`)
    const end = row.transfer?.weaveEnd ?? 0
    if (end > 0) {
      this.placed += 1
      const there = tables.weave.view(weaveKey(end))
      const isListed = there !== undefined && Buffer.compare(there, row.key) === 0
      this.expect(isListed, `${name} ends at ${end} of the weave and is not listed there`)
    }
    if (!isFirst || row.height === undefined) return
    const block = tables.blocks.view(heightStart(row.height).subarray(0, 4))
    this.expect(block !== undefined, `${name} is in block ${row.height}, which is not there`)
    if (!row.isItem) return
    const start = rowKey(row.height, row.index, false, noId)
    const hasRoot = hasTransaction(tables, start)
    this.expect(
      hasRoot || tables.segments.transactionIn(row.height, row.index) !== undefined,
      `${name} is an item of no transaction`,
    )
  }
}

/** Which rows damaged pages take away, in words. */
function lostIn({ segment, isRemoved }: LiveSegment, damaged: readonly number[]): string {
  if (damaged.length === 0) return ''
  const own = Segment.open(segment.file.path)
  if (own === undefined) return '; the file is gone'
  try {
    const steps = lostStretches(own, isRemoved, () => true)
    let step = steps.next()
    while (step.done !== true) step = steps.next()
    const [first, last] = [step.value[0], step.value.at(-1)]
    if (first === undefined || last === undefined) return '; no row is lost'
    const lost = step.value.reduce((sum, stretch) => sum + stretch.lost, 0)
    return `; ${lost} rows of blocks ${first.from} to ${last.to}`
  } finally {
    own.close()
  }
}
