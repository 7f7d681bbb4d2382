const pageBytes = 4096
const ticks = 4

/**
 * Which pages of a file are believed to be in memory, and until when: asking the system for each read would cost more than the
 * read. In shared memory, so that code that is not JavaScript can look; 0: not believed.
 */
export class Residence {
  static readonly pageBytes = pageBytes
  /** For so many ticks a page is believed to be in memory. */
  static readonly ticks = ticks

  /** Per page the tick at which the belief ends. */
  readonly pages: Int32Array
  /** First and last page of what was believed, by the tick at which that ends. */
  readonly #ending: number[][] = Array.from({ length: ticks + 1 }, () => [])

  constructor(sizeBytes: number) {
    this.pages = new Int32Array(new SharedArrayBuffer(4 * Math.ceil(sizeBytes / pageBytes)))
  }

  has(start: number, end: number): boolean {
    const last = Math.floor((end - 1) / pageBytes)
    for (let page = Math.floor(start / pageBytes); page <= last; page += 1) {
      if (this.pages[page] === 0) return false
    }
    return true
  }

  add(start: number, end: number, now: number): void {
    const first = Math.floor(start / pageBytes)
    const last = Math.floor((end - 1) / pageBytes)
    const until = now + ticks
    this.pages.fill(until, first, last + 1)
    this.#ending[until % (ticks + 1)]?.push(first, last)
  }

  /** To be called at each tick, with its number. */
  forget(now: number): void {
    const over = this.#ending[now % (ticks + 1)]!
    for (let at = 0; at < over.length; at += 2) {
      const last = over[at + 1]!
      for (let page = over[at]!; page <= last; page += 1) {
        if (this.pages[page] === now) this.pages[page] = 0
      }
    }
    over.length = 0
  }
}
