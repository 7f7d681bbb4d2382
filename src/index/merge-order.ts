import type { IdEntry } from './id-table.js'
import type { Segment } from './segment.js'

/** In place of a number: the row is left out. */
export const leftOut = 0xffff_ffff

/** Steps of a merge between two pauses. */
export const stepsPerPause = 4096

/** A segment that is merged, and which of its rows are gone. */
export interface MergeSource {
  readonly segment: Segment
  /** Rows that were removed since it was written. */
  readonly isRemoved?: (row: number) => boolean
}

/**
 * The numbers that the rows of one segment get in the new one. Where all rows stay together, as in a segment whose blocks are all
 * before or behind those of the others, one distance says it: no memory is read in no order, and none is kept.
 */
export class RowNumbers {
  /** Empty where the distance says all. */
  #numbers: Uint32Array = new Uint32Array(0)
  /** From the number of a row to its new one. */
  #distance = -1
  /** Rows in front of this one have their numbers. */
  #next = 0
  /** A bit for each row, from the first one on that is left out. */
  #gone: Uint8Array = new Uint8Array(0)

  constructor(readonly rows: number) {}

  /** The number of a row, or `leftOut`: once all have theirs. */
  of(row: number): number {
    return this.#numbers.length === 0 ? this.#distance + row : (this.#numbers[row] as number)
  }

  isLeftOut(row: number): boolean {
    return this.#gone.length > 0 && (((this.#gone[row >>> 3] as number) >>> (row & 7)) & 1) === 1
  }

  /** The row gets no number. Before any has one. */
  leaveOut(row: number): void {
    if (this.#gone.length === 0) this.#gone = new Uint8Array(Math.ceil(this.rows / 8))
    this.#gone[row >>> 3] = (this.#gone[row >>> 3] as number) | (1 << (row & 7))
  }

  /** Gives the next row that is not left out its number: in their order. */
  set(row: number, number: number): void {
    if (row === 0) this.#distance = number
    if (this.#numbers.length === 0 && this.#distance + row !== number) this.#expand()
    if (this.#numbers.length > 0) this.#numbers[row] = number
    this.#next = row + 1
  }

  /** One number for each row from here on. */
  #expand(): void {
    this.#numbers = new Uint32Array(this.rows).fill(leftOut)
    for (let row = 0; row < this.#next; row += 1) {
      if (!this.isLeftOut(row)) this.#numbers[row] = this.#distance + row
    }
  }

  /** All rows have their numbers. */
  settle(): void {
    if (this.#gone.length > 0 && this.#numbers.length === 0) this.#expand()
  }
}

/** Segments on their way to one: each row has its number there. */
export class MergeOrder {
  /** Indexed by segment: the numbers of its rows in the new one. */
  readonly numbers: readonly RowNumbers[]
  count = 0
  readonly #sources: readonly MergeSource[]

  constructor(sources: readonly MergeSource[]) {
    this.#sources = sources
    this.numbers = sources.map(({ segment }) => new RowNumbers(segment.count))
  }

  /** Gives all rows their numbers: those of one id are one row, the one that comes first in the chain. */
  *run(): Generator<void> {
    for (const [at, { segment, isRemoved }] of this.#sources.entries()) {
      if (isRemoved === undefined) continue
      for (let row = 0; row < segment.count; row += 1) if (isRemoved(row)) this.#of(at).leaveOut(row)
    }
    yield* this.#leaveOutDuplicates()
    yield* this.#number()
    for (const numbers of this.numbers) numbers.settle()
  }

  #of(at: number): RowNumbers {
    return this.numbers[at] as RowNumbers
  }

  *#leaveOutDuplicates(): Generator<void> {
    let [steps, before, beforeAt, beforeRow] = [0, -1, -1, -1]
    for (const { at, prefix, row } of this.ids()) {
      steps += 1
      if (steps % stepsPerPause === 0) yield
      const numbers = this.#of(at)
      if (numbers.isLeftOut(row)) continue
      if (prefix === before && this.#isSameId(beforeAt, beforeRow, at, row)) {
        if (this.#comesBefore(beforeAt, beforeRow, at, row)) {
          numbers.leaveOut(row)
          continue
        }
        this.#of(beforeAt).leaveOut(beforeRow)
      }
      before = prefix
      beforeAt = at
      beforeRow = row
    }
  }

  #isSameId(one: number, oneRow: number, other: number, otherRow: number): boolean {
    return this.#compareIds(one, oneRow, other, otherRow) === 0
  }

