import { type RecordLayout, viewOf } from './record-layout.js'

/** Records in order. One is in its place after `next` was true: its key at `start` of `bytes`, the value behind it. */
export interface SortedRecords {
  readonly bytes: Buffer
  readonly start: number
  readonly valueBytes: number
  /** Goes to the next record; false behind the last. */
  next(): boolean
}

/** 11 bits of a word: three passes for all 32, and the counts of one stay in the first-level cache. */
const digitBits = 11
const digits = 2 ** digitBits

/** Memory that is used for one bucket after the other: made anew for each, it would be most of the work. */
export class BucketMemory {
  /** Four bytes of each key, and where its entry is; each twice, for a sort goes from one to the other. */
  words: [Uint32Array, Uint32Array] = [new Uint32Array(0), new Uint32Array(0)]
  places: [Int32Array, Int32Array] = [new Int32Array(0), new Int32Array(0)]
  /** How many entries have each digit, for each of three digits. */
  readonly counts = new Int32Array(3 * digits)
  #bytes = Buffer.alloc(0)
  readonly #blocks: Buffer[] = []

  /** Room for the entries that may lie in `length` bytes. */
  bytes(length: number, layout: RecordLayout): Buffer {
    if (this.#bytes.length < length) this.#bytes = Buffer.allocUnsafeSlow(length)
    this.makeRoom(length, layout)
    return this.#bytes.subarray(0, length)
  }

  makeRoom(length: number, { headBytes, keyBytes }: RecordLayout): void {
    const entries = Math.ceil(length / (headBytes + keyBytes))
    if (this.words[0].length >= entries) return
    this.words = [new Uint32Array(entries), new Uint32Array(entries)]
    this.places = [new Int32Array(entries), new Int32Array(entries)]
  }

  /** The blocks of the chains of one level: one sort at a time has them. */
  blocks(level: number, length: number): Buffer {
    const known = this.#blocks[level] ?? Buffer.allocUnsafeSlow(length)
    this.#blocks[level] = known
    return known
  }
}

/**
 * The entries of a bucket by key: first by the four bytes from `skip` on (those before are alike), digit by digit from the last,
 * which costs the same for all that anybody may have chosen as keys; what four bytes leave open, by comparing. Valid until the
 * next bucket is sorted with the same memory.
 */
export function sortedBucket(
  bytes: Buffer,
  skip: number,
  layout: RecordLayout,
  memory: BucketMemory,
): SortedRecords {
  memory.makeRoom(bytes.length, layout)
  return new Sorted(bytes, skip, layout, memory)
}

class Sorted implements SortedRecords {
  start = 0
  valueBytes = 0
  readonly #view: DataView
  readonly #words: Uint32Array
  readonly #places: Int32Array
  readonly #count: number
  #at = 0

  constructor(
    readonly bytes: Buffer,
    skip: number,
    private readonly layout: RecordLayout,
    { words, places, counts }: BucketMemory,
  ) {
    const view = viewOf(bytes)
    const count = listed(view, skip, layout, words[0], places[0], counts)
    for (let digit = 0; digit < 3; digit += 1) {
      const from = digit & 1
      const shift = digit * digitBits
      const ends = counts.subarray(digit * digits, (digit + 1) * digits)
      dealt(words, places, from, count, shift, ends)
    }
    this.#view = view
    this.#words = words[1]
    this.#places = places[1]
    this.#count = count
    this.#settle()
  }

  /** Orders entries whose four bytes are the same by their whole keys. */
  #settle(): void {
    const words = this.#words
    const places = this.#places
    const count = this.#count
    const { layout } = this
    const view = this.#view
    for (let start = 0, at = 1; at <= count; at += 1) {
      if (at < count && words[at] === words[start]) continue
      if (at - start > 1)
        places.subarray(start, at).sort((one, other) => layout.compareKeys(view, one, other))
      start = at
    }
  }

  next(): boolean {
    const { bytes, layout } = this
    const view = this.#view
    const words = this.#words
    const places = this.#places
    const count = this.#count
    let at = this.#at
    if (at === count) return false
    const word = words[at]
    let best = places[at] as number
    at += 1
    if (layout.unique) {
      for (; at < count && words[at] === word; at += 1) {
        const next = places[at] as number
        if (layout.compareKeys(view, best, next) !== 0) break
        if (layout.isBetter(bytes, view, next, best)) best = next
      }
    }
    this.#at = at
    this.start = best + layout.headBytes
    this.valueBytes = layout.valueBytesAt(view, best)
    return true
  }
}

/** Lists the entries: their words, their places, and how many have each digit. Returns how many there are. */
function listed(
  view: DataView,
  skip: number,
  layout: RecordLayout,
  words: Uint32Array,
  places: Int32Array,
  counts: Int32Array,
): number {
  counts.fill(0)
  const wordAt = layout.headBytes + skip
  let count = 0
  for (let at = 0; at < view.byteLength; at += layout.entryBytes(view, at)) {
    const word = view.getUint32(at + wordAt)
    words[count] = word
    places[count] = at
    count += 1
    for (let digit = 0; digit < 3; digit += 1) {
      const index = digit * digits + ((word >>> (digit * digitBits)) & (digits - 1))
      counts[index] = (counts[index] as number) + 1
    }
  }
  return count
}

/** One pass: from one pair of lists to the other, by the digit at `shift`, else in the order they are in. */
function dealt(
  words: readonly [Uint32Array, Uint32Array],
  places: readonly [Int32Array, Int32Array],
  from: number,
  count: number,
  shift: number,
  ends: Int32Array,
): void {
  const [wordsFrom, wordsTo] = from === 0 ? words : [words[1], words[0]]
  const [placesFrom, placesTo] = from === 0 ? places : [places[1], places[0]]
  let sum = 0
  for (let digit = 0; digit < digits; digit += 1) {
    const here = ends[digit] as number
    ends[digit] = sum
    sum += here
  }
  for (let at = 0; at < count; at += 1) {
    const word = wordsFrom[at] as number
    const digit = (word >>> shift) & (digits - 1)
    const to = ends[digit] as number
    ends[digit] = to + 1
    wordsTo[to] = word
    placesTo[to] = placesFrom[at] as number
  }
}
