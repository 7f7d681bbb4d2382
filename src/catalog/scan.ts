import { compareRowKeys, rowKeyBytes } from './row-key.js'

/** A sorted list of row keys that is read in one direction, one at a time, skipping what is not wanted. */
export interface Scan {
  /** Key of the row where the scan stands; undefined at its end. */
  readonly row: Buffer | undefined
  /** Goes to the first row at or behind `target`, in the scan's direction. Never goes back. */
  seek(target: Uint8Array): void
  /** Goes on by one row. */
  next(): void
  /** True where `seek` need not read anything. */
  isNear(target: Uint8Array): boolean
}

/** Where the row keys of one list come from, some at a time. */
export interface Blocks {
  /**
   * Row keys in chain order, one behind the other, among them the first at or behind `row` in the direction;
   * undefined where there is none.
   */
  from(row: Uint8Array, backwards: boolean): Buffer | undefined
}

/** The key just behind or (`backwards`) just before this one; undefined past either end. */
export function beside(key: Uint8Array, backwards: boolean): Buffer | undefined {
  const next = Buffer.from(key)
  for (let at = rowKeyBytes - 1; at >= 0; at -= 1) {
    const byte = next[at] as number
    if (backwards ? byte > 0 : byte < 0xff) {
      next[at] = backwards ? byte - 1 : byte + 1
      return next
    }
    next[at] = backwards ? 0xff : 0
  }
  return undefined
}

