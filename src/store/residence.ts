const pageBytes = 4096
/** Cells of one file at most: those of larger files stand for several pages each. */
const cellsMax = 65_536
const ticks = 4

/**
 * Which bytes of a file are believed to be in memory, and until when: asking the system for each read would cost more than the
 * read. In shared memory, so that code that is not JavaScript can look; 0: not believed.
 */
export class Residence {
  /** For so many ticks bytes are believed to be in memory. */
  static readonly ticks = ticks

  /** Bytes that one cell stands for. */
  readonly cellBytes: number
  /** The tick at which the belief ends. */
  readonly cells: Int32Array
  /** First and last cell of what was believed, by the tick at which that ends. */
  readonly #ending: number[][] = Array.from({ length: ticks + 1 }, () => [])

  constructor(private readonly sizeBytes: number) {
    let cellBytes = pageBytes
    while (cellBytes * cellsMax < sizeBytes) cellBytes *= 2
    this.cellBytes = cellBytes
    this.cells = new Int32Array(new SharedArrayBuffer(4 * Math.max(1, Math.ceil(sizeBytes / cellBytes))))
  }

  has(start: number, end: number): boolean {
    const last = Math.floor((end - 1) / this.cellBytes)
    for (let cell = Math.floor(start / this.cellBytes); cell <= last; cell += 1) {
      if (this.cells[cell] === 0) return false
    }
    return true
  }

  /** The system said that these bytes are in memory, and so the whole of their pages. */
  add(start: number, end: number, now: number): void {
    const first = Math.ceil((start - (start % pageBytes)) / this.cellBytes)
    const known = end >= this.sizeBytes ? this.cells.length * this.cellBytes : end + pageBytes - 1
    const last = Math.floor((known - (known % pageBytes)) / this.cellBytes) - 1
    if (last < first) return
    const until = now + ticks
    this.cells.fill(until, first, last + 1)
    this.#ending[until % (ticks + 1)]?.push(first, last)
  }

  /** To be called at each tick, with its number. */
  forget(now: number): void {
    const over = this.#ending[now % (ticks + 1)]
    if (over === undefined || over.length === 0) return
    for (let at = 0; at < over.length; at += 2) {
      const last = over[at + 1] ?? -1
      for (let cell = over[at] ?? 0; cell <= last; cell += 1) {
        if (this.cells[cell] === now) this.cells[cell] = 0
      }
    }
    over.length = 0
  }
}
