import { randomBytes } from 'node:crypto'
import { idNumber, keyNumbers, type RowBatch } from '../index/row-batch.js'

const idWords = 8
/** No row has the id, and its place in the chain is free. */
export const absent = -1
/** Another row has a key that is the same: see row-key.ts. */
export const placeTaken = -2

/** The ids of the rows of a batch: open addressing, four bytes a slot. */
export class BulkIds {
  /** Number of a row, and one. */
  #slots = new Int32Array(1 << 15)
  #count = 0
  /** The slot at which the last look ended. */
  #slot = 0
  readonly #id = new Uint32Array(idWords)
  readonly #secret = new Int32Array(randomBytes(16).buffer.slice(0, 16))

  constructor(private readonly batch: RowBatch) {}

  /** Forgets all rows. */
  clear(): void {
    this.#slots.fill(0)
    this.#count = 0
  }

  /** The row with this id (32 bytes); else `absent`, or `placeTaken` by a row with another id and the same key. */
  look(id: Uint8Array, height: number, place: number): number {
    const wanted = this.#id
    for (let word = 0; word < idWords; word += 1) {
      const at = 4 * word
      wanted[word] = (id[at]! << 24) | (id[at + 1]! << 16) | (id[at + 2]! << 8) | id[at + 3]!
    }
    const [first, second] = [wanted[0] as number, wanted[1] as number]
    const { keys } = this.batch
    const mask = this.#slots.length - 1
    let isTaken = false
    let slot = this.#hash(first, second) & mask
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const row = (this.#slots[slot] as number) - 1
      const at = row * keyNumbers + idNumber
      if (keys[at] !== first || keys[at + 1] !== second) continue
      let same = 2
      while (same < idWords && keys[at + same] === wanted[same]) same += 1
      if (same === idWords) {
        this.#slot = slot
        return row
      }
      const isSameStart = (keys[at + 2] as number) >>> 24 === (wanted[2] as number) >>> 24
      if (isSameStart && keys[at - idNumber] === height && keys[at - idNumber + 1] === place) isTaken = true
    }
    this.#slot = slot
    return isTaken ? placeTaken : absent
  }

  /** The row has the id that was looked for last, in place of the row that was found. */
  put(row: number): void {
    if (this.#slots[this.#slot] === 0) this.#count += 1
    this.#slots[this.#slot] = row + 1
    if (2 * this.#count > this.#slots.length) this.#grow()
  }

  /** Nobody knows which ids meet in a slot: ids can be chosen. */
  #hash(first: number, second: number): number {
    const [a, b, c, d] = this.#secret as unknown as [number, number, number, number]
    let mix = Math.imul(first ^ a, c | 1) ^ Math.imul(second ^ b, d | 1)
    mix ^= mix >>> 15
    mix = Math.imul(mix, 0x85ebca6b)
    return mix ^ (mix >>> 13)
  }

  #grow(): void {
    const before = this.#slots
    this.#slots = new Int32Array(2 * before.length)
    const mask = this.#slots.length - 1
    const { keys } = this.batch
    for (const held of before) {
      if (held === 0) continue
      const at = (held - 1) * keyNumbers + idNumber
      let slot = this.#hash(keys[at] as number, keys[at + 1] as number) & mask
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
      this.#slots[slot] = held
    }
  }
}
