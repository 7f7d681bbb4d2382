import { type CheckedFile, DamagedSegment, pageBytes } from './checked-file.js'
import type { Footer } from './footer.js'
import type { SegmentOutput } from './segment-output.js'

/**
 * Rows by their ids: entries of 48 bits (big-endian) in the order of the ids, and a table of where each bucket begins. A bucket
 * has the ids that begin with the same bits, some 8 to 16 of them. An entry is the next bits of the id, then the number of the
 * row. So many bits of an id are known for any number of rows that segments are merged without a look at the ids themselves:
 *
 *     bits of the row: as many as the highest row needs; bits of the bucket: 4 less (0 at least);
 *     bits of the id: those of the bucket, and what is left of 48
 */
export const entryBytes = 6
const entryBits = 48

/** A bucket of no more entries is looked at from its beginning to its end. */
export const fewEntries = 64

/** An entry: 48 bits. */
export function valueAt(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
  const low =
    ((bytes[at + 2] as number) << 24) |
    ((bytes[at + 3] as number) << 16) |
    ((bytes[at + 4] as number) << 8) |
    (bytes[at + 5] as number)
  return high * 2 ** 32 + (low >>> 0)
}

/** A number of the table of buckets: u32, little-endian. */
export function wordAt(bytes: Uint8Array, at: number): number {
  const [low, high] = [(bytes[at] as number) | ((bytes[at + 1] as number) << 8), bytes[at + 3] as number]
  return (low | ((bytes[at + 2] as number) << 16) | (high << 24)) >>> 0
}

/** How the ids of so many rows are kept. */
export class IdShape {
  readonly rowBits: number
  readonly bucketBits: number
  /** Size of a number of row, and of the bits of an id that an entry has, as factors. */
  readonly rows: number
  readonly prints: number
  readonly buckets: number

  constructor(rowCount: number) {
    this.rowBits = Math.max(4, Math.ceil(Math.log2(Math.max(2, rowCount))))
    this.bucketBits = this.rowBits - 4
    this.rows = 2 ** this.rowBits
    this.prints = 2 ** (entryBits - this.rowBits)
    this.buckets = 2 ** this.bucketBits
  }
}

/** The first 44 bits of an id, as a number. */
export function idPrefix(id: Uint8Array, at = 0): number {
  const high =
    ((id[at] as number) << 24) |
    ((id[at + 1] as number) << 16) |
    ((id[at + 2] as number) << 8) |
    (id[at + 3] as number)
  return (high >>> 0) * 4096 + ((id[at + 4] as number) << 4) + ((id[at + 5] as number) >> 4)
}

/** Writes the ids, which come in their order. */
export class IdTableWriter {
  readonly #shape: IdShape
  /** Ids in each bucket. */
  readonly #counts: Uint32Array
  readonly #entry: Buffer = Buffer.allocUnsafe(entryBytes)

  constructor(
    private readonly out: SegmentOutput,
    rowCount: number,
  ) {
    this.#shape = new IdShape(rowCount)
    this.#counts = new Uint32Array(this.#shape.buckets)
  }

  /** `prefix`: `idPrefix` of the id. */
  add(prefix: number, row: number): void {
    const { rows, prints } = this.#shape
    const bucket = Math.floor(prefix / prints)
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    const value = (prefix - bucket * prints) * rows + row
    const high = Math.floor(value / 2 ** 32)
    const low = value - high * 2 ** 32
    const entry = this.#entry
    entry[0] = high >>> 8
    entry[1] = high
    entry[2] = low >>> 24
    entry[3] = low >>> 16
    entry[4] = low >>> 8
    entry[5] = low
    this.out.write(entry)
  }

  /** Writes the table of buckets: how many ids are before each, and all, u32 little-endian. */
  finish(): void {
    const cell = Buffer.allocUnsafe(4)
    let before = 0
    cell.writeUInt32LE(0, 0)
    this.out.write(cell)
    for (const count of this.#counts) {
      before += count
      cell.writeUInt32LE(before, 0)
      this.out.write(cell)
    }
  }
}

