import { join } from 'node:path'
import { BucketMemory, type SortedRecords, sortedBucket } from './bucket-sort.js'
import { Chains } from './chains.js'
import { RecordLayout, viewOf } from './record-layout.js'

/** Block of a chain that is dealt again, at most: levels add up, so it is small. An entry must fit into it. */
const innerBlockBytes = 16 * 1024

export interface SortOptions {
  /** Bytes of a key, at least 4. */
  readonly keyBytes: number
  /**
   * `true`: of records with one key one stays, that of the highest rank, then the greater weight, then the lesser value in byte
   * order. `false`: records are keys without values, and all of them stay.
   */
  readonly unique: boolean
  /** Chains up to this size are sorted in memory. 4 MiB are 100,000 entries of 40 bytes, which takes a tenth of a second. */
  readonly bucketMaxBytes: number
  /** What waits in memory of each of the 256 chains before it is written. An entry must fit into it. */
  readonly blockBytes: number
}

/**
 * Sorts any number of records by their keys: they are dealt into 256 chains in a temporary file by the first byte of the key, and
 * a chain that is too large to sort in memory is dealt again by the next byte in which its keys differ. A chain of one key
 * only is never sorted, whatever its size. Memory: 256 blocks, 4 MiB for each further level, and a few times `bucketMaxBytes`.
 */
export class ExternalSort {
  readonly #chains: Chains
  readonly #layout: RecordLayout
  readonly #view: DataView
  /** The first key of each chain, and how many of its bytes all keys of the chain have in common. */
  readonly #firsts: Buffer
  readonly #common: Int32Array
  // The entry that is being written.
  #chain = 0
  #at = 0
  #valueMaxBytes = 0

  /** Temporary files come and go in `folder`; their names begin with `name`. */
  constructor(
    private readonly folder: string,
    private readonly name: string,
    private readonly options: SortOptions,
    private readonly depth = 0,
    private readonly level = 0,
    private readonly memoryOfAll = new BucketMemory(),
  ) {
    const { keyBytes, unique, blockBytes } = options
    const bytes = level === 0 ? blockBytes : Math.min(blockBytes, innerBlockBytes)
    const file = join(folder, `${name}.${level}.sort`)
    this.#chains = new Chains(file, 256, bytes, memoryOfAll.blocks(level, 256 * bytes))
    this.#layout = new RecordLayout(keyBytes, unique)
    this.#view = viewOf(this.#chains.memory)
    this.#firsts = Buffer.alloc(256 * keyBytes)
    this.#common = new Int32Array(256).fill(-1)
  }

  /** Where values are written to: `memory[at]`, where `at` is what `begin` returned. */
  get memory(): Buffer {
    return this.#chains.memory
  }

  /** Adds a record without a value (`unique: false`). */
  add(key: Uint8Array): void {
    this.begin(key, 0)
  }

  /** Begins an entry: its value, of at most `valueMaxBytes` (some KiB), is to be written to `memory` from here on. */
  begin(key: Uint8Array, valueMaxBytes: number): number {
    const { headBytes, keyBytes } = this.#layout
    const bytes = headBytes + keyBytes + valueMaxBytes
    if (bytes > innerBlockBytes) throw new RangeError(`an entry of ${bytes} bytes`)
    const chain = key[this.depth] as number
    const at = this.#chains.reserve(chain, bytes)
    this.#chain = chain
    this.#at = at
    this.#valueMaxBytes = valueMaxBytes
    const { memory } = this.#chains
    const keyAt = at + headBytes
    for (let byte = 0; byte < keyBytes; byte += 1) memory[keyAt + byte] = key[byte] as number
    this.#compareWithFirst(chain, memory, keyAt)
    return keyAt + keyBytes
  }

  /** Ends the entry (`unique: true`). `rank`: a 32-bit number. */
  end(valueBytes: number, rank: number, weight: 0 | 1): void {
    this.#chains.giveBack(this.#chain, this.#valueMaxBytes - valueBytes)
    this.#layout.writeHead(this.#view, this.#at, valueBytes, rank, weight)
  }

