import { join } from 'node:path'
import { Chains } from './chains.js'

/** Keys of records: ids. */
const keyBytes = 32
/** Rank, then weight and length of the value, then key and value. */
const entryHeadBytes = 8
const blockBytes = 64 * 1024
/** Keys are digests: nobody finds a hundred thousand of them that begin with the same five bytes. */
const depthMax = 4
const weightBit = 2 ** 31

/** Records in order. One is in its place after `next` was true: its key at `start` of `bytes`, the value behind it. */
export interface SortedRecords {
  readonly bytes: Buffer
  readonly start: number
  readonly valueBytes: number
  /** Goes to the next record; false behind the last. */
  next(): boolean
}

/**
 * Sorts records by their 32-byte keys, of any number: they are dealt into 256 chains on disk by their first byte, and a chain
 * that is too large to sort in memory is dealt again by the next. Of records with one key one stays: the highest rank, then the
 * greater weight, then the lesser value in byte order.
 */
export class RecordSorter {
  readonly #chains: Chains
  readonly #options: SortOptions
  readonly #depth: number
  readonly #scratch: Scratch
  readonly #view: DataView
  // The entry that is being written.
  #chain = 0
  #at = 0
  #valueMaxBytes = 0

  /** Temporary files come and go in `folder`. */
  constructor(
    private readonly folder: string,
    options: SortOptions,
    depth = 0,
    scratch: Scratch = new Scratch(),
  ) {
    this.#options = options
    this.#depth = depth
    this.#scratch = scratch
    this.#chains = new Chains(join(folder, `${depth}.sort`), 256, blockBytes)
    this.#view = viewOf(this.#chains.memory)
  }

  /** Where values are written to: `memory[at]`, where `at` is what `begin` returned. */
  get memory(): Buffer {
    return this.#chains.memory
  }

