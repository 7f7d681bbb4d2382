import type { MappedFile } from '../../native/mapped/mapped-file.js'
import { Residence, Ticks } from './residence.js'

/** A huge page: what the kernel maps at once, and what is fetched ahead of a reader. */
export const windowBytes = 2 * 1024 * 1024

/** Which bytes of a mapped file can be read without waiting for the disk: what is believed of it, else what the system says. */
export class FileResidence {
  readonly here: Residence
  /** Windows whose page tables were filled once. Of pages that stay in memory they stay so, and filling takes long. */
  readonly #filled = new Set<number>()
  /** Keyed by window, the tick until which it is believed not to be all in memory. */
  readonly #apart = new Map<number, number>()

  constructor(
    private readonly file: Pick<MappedFile, 'sizeBytes' | 'isResident'>,
    private readonly ticks: Ticks,
  ) {
    this.here = new Residence(file.sizeBytes, ticks)
  }

  /**
   * Asks for these bytes first: where memory holds a part of the file only, to ask for all pages around them takes longer than to
   * read them. True where nothing has to be waited for.
   */
  has(start: number, end: number): boolean {
    if (this.here.has(start, end)) return true
    if (!this.file.isResident(start, end, false)) return false
    this.here.add(start, end)
    const last = Math.floor((end - 1) / windowBytes)
    for (let window = Math.floor(start / windowBytes); window <= last; window += 1) this.#widen(window)
    return true
  }

  /** Where all of a window is in memory, nobody has to ask for any of it. */
  #widen(window: number): void {
    const { now } = this.ticks
    if (now < (this.#apart.get(window) ?? 0)) return
    const from = window * windowBytes
    const to = Math.min(from + windowBytes, this.file.sizeBytes)
    if (!this.file.isResident(from, to, !this.#filled.has(window))) {
      this.#apart.set(window, now + Ticks.lasting)
      return
    }
    this.#apart.delete(window)
    this.#filled.add(window)
    this.here.add(from, to)
  }
}
