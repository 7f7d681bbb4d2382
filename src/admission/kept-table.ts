import type { Key } from './bucket-key.js'
import {
  BucketTable,
  blockSlots,
  grainsPerToken,
  live,
  liveWord,
  numbersPerSlot,
  pinned,
  refillAt,
  refilledAt,
  spentAt,
  stateAt,
  type TableRules,
  ticksPerSecond,
} from './bucket-table.js'

/** One slot as the keeper and lists see it. */
export interface Slot {
  /** Where it lies: for `unpin`. */
  readonly at: number
  readonly key: Int32Array
  /** Grains short of a full bucket. */
  readonly lacking: number
  /** Undefined: no paid tokens, and no row on disk. */
  readonly paid: number | undefined
}

/** A table with the operations that only the keeper's thread may use. */
export class KeptTable extends BucketTable {
  #ticks = 0

  /** Advances the time, which refills all buckets. Ticks never go back. */
  tick(ticks: number): void {
    this.numbers[refilledAt]! += Math.max(0, ticks - this.#ticks) * this.#grainsPerTick
    this.#ticks = ticks
  }

  /** From now on all threads go by these rules. What a bucket lacks stays, but for what a smaller one cannot lack. */
  use(rules: TableRules): void {
    this.write(rules)
  }

  /** A second has as many ticks as a token has grains. */
  get #grainsPerTick(): number {
    return (this.numbers[refillAt]! * grainsPerToken) / ticksPerSecond
  }

  /**
   * Puts a bucket of the disk in place, or adds paid tokens that the disk holds already. `lacking` in grains.
   * False: no place is left among paid buckets.
   */
  restore(key: Key, lacking: number, paid: number | undefined): boolean {
    const block = this.locks.take(key.hash)
    const at = this.place(block, key)
    if (at >= 0) {
      const numbers = this.numbers
      const short = Math.min(lacking, this.full)
      numbers[at + spentAt] = Math.max(numbers[at + spentAt]!, this.refilled() + short)
      if (paid !== undefined) numbers[at + stateAt] = Math.max(numbers[at + stateAt]!, pinned) + paid
      this.words[this.marks + block] = 1
    }
    this.locks.release(block)
    return at >= 0
  }

  /** The disk holds no paid tokens of this slot any more. Nothing happens where it got some again. */
  unpin(slot: Slot): void {
    const block = this.locks.take((slot.at - this.first) / (numbersPerSlot * blockSlots))
    if (this.numbers[slot.at + stateAt] === pinned) this.numbers[slot.at + stateAt] = live
    this.locks.release(block)
  }

  /** The slot is given again by `changed`: what was to be written of it is not on the disk. */
  keepChanged({ at }: Slot): void {
    Atomics.store(this.words, this.marks + Math.floor((at - this.first) / (numbersPerSlot * blockSlots)), 1)
  }

  /** The slots in use of blocks that changed since the last call. */
  *changed(): Iterable<Slot> {
    for (let block = 0; block < this.blocks; block += 1) {
      if (this.words[this.marks + block] !== 0) yield* this.#slotsOf(block)
    }
  }

  /** Frees the buckets of some blocks that are full and hold nothing paid. */
  sweep(start: number, count: number): void {
    let freed = 0
    for (let step = 0; step < count; step += 1) {
      const block = this.locks.take(start + step)
      const first = this.first + block * blockSlots * numbersPerSlot
      for (let at = first; at < first + blockSlots * numbersPerSlot; at += numbersPerSlot) {
        const { [at + stateAt]: state, [at + spentAt]: spent } = this.numbers
        if (state !== live || spent! > this.refilled()) continue
        this.numbers[at + stateAt] = 0
        freed += 1
      }
      this.locks.release(block)
    }
    if (freed > 0) Atomics.sub(this.words, liveWord, freed)
  }

  #slotsOf(index: number): Slot[] {
    const block = this.locks.take(index)
    this.words[this.marks + block] = 0
    const found: Slot[] = []
    const first = this.first + block * blockSlots * numbersPerSlot
    for (let at = first; at < first + blockSlots * numbersPerSlot; at += numbersPerSlot) {
      if (this.numbers[at + stateAt] !== 0) found.push(this.#slotAt(at))
    }
    this.locks.release(block)
    return found
  }

  #slotAt(at: number): Slot {
    const state = this.numbers[at + stateAt]!
    return {
      at,
      key: this.words.slice(at * 2, at * 2 + 4),
      lacking: this.lackingAt(at),
      paid: state >= pinned ? state - pinned : undefined,
    }
  }
}
