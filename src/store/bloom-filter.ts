/** 16 bits for each pair: one in seventy that was never added looks as if it was. */
const bitsEach = 16
/** Pairs for which it is worth its memory (256 MiB) and the time to read them all. */
export const seenMax = 2 ** 27

/** Which pairs of evenly spread 32-bit numbers were added: says no only where it is no (a Bloom filter). */
export class BloomFilter {
  /** Pairs for which it was made. */
  readonly capacity: number
  /** No other one has more bits. */
  readonly isLargest: boolean
  count = 0
  readonly #bits: Uint32Array
  readonly #mask: number

  /** `each`: bits for each pair; `bitsMax`: of all, a power of 2: where there are more pairs it says yes more often. */
  constructor(pairs: number, each: number = bitsEach, bitsMax: number = seenMax * bitsEach) {
    let bits = 2 ** 16
    while (bits < bitsMax && bits < pairs * each) bits *= 2
    this.#bits = new Uint32Array(bits / 32)
    this.#mask = bits - 1
    this.capacity = bits / each
    this.isLargest = bits >= bitsMax
  }

  add(first: number, second: number): void {
    this.#set(first & this.#mask)
    this.#set(second & this.#mask)
    this.count += 1
  }

  has(first: number, second: number): boolean {
    return this.#isSet(first & this.#mask) && this.#isSet(second & this.#mask)
  }

  #set(bit: number): void {
    this.#bits[bit >>> 5] = (this.#bits[bit >>> 5] as number) | (1 << (bit & 31))
  }

  #isSet(bit: number): boolean {
    return (((this.#bits[bit >>> 5] as number) >>> (bit & 31)) & 1) === 1
  }
}
