import { join } from 'node:path'
import { u32 } from '../format/cdb64.js'
import { Chains } from './chains.js'

/** Keys of records: ids. */
const keyBytes = 32
/** Rank, then weight and length of the value, then key and value. */
const entryHeadBytes = 8
const blockBytes = 64 * 1024
/** Keys are digests: nobody finds a hundred thousand of them that begin with the same five bytes. */
const depthMax = 4
/** Entries that are sorted as numbers: 17 bits. */
const entriesMax = 2 ** 17
const weightBit = 2 ** 31

/** A record in its place: `key` at `start` of `bytes`, the value behind it. Valid until the next one. */
export interface SortedRecord {
  bytes: Buffer
  start: number
  valueBytes: number
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
  #open = { chain: 0, at: 0, valueMaxBytes: 0 }

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
    this.#open = { chain, at, valueMaxBytes }
    const { memory } = this.#chains
    const keyAt = at + entryHeadBytes
    for (let byte = 0; byte < keyBytes; byte += 1) memory[keyAt + byte] = key[byte] as number
    return keyAt + keyBytes
  }

  /** Ends the entry. `rank`: a 32-bit number. */
  end(valueBytes: number, rank: number, weight: 0 | 1): void {
    const { chain, at, valueMaxBytes } = this.#open
    this.#chains.giveBack(chain, valueMaxBytes - valueBytes)
    putHead(this.#chains.memory, at, rank, valueBytes + weight * weightBit)
  }

  /** The records whose key has this first byte (of those that differ at this depth), sorted, in groups of a bucket. */
  *group(first: number): Generator<Iterable<SortedRecord>> {
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
    yield sorted(all, Math.min(this.#depth + 1, keyBytes - 5), this.#scratch)
  }

  /** Deals the entries of a block of the sorter above. */
  #deal(block: Buffer): void {
    for (let at = 0; at < block.length; ) {
      const bytes = entryBytes(block, at)
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

function putHead(memory: Buffer, at: number, rank: number, word: number): void {
  memory[at] = rank & 255
  memory[at + 1] = (rank >>> 8) & 255
  memory[at + 2] = (rank >>> 16) & 255
  memory[at + 3] = rank >>> 24
  memory[at + 4] = word & 255
  memory[at + 5] = (word >>> 8) & 255
  memory[at + 6] = (word >>> 16) & 255
  memory[at + 7] = word >>> 24
}

function valueBytesAt(all: Buffer, at: number): number {
  return u32(all, at + 4) & (weightBit - 1)
}

function entryBytes(all: Buffer, at: number): number {
  return entryHeadBytes + keyBytes + valueBytesAt(all, at)
}

/** Memory that is used for one bucket after the other: made anew for each, it would be most of the work. */
class Scratch {
  readonly offsets = new Int32Array(entriesMax)
  readonly order = new Int32Array(entriesMax)
  readonly numbers = new Float64Array(entriesMax)
  #bytes = Buffer.alloc(0)

  bytes(length: number): Buffer {
    if (this.#bytes.length < length) this.#bytes = Buffer.allocUnsafeSlow(length)
    return this.#bytes.subarray(0, length)
  }
}

/**
 * The entries of `all` by key. Sorted as numbers, which engines do natively: 36 bits of the key (from byte `skip` on, the bytes
 * before being alike or nearly so) over 17 bits of the entry's position in the list; what 36 bits leave open is put right after.
 */
function* sorted(all: Buffer, skip: number, scratch: Scratch): Generator<SortedRecord> {
  const order = ordered(all, skip, scratch)
  const record: SortedRecord = { bytes: all, start: 0, valueBytes: 0 }
  for (let at = 0; at < order.length; ) {
    let best = order[at] as number
    for (at += 1; at < order.length; at += 1) {
      const next = order[at] as number
      if (compareKeys(all, best, next) !== 0) break
      if (isBetter(all, next, best)) best = next
    }
    record.start = best + entryHeadBytes
    record.valueBytes = valueBytesAt(all, best)
    yield record
  }
}

/** Offsets of the entries, by key. */
function ordered(all: Buffer, skip: number, { offsets, order, numbers }: Scratch): Int32Array | number[] {
  let count = 0
  for (let at = 0; at < all.length; at += entryBytes(all, at)) {
    if (count === entriesMax) return byComparing(all)
    offsets[count] = at
    const key = at + entryHeadBytes + skip
    const upper = ((all[key] as number) << 16) | ((all[key + 1] as number) << 8) | (all[key + 2] as number)
    const lower = ((all[key + 3] as number) << 4) | ((all[key + 4] as number) >> 4)
    numbers[count] = (upper * 4096 + lower) * entriesMax + count
    count += 1
  }
  const sortedNumbers = numbers.subarray(0, count).sort()
  let before = -1
  let ties = false
  for (let index = 0; index < count; index += 1) {
    const number = sortedNumbers[index] as number
    const upper = Math.floor(number / entriesMax)
    if (upper === before) ties = true
    before = upper
    order[index] = offsets[number - upper * entriesMax] as number
  }
  const found = order.subarray(0, count)
  // Rare, and nearly sorted already: the sort of the engine runs through it once.
  return ties ? found.sort((one, other) => compareKeys(all, one, other)) : found
}

/** For more entries than a bucket should have: all of one beginning, or very short ones. */
function byComparing(all: Buffer): number[] {
  const offsets: number[] = []
  for (let at = 0; at < all.length; at += entryBytes(all, at)) offsets.push(at)
  return offsets.sort((one, other) => compareKeys(all, one, other))
}

function compareKeys(all: Buffer, one: number, other: number): number {
  for (let byte = entryHeadBytes; byte < entryHeadBytes + keyBytes; byte += 1) {
    const difference = (all[one + byte] as number) - (all[other + byte] as number)
    if (difference !== 0) return difference
  }
  return 0
}

function isBetter(all: Buffer, one: number, other: number): boolean {
  const rank = u32(all, one) - u32(all, other)
  if (rank !== 0) return rank > 0
  const weight = (all[one + 7] as number) - (all[other + 7] as number)
  if (weight !== 0) return weight > 0
  const value = (at: number): Buffer => all.subarray(at + entryHeadBytes + keyBytes, at + entryBytes(all, at))
  return Buffer.compare(value(one), value(other)) < 0
}
