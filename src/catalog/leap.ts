import type { Effort } from './effort.js'
import { compareRowKeys } from './row-key.js'
import type { Scan } from './scan.js'

/** One condition of a selection. */
export interface Condition<R> {
  /** The rows that fulfil it. */
  readonly scan: Scan
  /** Whether a row does, by what the row itself says; undefined where only the list can tell. */
  readonly holds?: (row: R) => boolean
  /** Rows that fulfil it; undefined where that is not known. */
  readonly count?: number
}

/** Reads the row with a key. */
export type ReadRow<R> = (key: Buffer) => R

/** What a scan looks for. */
export interface Leaping<R> {
  /** At least one. */
  readonly conditions: readonly Condition<R>[]
  readonly without: readonly Condition<R>[]
  /** What no list decides: which is examined for rows that fulfil all else. */
  readonly filters: readonly ((key: Buffer) => boolean)[]
  readonly backwards: boolean
  /** Nothing behind this key is wanted. */
  readonly end: Uint8Array
  readonly effort: Effort
  /** To look into a list takes a small part of the time of reading a row: rows are checked only where most of them pass. */
  readonly areListsNear?: boolean
  /** Absent: only the lists are searched: where rows are counted, nobody wants them. */
  readonly read?: ReadRow<R>
}

/** Rows one by one that are looked at before a list leaps: looking at two costs as much as one block of a list. */
const missesMax = 2
/** Where lists are near: a row is checked while at most one in so many that were looked at did not pass. */
const passesPerMiss = 8

/**
 * Rows that fulfil all conditions and filters and none of `without`. Each list in turn leaps to the position of the others, so
 * the work depends on the shortest list, however long the longest is. Where a leap would read a block, the row is checked
 * instead, because it is read anyway. After a few failed rows the list leaps nevertheless.
 *
 * It stops where the effort is spent, but always advances first. So repeated calls from `cutAt` reach the end, however small the
 * efforts are.
 */
export class LeapScan<R> implements Scan {
  row: Buffer | undefined
  /** Where it stopped for want of effort: no row before this key was left out. Undefined: it did not stop so. */
  cutAt: Buffer | undefined
  readonly #sign: number
  /** Which list stands at the row: the one that leapt last. */
  #lead = 0
  /** The scan stands behind the key that it began with. */
  #hasMoved = false
  /** Rows that were looked at for another condition, and those of them that did not fulfil it. */
  #looked = 0
  #missed = 0

  constructor(private readonly leaping: Leaping<R>) {
    this.#sign = leaping.backwards ? -1 : 1
  }

  /** The list that stands at the row. */
  get lead(): Scan | undefined {
    return this.leaping.conditions[this.#lead]?.scan
  }

  seek(target: Uint8Array): void {
    const { conditions } = this.leaping
    this.#hasMoved = false
    for (const { scan } of conditions) scan.seek(target)
    const row = conditions[this.#lead]?.scan.row
    this.#hasMoved = row !== undefined && compareRowKeys(row, 0, target, 0) !== 0
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
    const lead = this.leaping.conditions[this.#lead]
    this.#hasMoved = true
    lead?.scan.next()
    return lead?.scan.row
  }

  /** Stands at the next row that is wanted, at its end, or where the effort is spent. */
  #meet(): void {
    const { without, filters } = this.leaping
    for (;;) {
      const row = this.#agree()
      this.row = row
      if (row === undefined) return
      const isOut = without.some((condition) => this.#fulfils(condition, row))
      if (!isOut && filters.every((holds) => holds(row))) return
      this.#goOn()
    }
  }

  /** Whether rows are worth being checked, by how many of those so far did not pass. */
  get #doPass(): boolean {
    return this.leaping.areListsNear !== true || this.#missed * passesPerMiss <= this.#looked
  }

  /** Whether nothing is to be looked at from `target` on. */
  #stops(target: Buffer): boolean {
    const { end, effort } = this.leaping
    if (compareRowKeys(target, 0, end, 0) * this.#sign > 0) return true
    if (!this.#hasMoved || !effort.spent) return false
    this.cutAt = target
    return true
  }

  #agree(): Buffer | undefined {
    const { conditions, read } = this.leaping
    let target = conditions[this.#lead]?.scan.row
    let misses = 0
    if (target === undefined || this.#stops(target)) return undefined
    for (let agreed = 1, at = this.#lead; agreed < conditions.length; ) {
      at = (at + 1) % conditions.length
      const { scan, holds } = conditions[at] as Condition<R>
      this.#looked += 1
      const isChecked = misses < missesMax && this.#doPass && read !== undefined && holds !== undefined
      if (isChecked && !scan.isNear(target)) {
        if (holds(read(target))) agreed += 1
        else {
          misses += 1
          this.#missed += 1
          target = this.#goOn()
          if (target === undefined || this.#stops(target)) return undefined
          at = this.#lead
          agreed = 1
        }
        continue
      }
      scan.seek(target)
      if (scan.row === undefined) return undefined
      if (compareRowKeys(scan.row, 0, target, 0) * this.#sign > 0) {
        target = scan.row
        this.#missed += 1
        this.#hasMoved = true
        if (this.#stops(target)) return undefined
        this.#lead = at
        agreed = 1
        misses = 0
      } else agreed += 1
    }
    return target
  }

  #fulfils({ scan, holds }: Condition<R>, key: Buffer): boolean {
    const isFar = scan.row === undefined || !scan.isNear(key)
    const { read } = this.leaping
    if (isFar && holds !== undefined && read !== undefined) return holds(read(key))
    scan.seek(key)
    return scan.row !== undefined && compareRowKeys(scan.row, 0, key, 0) === 0
  }
}
