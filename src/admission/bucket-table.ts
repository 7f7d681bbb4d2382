import type { BorrowedBuckets } from '../http/response-cache.js'
import type { Key } from './bucket-key.js'
import { Locks } from './locks.js'

/**
 * One kind of buckets in memory that all threads share. A bucket lies in one block of 32 slots, chosen by its hash. A
 * block has a lock, held for less than a microsecond, so that every change is whole: regular and paid tokens, take
 * and eviction. Two threads only meet in a block when they serve the same client.
 *
 * A slot has 32 bytes: the key (four words), `spent`, and `state`. The header has the grains that were refilled since the
 * table was made, a grain being a tenth of a token: the keeper adds to them in each tick. `spent` minus that is what the
 * bucket lacks. So no work is needed for a refill, and all numbers are whole. `state` is 0: empty; 1: live; 2 and more: paid
 * tokens plus 2, with a row on the disk. For that reason such a slot is never given to another client.
 *
 * The rules are in the header, too, and the keeper may change them (`KeptTable.use`). Threads that read a number of the header
 * meanwhile get the old or the new one: eight bytes are stored at once.
 *
 * native/server/buckets.h reads and writes the same memory; test/admission/native-buckets.test.ts compares both.
 */
export interface TableOptions extends TableRules {
  /** Rounded up to a power of two, at least 1,024. */
  readonly slots: number
}

export interface TableRules {
  /** Regular tokens of a full bucket, 1 to 2^40. */
  readonly capacity: number
  /** Regular tokens a second, whole, up to 2^20. */
  readonly refillPerSecond: number
}

/** What a bucket holds. */
export interface Balance {
  readonly tokens: number
  readonly paidTokens: number
}

export const ticksPerSecond = 10
export const grainsPerToken = ticksPerSecond
export const blockSlots = 32
const slotBytes = 32
/** A slot is reached by the index of its first number; its first word has twice that. Numbers behind the key: */
export const numbersPerSlot = slotBytes / 8
export const spentAt = 2
export const stateAt = 3
/** Words of the header: slots in use, evictions of buckets that were not full, refusals for want of a place. */
export const liveWord = 1
const evictedWord = 2
const crowdedWord = 3
/** Numbers of the header: grains refilled since the table was made, grains of a full bucket, tokens a second. */
export const refilledAt = 2
export const fullAt = 3
export const refillAt = 4
const headerWords = 16

export const live = 1
export const pinned = 2

function slotCount(wanted: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(wanted, 1024)))
}

/** Buckets of tokens in shared memory, found by kind and key. The addon reads the same memory (`native/server/buckets.h`). */
export class BucketTable {
  /** Regular tokens of the last take that succeeded. */
  tookRegular = 0
  /** Paid tokens of the last take that succeeded. */
  tookPaid = 0
  /** Regular tokens before it. */
  hadRegular = 0
  readonly blocks: number
  protected readonly locks: Locks
  protected readonly words: Int32Array
  protected readonly numbers: Float64Array
  /** Words: marks of blocks that changed since the keeper last looked; they lie behind the locks. */
  protected readonly marks: number
  /** Number at which the slots begin. */
  protected readonly first: number

  /** `memory` of `BucketTable.bytes(options)`, the same on every thread with the same slots. The first one writes the rules. */
  constructor(memory: SharedArrayBuffer, options: TableOptions) {
    this.blocks = slotCount(options.slots) / blockSlots
    this.words = new Int32Array(memory)
    this.numbers = new Float64Array(memory)
    this.locks = new Locks(this.words.subarray(headerWords, headerWords + this.blocks))
    this.marks = headerWords + this.blocks
    this.first = headerWords / 2 + this.blocks
    if (this.full === 0) this.write(options)
  }

  static bytes({ slots: wanted }: Pick<TableOptions, 'slots'>): number {
    const slots = slotCount(wanted)
    return headerWords * 4 + (slots / blockSlots) * 8 + slots * slotBytes
  }

  /** All of the table, for a server that takes regular tokens by itself (native/server/buckets.h). */
  get borrowed(): BorrowedBuckets {
    return { words: this.words, blocks: this.blocks }
  }

  /** As they are now. */
  get rules(): TableRules {
    return { capacity: this.full / grainsPerToken, refillPerSecond: this.numbers[refillAt]! }
  }

  /** Takes exactly `tokens`, regular ones first, then paid ones; or nothing. */
  take(key: Key, tokens: number): boolean {
    const block = this.locks.take(key.hash)
    const at = this.place(block, key)
    const took = at >= 0 && this.#takeAt(at, tokens)
    if (took) this.words[this.marks + block] = 1
    this.locks.release(block)
    return took
  }

  /** Takes exactly `tokens` of the paid ones, or nothing. */
  takePaid(key: Key, tokens: number): boolean {
    const block = this.locks.take(key.hash)
    const at = this.#find(block, key)
    const took = at >= 0 && this.numbers[at + stateAt]! - pinned >= tokens
    if (took) {
      this.numbers[at + stateAt]! -= tokens
      this.tookRegular = 0
      this.tookPaid = tokens
      this.words[this.marks + block] = 1
    }
    this.locks.release(block)
    return took
  }

  /** Gives back what a take took. A bucket is never fuller than full; paid tokens come back as paid ones, all of them. */
  give(key: Key, regular: number, paid: number): void {
    const block = this.locks.take(key.hash)
    // A bucket that was given up meanwhile was full, or counts as full: only paid tokens need a place again.
    const at = paid > 0 ? this.place(block, key) : this.#find(block, key)
    if (at >= 0) {
      const numbers = this.numbers
      numbers[at + spentAt] = Math.max(numbers[at + spentAt]! - regular * grainsPerToken, this.refilled())
      if (paid > 0) numbers[at + stateAt] = Math.max(numbers[at + stateAt]!, pinned) + paid
      this.words[this.marks + block] = 1
    }
    this.locks.release(block)
  }