  /** All keys in order, once (`unique: false`); each is a view that is valid until the next. Removes the files at the end. */
  *sorted(): Generator<Buffer> {
    const { keyBytes } = this.options
    try {
      for (let first = 0; first < 256; first += 1) {
        for (const bucket of this.group(first)) {
          while (bucket.next()) yield bucket.bytes.subarray(bucket.start, bucket.start + keyBytes)
        }
      }
    } finally {
      this.close()
    }
  }

  /** The records whose key has this byte at the depth of this sort (0: the first), sorted, in groups of a bucket. */
  *group(first: number): Generator<SortedRecords> {
    const sizeBytes = this.#chains.sizeOf(first)
    if (sizeBytes === 0) return
    const { keyBytes, bucketMaxBytes } = this.options
    const common = this.#common[first] as number
    if (sizeBytes <= bucketMaxBytes) {
      const all = this.memoryOfAll.bytes(sizeBytes, this.#layout)
      let filled = 0
      for (const block of this.#chains.read(first)) filled += block.copy(all, filled)
      yield sortedBucket(all, Math.min(common, keyBytes - 4), this.#layout, this.memoryOfAll)
    } else if (common === keyBytes) yield* this.#ofOneKey(first)
    else yield* this.#dealtAgain(first, common)
  }

  /** Removes the files. Nothing may be read after it. */
  close(): void {
    this.#chains.close()
  }

  *#dealtAgain(first: number, depth: number): Generator<SortedRecords> {
    const { folder, name, options, level, memoryOfAll } = this
    const inner = new ExternalSort(folder, name, options, depth, level + 1, memoryOfAll)
    try {
      for (const block of this.#chains.read(first)) inner.#deal(block)
      for (let next = 0; next < 256; next += 1) yield* inner.group(next)
    } finally {
      inner.close()
    }
  }

  /** Deals the entries of a block of the sort above. */
  #deal(block: Buffer): void {
    const view = viewOf(block)
    const { headBytes } = this.#layout
    for (let at = 0; at < block.length; ) {
      const bytes = this.#layout.entryBytes(view, at)
      const chain = block[at + headBytes + this.depth] as number
      const to = this.#chains.reserve(chain, bytes)
      block.copy(this.#chains.memory, to, at, at + bytes)
      this.#compareWithFirst(chain, block, at + headBytes)
      at += bytes
    }
  }

  /** Entries that all have the same key are in order as they are: the best of them, or each. */
  *#ofOneKey(first: number): Generator<SortedRecords> {
    const layout = this.#layout
    let best = Buffer.alloc(0)
    for (const block of this.#chains.read(first)) {
      const sorted = sortedBucket(Buffer.from(block), 0, layout, this.memoryOfAll)
      if (!this.options.unique) {
        yield sorted
        continue
      }
      sorted.next()
      const entry = Buffer.from(layout.entryAt(sorted.bytes, sorted.start))
      const both = Buffer.concat([best, entry])
      const isBetter = best.length === 0 || layout.isBetter(both, viewOf(both), best.length, 0)
      if (isBetter) best = entry
    }
    if (best.length > 0) yield sortedBucket(best, 0, layout, this.memoryOfAll)
  }

  #compareWithFirst(chain: number, bytes: Buffer, keyAt: number): void {
    const known = this.#common[chain] as number
    // Nearly always: the keys of a chain differ in the byte behind the one they were dealt by.
    if (known === this.depth + 1) return
    const { keyBytes } = this.#layout
    const firstAt = chain * keyBytes
    if (known < 0) {
      bytes.copy(this.#firsts, firstAt, keyAt, keyAt + keyBytes)
      this.#common[chain] = keyBytes
      return
    }
    let same = this.depth + 1
    while (same < known && this.#firsts[firstAt + same] === bytes[keyAt + same]) same += 1
    this.#common[chain] = same
  }
}
