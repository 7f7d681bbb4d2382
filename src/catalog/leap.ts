import type { Row } from './row.js'
import { compareRowKeys } from './row-key.js'
import type { Scan } from './scan.js'

/** One condition of a selection. */
export interface Condition {
  /** The rows that fulfil it. */
  readonly scan: Scan
  /** Whether a row does, by what the row itself says; undefined where only the list can tell. */
  readonly holds?: (row: Row) => boolean
}

/** Reads the row with a key; undefined where the effort is spent. */
export type ReadRow = (key: Buffer) => Row | undefined

/** Rows one by one that are looked at before a list leaps: looking at two costs as much as one block of a list. */
const missesMax = 2

/**
 * Rows that fulfil all conditions and none of `without`. Each list in turn leaps to where the others are, so the
 * work goes with the shortest list, however long the longest is. Where a leap would have to read a block, the row
 * is asked instead: who wants it reads it anyway. A few rows that fail in a row, and the list leaps after all.
 * Without `read` only the lists are asked: where rows are counted, nobody wants them.
 */
export class LeapScan implements Scan {
  row: Buffer | undefined
  readonly #sign: number
  /** Which list stands at the row: the one that leapt last. */
  #lead = 0

  constructor(
    private readonly conditions: readonly Condition[],
    private readonly without: readonly Condition[],
    backwards: boolean,
    private readonly read: ReadRow | undefined,
  ) {
    this.#sign = backwards ? -1 : 1
  }

  seek(target: Uint8Array): void {
    for (const { scan } of this.conditions) scan.seek(target)
    this.#meet()
  }

  next(): void {
    this.#goOn()
    this.#meet()
  }

  isNear(target: Uint8Array): boolean {
    return this.row === undefined || compareRowKeys(this.row, 0, target, 0) * this.#sign >= 0
  }

  #goOn(): Buffer | undefined {
    const lead = this.conditions[this.#lead]
    lead?.scan.next()
    return lead?.scan.row
  }

  #meet(): void {
    for (;;) {
      const row = this.#agree()
      this.row = row
      if (row === undefined || !this.without.some((condition) => this.#fulfils(condition, row))) return
      this.#goOn()
    }
  }

  #agree(): Buffer | undefined {
    const { conditions } = this
    let target = conditions[this.#lead]?.scan.row
    let misses = 0
    for (let agreed = 1, at = this.#lead; agreed < conditions.length; ) {
      at = (at + 1) % conditions.length
      const { scan, holds } = conditions[at] as Condition
      if (target === undefined) return undefined
      if (misses < missesMax && this.read !== undefined && holds !== undefined && !scan.isNear(target)) {
        const row = this.read(target)
        if (row === undefined) return undefined
        if (holds(row)) agreed += 1
        else {
          misses += 1
          target = this.#goOn()
          at = this.#lead
          agreed = 1
        }
        continue
      }
      scan.seek(target)
      if (scan.row === undefined) return undefined
      if (compareRowKeys(scan.row, 0, target, 0) * this.#sign > 0) {
        target = scan.row
        this.#lead = at
        agreed = 1
        misses = 0
      } else agreed += 1
    }
    return target
  }

  #fulfils({ scan, holds }: Condition, key: Buffer): boolean {
    const isFar = scan.row === undefined || !scan.isNear(key)
    const row = isFar && holds !== undefined ? this.read?.(key) : undefined
    if (row !== undefined && holds !== undefined) return holds(row)
    scan.seek(key)
    return scan.row !== undefined && compareRowKeys(scan.row, 0, key, 0) === 0
  }
}