  /** What a bucket holds; undefined where nothing was taken from it lately and nothing paid into it. */
  look(key: Key): Balance | undefined {
    const block = this.locks.take(key.hash)
    const at = this.#find(block, key)
    const found = at < 0 ? undefined : { tokens: this.#regularAt(at), paidTokens: this.#paidAt(at) }
    this.locks.release(block)
    return found
  }

  /** Seconds until a take of so many would do; undefined where it never will. */
  secondsUntil(key: Key, tokens: number): number | undefined {
    const { capacity, refillPerSecond } = this.rules
    const held = this.look(key)
    const paid = held?.paidTokens ?? 0
    if (tokens > capacity + paid || refillPerSecond === 0) return undefined
    const missing = tokens - paid - (held?.tokens ?? capacity)
    return Math.max(1, Math.ceil(missing / refillPerSecond))
  }

  /** Seconds until it has so many regular tokens; undefined where it never will. */
  secondsUntilRegular(key: Key, tokens: number): number | undefined {
    const { capacity, refillPerSecond } = this.rules
    if (tokens > capacity || refillPerSecond === 0) return undefined
    return Math.max(1, Math.ceil((tokens - (this.look(key)?.tokens ?? capacity)) / refillPerSecond))
  }

  /** Slots in use; buckets given up though they were not full; takes refused because a block held paid buckets only. */
  get usage(): { live: number; evicted: number; crowded: number } {
    const at = (word: number): number => Atomics.load(this.words, word)
    return { live: at(liveWord), evicted: at(evictedWord), crowded: at(crowdedWord) }
  }

  /** Grains refilled since the table was made: exact for 27 years at the highest rate. */
  protected refilled(): number {
    return this.numbers[refilledAt]!
  }

  /** Grains of a full bucket. */
  protected get full(): number {
    return this.numbers[fullAt]!
  }

  protected write({ capacity, refillPerSecond }: TableRules): void {
    this.numbers[refillAt] = refillPerSecond
    this.numbers[fullAt] = capacity * grainsPerToken
  }

  /** Grains that a bucket lacks: all of them at most, also where it was larger when they were taken. */
  protected lackingAt(at: number): number {
    return Math.min(Math.max(this.numbers[at + spentAt]! - this.refilled(), 0), this.full)
  }

  #regularAt(at: number): number {
    return Math.max(Math.floor((this.full - this.lackingAt(at)) / grainsPerToken), 0)
  }

  #paidAt(at: number): number {
    return Math.max(this.numbers[at + stateAt]! - pinned, 0)
  }

  #takeAt(at: number, tokens: number): boolean {
    const held = this.#regularAt(at)
    const regular = Math.min(held, tokens)
    const paid = tokens - regular
    if (paid > this.#paidAt(at)) return false
    this.hadRegular = held
    const numbers = this.numbers
    numbers[at + spentAt] = this.refilled() + this.lackingAt(at) + regular * grainsPerToken
    numbers[at + stateAt]! -= paid
    this.tookRegular = regular
    this.tookPaid = paid
    return true
  }

  /** The slot of a key in a locked block, or -1. */
  #find(block: number, key: Key): number {
    const words = this.words
    const first = this.first + block * blockSlots * numbersPerSlot
    // Blocks are chosen by the low bits of the hash, so the high ones spread buckets within theirs.
    const start = key.hash >>> 27
    for (let step = 0; step < blockSlots; step += 1) {
      const at = first + ((start + step) & (blockSlots - 1)) * numbersPerSlot
      const word = at * 2
      if (
        words[word + 3] === key.four &&
        words[word + 2] === key.three &&
        words[word + 1] === key.two &&
        words[word] === key.one &&
        this.numbers[at + stateAt] !== 0
      ) {
        return at
      }
    }
    return -1
  }

  /** The slot of a key in a locked block; a full bucket where it is new; -1 where every slot holds paid tokens. */
  protected place(block: number, key: Key): number {
    const known = this.#find(block, key)
    if (known >= 0) return known
    const at = this.#room(block, key.hash >>> 27)
    if (at < 0) {
      Atomics.add(this.words, crowdedWord, 1)
      return -1
    }
    const numbers = this.numbers
    if (numbers[at + stateAt] === 0) Atomics.add(this.words, liveWord, 1)
    else if (numbers[at + spentAt]! > this.refilled()) Atomics.add(this.words, evictedWord, 1)
    this.words.set([key.one, key.two, key.three, key.four], at * 2)
    numbers[at + spentAt] = this.refilled()
    numbers[at + stateAt] = live
    return at
  }

  /**
   * An empty slot, or that of the fullest bucket without paid tokens: its client gains the fewest tokens when the
   * bucket is dropped.
   */
  #room(block: number, start: number): number {
    const numbers = this.numbers
    const first = this.first + block * blockSlots * numbersPerSlot
    let fullest = -1
    for (let step = 0; step < blockSlots; step += 1) {
      const at = first + ((start + step) & (blockSlots - 1)) * numbersPerSlot
      const state = numbers[at + stateAt]
      if (state === 0) return at
      if (state !== live) continue
      if (fullest < 0 || numbers[at + spentAt]! < numbers[fullest + spentAt]!) fullest = at
    }
    return fullest
  }
}