  #compareIds(one: number, oneRow: number, other: number, otherRow: number): number {
    return this.#segment(one).compareId(oneRow, this.#segment(other).idOf(otherRow))
  }

  /** Whether a row comes before another one of the same id in the chain; of one place, that of the earlier segment. */
  #comesBefore(one: number, oneRow: number, other: number, otherRow: number): boolean {
    const [left, right] = [this.#segment(one).groups.of(oneRow), this.#segment(other).groups.of(otherRow)]
    const order = left.height - right.height || left.place - right.place
    return order === 0 ? one < other : order < 0
  }

  #segment(at: number): Segment {
    const source = this.#sources[at]
    if (source === undefined) throw new RangeError(`no segment ${at} is merged`)
    return source.segment
  }

  /** The rows of all segments in the order of their ids. Valid until the next one. */
  *ids(): Generator<IdEntry & { readonly at: number }> {
    const heads = this.#sources.map(({ segment }) =>
      segment.count === 0 ? undefined : segment.ids.entries(),
    )
    const prefixes = new Float64Array(heads.length)
    const rows = new Uint32Array(heads.length)
    const advance = (at: number): void => {
      const next = heads[at]?.next()
      prefixes[at] = next === undefined || next.done === true ? Number.POSITIVE_INFINITY : next.value.prefix
      if (next !== undefined && next.done !== true) rows[at] = next.value.row
    }
    for (let at = 0; at < heads.length; at += 1) advance(at)
    const found = { at: 0, prefix: 0, row: 0 }
    for (;;) {
      let least = 0
      for (let at = 1; at < heads.length; at += 1) {
        const order = (prefixes[at] as number) - (prefixes[least] as number)
        if (order > 0 || Number.isNaN(order)) continue
        if (order < 0 || this.#compareIds(at, rows[at] as number, least, rows[least] as number) < 0)
          least = at
      }
      const prefix = prefixes[least]
      if (prefix === undefined || prefix === Number.POSITIVE_INFINITY) return
      found.at = least
      found.prefix = prefix
      found.row = rows[least] as number
      yield found
      advance(least)
    }
  }

  /** Numbers the rows in the order of the chain: groups of different places as a whole, those of one place by their ids. */
  *#number(): Generator<void> {
    const next = this.#sources.map(() => 0)
    for (;;) {
      const heads: number[] = []
      let [height, place] = [Number.POSITIVE_INFINITY, 0]
      for (const [at, { segment }] of this.#sources.entries()) {
        if ((next[at] as number) >= segment.groups.count) continue
        const group = segment.groups.group(next[at] as number)
        const order = group.height - height || group.place - place
        if (order < 0) heads.length = 0
        if (order <= 0) {
          heads.push(at)
          height = group.height
          place = group.place
        }
      }
      if (heads.length === 0) return
      yield* this.#numberGroups(heads, next)
      for (const at of heads) next[at] = (next[at] as number) + 1
    }
  }

  *#numberGroups(heads: readonly number[], next: readonly number[]): Generator<void> {
    const groups = heads.map((at) => this.#segment(at).groups.group(next[at] as number))
    const rows = groups.map(({ first }) => first)
    for (let steps = 1; ; steps += 1) {
      if (steps % stepsPerPause === 0) yield
      let least = -1
      for (let head = 0; head < heads.length; head += 1) {
        const row = rows[head] as number
        if (row >= (groups[head]?.end as number)) continue
        const isLess =
          least < 0 ||
          this.#compareIds(heads[head] as number, row, heads[least] as number, rows[least] as number) < 0
        if (isLess) least = head
      }
      if (least < 0) return
      const numbers = this.#of(heads[least] as number)
      const row = rows[least] as number
      rows[least] = row + 1
      if (numbers.isLeftOut(row)) continue
      numbers.set(row, this.count)
      this.count += 1
    }
  }
}
