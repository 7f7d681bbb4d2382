import { orderOf } from '../store/sort-records.js'

/** Words that one merge takes out of rows at most: twelve bytes of memory each. More stay in their rows, which is as true. */
export const lateCodesMax = 2 ** 21

const numbersEach = 3

/** Words that stand in rows of one segment and get a number by a merge, because another segment has them, too. */
export class LateCodes {
  #count = 0
  /** Row, place of the word in it, and number of the word in the new segment. */
  #entries: Uint32Array = new Uint32Array(numbersEach * 1024)
  #order: Uint32Array = new Uint32Array(0)
  #next = 0

  /** The word with this number in the new segment is the one at this place of a row. */
  add(row: number, place: number, number: number): void {
    const at = numbersEach * this.#count
    if (at === this.#entries.length) {
      const larger = new Uint32Array(2 * at)
      larger.set(this.#entries)
      this.#entries = larger
    }
    this.#entries[at] = row
    this.#entries[at + 1] = place
    this.#entries[at + 2] = number
    this.#count += 1
  }

  /** Nothing is added from here on. */
  settle(): void {
    this.#order = orderOf(this.#entries, numbersEach, this.#count)
    this.#next = 0
  }

  /** The number of the word at this place of a row; -1 where it stays there. Rows and places are requested in their order. */
  numberOf(row: number, place: number): number {
    for (; this.#next < this.#count; this.#next += 1) {
      const at = numbersEach * (this.#order[this.#next] as number)
      const order = (this.#entries[at] as number) - row || (this.#entries[at + 1] as number) - place
      if (order > 0) return -1
      if (order < 0) continue
      this.#next += 1
      return this.#entries[at + 2] as number
    }
    return -1
  }
}