/** Compares the id of a row with one that is looked for: below zero where the row's comes before. */
export type CompareId = (row: number) => number

/** The ids of a segment. */
export class IdTable {
  readonly #shape: IdShape

  constructor(
    private readonly file: CheckedFile,
    private readonly footer: Footer,
  ) {
    this.#shape = new IdShape(footer.rowCount)
  }

  /** Known bits and row of an entry. */
  #value(entry: number): number {
    const start = this.footer.ids + entry * entryBytes
    const at = this.file.at(start, start + entryBytes)
    return valueAt(this.file.bytes, at)
  }

  /** The row of an entry. */
  rowOf(entry: number): number {
    const row = this.#value(entry) % this.#shape.rows
    if (row >= this.footer.rowCount) {
      throw new DamagedSegment(this.file.path, Math.floor(this.footer.ids / pageBytes), `has no row ${row}`)
    }
    return row
  }

  /** First and last entry (exclusive) of a bucket. */
  bucket(bucket: number): [first: number, end: number] {
    const start = this.footer.buckets + bucket * 4
    const at = this.file.at(start, start + 8)
    return [this.file.bytes.readUInt32LE(at), this.file.bytes.readUInt32LE(at + 4)]
  }

  /** The row with this id, or -1. `compare` is called only for rows whose ids begin with the same bits. */
  find(id: Uint8Array, compare: CompareId): number {
    const { file, footer } = this
    const { rows, prints } = this.#shape
    const prefix = idPrefix(id)
    const bucket = Math.floor(prefix / prints)
    const wanted = (prefix - bucket * prints) * rows
    const cell = footer.buckets + bucket * 4
    const at = file.at(cell, cell + 8)
    const [start, end] = [wordAt(file.bytes, at), wordAt(file.bytes, at + 4)]
    if (end - start > fewEntries) return this.#findInMany(start, end, wanted, compare)
    if (start === end) return -1
    // Of ids that are spread evenly a bucket has few: all of it is looked at in one go.
    const from = footer.ids + start * entryBytes
    const first = file.at(from, footer.ids + end * entryBytes)
    const { bytes } = file
    let same = start
    let entry = first
    for (; same < end && valueAt(bytes, entry) < wanted; same += 1) entry += entryBytes
    let last = same
    for (; last < end && valueAt(bytes, entry) < wanted + rows; last += 1) entry += entryBytes
    return same === last ? -1 : this.#among(same, last, compare)
  }

  /** The same, where somebody has chosen ids that begin alike. */
  #findInMany(start: number, end: number, wanted: number, compare: CompareId): number {
    // Entries with the same bits are in the order of the ids, not of the rows: among them the ids decide.
    const first = this.#lowerBound(start, end, wanted)
    return this.#among(first, this.#lowerBound(first, end, wanted + this.#shape.rows), compare)
  }

  #lowerBound(first: number, end: number, value: number): number {
    let [low, high] = [first, end]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#value(middle) < value) low = middle + 1
      else high = middle
    }
    return low
  }

  #among(first: number, end: number, compare: CompareId): number {
    let [low, high] = [first, end]
    while (low < high) {
      const middle = (low + high) >>> 1
      const row = this.rowOf(middle)
      const order = compare(row)
      if (order === 0) return row
      if (order < 0) low = middle + 1
      else high = middle
    }
    return -1
  }

  /** All ids, in order. */
  *entries(): Generator<IdEntry> {
    const { rows, prints, buckets } = this.#shape
    const found = { prefix: 0, row: 0 }
    for (let bucket = 0; bucket < buckets; bucket += 1) {
      const [first, end] = this.bucket(bucket)
      for (let entry = first; entry < end; entry += 1) {
        const value = this.#value(entry)
        const print = Math.floor(value / rows)
        found.prefix = bucket * prints + print
        found.row = value - print * rows
        yield found
      }
    }
  }
}

/** Valid until the next one. */
export interface IdEntry {
  /** The first 44 bits of the id. */
  readonly prefix: number
  readonly row: number
}