  /** Begins an entry: its value, of at most `valueMaxBytes` (less than 60 KiB), is to be written to `memory` from here on. */
  begin(key: Uint8Array, valueMaxBytes: number): number {
    const chain = key[this.#depth] as number
    const bytes = entryHeadBytes + keyBytes + valueMaxBytes
    const at = this.#chains.reserve(chain, bytes)
    this.#chain = chain
    this.#at = at
    this.#valueMaxBytes = valueMaxBytes
    const { memory } = this.#chains
    const keyAt = at + entryHeadBytes
    for (let byte = 0; byte < keyBytes; byte += 1) memory[keyAt + byte] = key[byte] as number
    return keyAt + keyBytes
  }

  /** Ends the entry. `rank`: a 32-bit number. */
  end(valueBytes: number, rank: number, weight: 0 | 1): void {
    this.#chains.giveBack(this.#chain, this.#valueMaxBytes - valueBytes)
    this.#view.setUint32(this.#at, rank, true)
    this.#view.setUint32(this.#at + 4, valueBytes + weight * weightBit, true)
  }

  /** The records whose key has this first byte (of those that differ at this depth), sorted, in groups of a bucket. */
  *group(first: number): Generator<SortedRecords> {
    if (this.#chains.sizeOf(first) === 0) return
    if (this.#chains.sizeOf(first) > this.#options.bucketMaxBytes && this.#depth < depthMax) {
      const inner = new RecordSorter(this.folder, this.#options, this.#depth + 1, this.#scratch)
      try {
        for (const block of this.#chains.read(first)) inner.#deal(block)
        for (let next = 0; next < 256; next += 1) yield* inner.group(next)
      } finally {
        inner.close()
      }
      return
    }
    const all = this.#scratch.bytes(this.#chains.sizeOf(first))
    let filled = 0
    for (const block of this.#chains.read(first)) filled += block.copy(all, filled)
    yield new Sorted(all, Math.min(this.#depth + 1, keyBytes - 4), this.#scratch)
  }

  /** Deals the entries of a block of the sorter above. */
  #deal(block: Buffer): void {
    const view = viewOf(block)
    for (let at = 0; at < block.length; ) {
      const bytes = entryBytes(view, at)
      const to = this.#chains.reserve(block[at + entryHeadBytes + this.#depth] as number, bytes)
      block.copy(this.#chains.memory, to, at, at + bytes)
      at += bytes
    }
  }

  close(): void {
    this.#chains.close()
  }
}

export interface SortOptions {
  /** Chains up to this size are sorted in memory. At most 4 MiB: 100,000 entries, a tenth of a second. */
  readonly bucketMaxBytes: number
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

function valueBytesAt(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) & (weightBit - 1)
}

function entryBytes(view: DataView, at: number): number {
  return entryHeadBytes + keyBytes + valueBytesAt(view, at)
}

/** Memory that is used for one bucket after the other: made anew for each, it would be most of the work. */
class Scratch {
  /** Four bytes of each key, and where its entry is; each twice, for a sort goes from one to the other. */
  words: [Uint32Array, Uint32Array] = [new Uint32Array(0), new Uint32Array(0)]
  places: [Int32Array, Int32Array] = [new Int32Array(0), new Int32Array(0)]
  /** How many entries have each digit, for each of three digits. */
  readonly counts = new Int32Array(3 * digits)
  #bytes = Buffer.alloc(0)

  /** Room for the entries that may lie in `length` bytes. */
  bytes(length: number): Buffer {
    if (this.#bytes.length < length) {
      const entries = Math.ceil(length / (entryHeadBytes + keyBytes))
      this.#bytes = Buffer.allocUnsafeSlow(length)
      this.words = [new Uint32Array(entries), new Uint32Array(entries)]
      this.places = [new Int32Array(entries), new Int32Array(entries)]
    }
    return this.#bytes.subarray(0, length)
  }
}

/** 11 bits of a word: three passes for all 32, and the counts of one stay in the first-level cache. */
const digitBits = 11
const digits = 2 ** digitBits

/**
 * The entries of a bucket by key: first by the four bytes from `skip` on (those before are alike), digit by digit from the last,
 * which costs the same for all that anybody may have chosen as ids; what four bytes leave open, rarely anything, by comparing.
 */
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
    scratch: Scratch,
  ) {
    const view = viewOf(bytes)
    const { words, places, counts } = scratch
    const count = listed(view, skip, words[0], places[0], counts)
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
    for (let start = 0, at = 1; at <= count; at += 1) {
      if (at < count && words[at] === words[start]) continue
      if (at - start > 1) places.subarray(start, at).sort((one, other) => compareKeys(this.#view, one, other))
      start = at
    }
  }

  next(): boolean {
    const { bytes } = this
    const view = this.#view
    const words = this.#words
    const places = this.#places
    const count = this.#count
    let at = this.#at
    if (at === count) return false
    const word = words[at]
    let best = places[at] as number
    for (at += 1; at < count && words[at] === word; at += 1) {
      const next = places[at] as number
      if (compareKeys(view, best, next) !== 0) break
      if (isBetter(bytes, view, next, best)) best = next
    }
    this.#at = at
    this.start = best + entryHeadBytes
    this.valueBytes = valueBytesAt(view, best)
    return true
  }
}

/** Lists the entries: their words, their places, and how many have each digit. Returns how many there are. */
function listed(
  view: DataView,
  skip: number,
  words: Uint32Array,
  places: Int32Array,
  counts: Int32Array,
): number {
  counts.fill(0)
  let count = 0
  for (let at = 0; at < view.byteLength; at += entryBytes(view, at)) {
    const word = view.getUint32(at + entryHeadBytes + skip)
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

function compareKeys(view: DataView, one: number, other: number): number {
  for (let at = entryHeadBytes; at < entryHeadBytes + keyBytes; at += 4) {
    const difference = view.getUint32(one + at) - view.getUint32(other + at)
    if (difference !== 0) return difference
  }
  return 0
}

function isBetter(all: Buffer, view: DataView, one: number, other: number): boolean {
  const rank = view.getUint32(one, true) - view.getUint32(other, true)
  if (rank !== 0) return rank > 0
  const weight = (view.getUint32(one + 4, true) >>> 31) - (view.getUint32(other + 4, true) >>> 31)
  if (weight !== 0) return weight > 0
  const value = (at: number): Buffer =>
    all.subarray(at + entryHeadBytes + keyBytes, at + entryBytes(view, at))
  return Buffer.compare(value(one), value(other)) < 0
}
