const pageBytes = 4096
/** Cells of one file at most: those of larger files stand for several pages each. */
const cellsMax = 65_536

/**
 * What beliefs of one thread are counted by: asking the clock would cost more than what they save. In shared memory, so that code
 * that is not JavaScript can look.
 */
export class Ticks {
  /** Ticks for which a belief lasts. */
  static readonly lasting = 4
  /** The present tick, and `lasting`. */
  readonly numbers = new Int32Array(new SharedArrayBuffer(8))

  constructor() {
    this.numbers.set([1, Ticks.lasting])
  }

  get now(): number {
    return this.numbers[0] ?? 0
  }

  /** To be called at the intervals of a timer. */
  next(): void {
    this.numbers[0] = this.now + 1
  }
}

/**
 * Which bytes of a file are believed to be in memory, and until when: asking the system for each read would cost more than the
 * read. In shared memory: the server looks and writes there, too (native/server/region.h).
 */
export class Residence {
  /** Bytes that one cell stands for. */
  readonly cellBytes: number
  /** The tick until which they are believed to be in memory. */
  readonly cells: Int32Array

  constructor(
    private readonly sizeBytes: number,
    readonly ticks: Ticks,
  ) {
    let cellBytes = pageBytes
    while (cellBytes * cellsMax < sizeBytes) cellBytes *= 2
    this.cellBytes = cellBytes
    this.cells = new Int32Array(new SharedArrayBuffer(4 * Math.max(1, Math.ceil(sizeBytes / cellBytes))))
  }

  has(start: number, end: number): boolean {
    const { now } = this.ticks
    const last = Math.floor((end - 1) / this.cellBytes)
    for (let cell = Math.floor(start / this.cellBytes); cell <= last; cell += 1) {
      if ((this.cells[cell] ?? 0) <= now) return false
    }
    return true
  }

  /** The system stated that these bytes are in memory, and so the whole of their pages. */
  add(start: number, end: number): void {
    const first = Math.ceil((start - (start % pageBytes)) / this.cellBytes)
    const known = end >= this.sizeBytes ? this.cells.length * this.cellBytes : end + pageBytes - 1
    const last = Math.floor((known - (known % pageBytes)) / this.cellBytes) - 1
    if (last >= first) this.cells.fill(this.ticks.now + Ticks.lasting, first, last + 1)
  }
}