/** Position (in rows) of the first row key in `rows` at or behind `key`. */
export function lowerBound(rows: Uint8Array, key: Uint8Array): number {
  let low = 0
  let high = rows.length / rowKeyBytes
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareRowKeys(rows, middle * rowKeyBytes, key, 0) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** Reads one list, block by block. Begins before its first row: seek before anything else. */
export class BlockScan implements Scan {
  row: Buffer | undefined
  #rows: Buffer = Buffer.alloc(0)
  #at = 0

  constructor(
    private readonly blocks: Blocks,
    private readonly backwards: boolean,
  ) {}

  /** Keys of the row where it stands and of those behind it that are read already, in order, at most so many. */
  coming(limit: number): Buffer[] {
    if (this.row === undefined) return []
    const count = this.#rows.length / rowKeyBytes
    const [from, to] = this.backwards
      ? [Math.max(0, this.#at + 1 - limit), this.#at + 1]
      : [this.#at, Math.min(count, this.#at + limit)]
    return Array.from({ length: to - from }, (_, at) =>
      this.#rows.subarray((from + at) * rowKeyBytes, (from + at + 1) * rowKeyBytes),
    )
  }

  seek(target: Uint8Array): void {
    if (this.row !== undefined && this.#reached(this.row, target)) return
    if (!this.#holds(target) && !this.#load(target)) return
    this.#standAt(target)
  }

  isNear(target: Uint8Array): boolean {
    return this.row === undefined || this.#reached(this.row, target) || this.#holds(target)
  }

  /** Whether the block has a row at or behind `target`. */
  #holds(target: Uint8Array): boolean {
    const farEnd = this.backwards ? 0 : this.#rows.length - rowKeyBytes
    if (this.#rows.length === 0) return false
    const order = compareRowKeys(this.#rows, farEnd, target, 0)
    return this.backwards ? order <= 0 : order >= 0
  }

  next(): void {
    const at = this.#at + (this.backwards ? -1 : 1)
    if (at >= 0 && at * rowKeyBytes < this.#rows.length) this.#stand(at)
    else this.#nextBlock()
  }

  /**
   * Counts this row and those behind it in the same block that do not pass `end` (inclusive), and goes on
   * behind them.
   */
  countBlock(end: Uint8Array): number {
    const row = this.row
    if (row === undefined || (compareRowKeys(row, 0, end, 0) !== 0 && this.#reached(row, end))) {
      this.row = undefined
      return 0
    }
    const rows = this.#rows.length / rowKeyBytes
    const at = lowerBound(this.#rows, end)
    const exact = at < rows && compareRowKeys(this.#rows, at * rowKeyBytes, end, 0) === 0
    const count = this.backwards ? this.#at - at + 1 : at - this.#at + (exact ? 1 : 0)
    this.#nextBlock()
    return count
  }

  #nextBlock(): void {
    const edge = this.backwards ? 0 : this.#rows.length - rowKeyBytes
    const target = beside(this.#rows.subarray(edge, edge + rowKeyBytes), this.backwards)
    if (target === undefined) this.row = undefined
    else if (this.#load(target)) this.#standAt(target)
  }

  #load(target: Uint8Array): boolean {
    const rows = this.blocks.from(target, this.backwards)
    if (rows === undefined) this.row = undefined
    else this.#rows = rows
    return rows !== undefined
  }

  /** Stands at the first row at or behind `target` of the block, which has one. */
  #standAt(target: Uint8Array): void {
    const at = lowerBound(this.#rows, target)
    const exact =
      at * rowKeyBytes < this.#rows.length && compareRowKeys(this.#rows, at * rowKeyBytes, target, 0) === 0
    this.#stand(this.backwards && !exact ? at - 1 : at)
  }

  #stand(at: number): void {
    this.#at = at
    this.row = this.#rows.subarray(at * rowKeyBytes, (at + 1) * rowKeyBytes)
  }

  #reached(row: Uint8Array, target: Uint8Array): boolean {
    const order = compareRowKeys(row, 0, target, 0)
    return this.backwards ? order <= 0 : order >= 0
  }
}

/** A list that is in memory: row keys in chain order, one behind the other. */
export function listed(rows: Buffer): Blocks {
  return {
    from(row, backwards) {
      if (rows.length === 0) return undefined
      const edge = backwards ? 0 : rows.length - rowKeyBytes
      const order = compareRowKeys(rows, edge, row, 0)
      return (backwards ? order <= 0 : order >= 0) ? rows : undefined
    },
  }
}

/** Rows that are in any of the lists, each once: a heap of scans, the nearest on top. */
export class UnionScan implements Scan {
  readonly #heap: Scan[] = []
  readonly #sign: number
  #waiting: readonly Scan[]

  constructor(scans: readonly Scan[], backwards: boolean) {
    this.#waiting = scans
    this.#sign = backwards ? -1 : 1
  }

  get row(): Buffer | undefined {
    return this.#heap[0]?.row
  }

  seek(target: Uint8Array): void {
    for (const scan of this.#waiting) {
      scan.seek(target)
      if (scan.row !== undefined) this.#push(scan)
    }
    this.#waiting = []
    for (;;) {
      const top = this.#heap[0]
      if (top?.row === undefined || compareRowKeys(top.row, 0, target, 0) * this.#sign >= 0) return
      top.seek(target)
      this.#sink()
    }
  }

  isNear(target: Uint8Array): boolean {
    const { row } = this
    return row === undefined || compareRowKeys(row, 0, target, 0) * this.#sign >= 0
  }

  next(): void {
    const row = this.row
    if (row === undefined) return
    for (;;) {
      const top = this.#heap[0]
      if (top?.row === undefined || compareRowKeys(top.row, 0, row, 0) !== 0) return
      top.next()
      this.#sink()
    }
  }

  #before(one: number, other: number): boolean {
    const a = this.#heap[one]?.row
    const b = this.#heap[other]?.row
    return a !== undefined && b !== undefined && compareRowKeys(a, 0, b, 0) * this.#sign < 0
  }

  #swap(one: number, other: number): void {
    const kept = this.#heap[one] as Scan
    this.#heap[one] = this.#heap[other] as Scan
    this.#heap[other] = kept
  }

  #push(scan: Scan): void {
    let at = this.#heap.push(scan) - 1
    while (at > 0 && this.#before(at, (at - 1) >> 1)) {
      this.#swap(at, (at - 1) >> 1)
      at = (at - 1) >> 1
    }
  }

  /** Puts the top where it belongs after it moved, or drops it at its end. */
  #sink(): void {
    if (this.#heap[0]?.row === undefined) {
      const last = this.#heap.pop()
      if (this.#heap.length === 0 || last === undefined) return
      this.#heap[0] = last
    }
    for (let at = 0; ; ) {
      let least = at
      if (this.#before(2 * at + 1, least)) least = 2 * at + 1
      if (this.#before(2 * at + 2, least)) least = 2 * at + 2
      if (least === at) return
      this.#swap(at, least)
      at = least
    }
  }
}
