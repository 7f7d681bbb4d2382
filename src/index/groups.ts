import type { CheckedFile } from './checked-file.js'
import type { Footer } from './footer.js'
import type { SectionSpool } from './segment-output.js'

/**
 * Rows that stand beside each other and have one place in the chain: a transaction, or all items of one. Each group has its
 * first row u32, its height u32, its place in the block u24, and when its first row was first seen u32 (seconds since 1970);
 * little-endian.
 */
export const groupBytes = 15

export interface Group {
  readonly first: number
  /** Its last row, and one. */
  readonly end: number
  readonly height: number
  /** Index of the transaction in the block, twice; and one for items. */
  readonly place: number
  readonly seenSeconds: number
}

/** Writes the groups, in the order of the chain. */
export class GroupWriter {
  count = 0
  /** When the first row of this group was first seen. */
  seenSeconds = 0
  /** Heights of the first and the last row; 0 where there is none. */
  lowest = 0
  highest = 0
  #height = -1
  #place = -1

  constructor(private readonly spool: SectionSpool) {}

  /** The next row. */
  add(row: number, height: number, place: number, seenSeconds: number): void {
    if (height === this.#height && place === this.#place) return
    this.#height = height
    this.#place = place
    this.seenSeconds = seenSeconds
    if (this.count === 0) this.lowest = height
    this.highest = height
    this.count += 1
    this.spool.uint(row, 4)
    this.spool.uint(height, 4)
    this.spool.uint(place, 3)
    this.spool.uint(seenSeconds, 4)
  }
}

/** The groups of a segment. */
export class GroupTable {
  #last: Group | undefined

  constructor(
    private readonly file: CheckedFile,
    private readonly footer: Footer,
  ) {}

  get count(): number {
    return this.footer.groupCount
  }

  group(number: number): Group {
    const start = this.footer.groups + number * groupBytes
    const isLast = number + 1 === this.footer.groupCount
    const at = this.file.at(start, start + groupBytes + (isLast ? 0 : 4))
    const { bytes } = this.file
    return {
      first: bytes.readUInt32LE(at),
      height: bytes.readUInt32LE(at + 4),
      place: bytes.readUIntLE(at + 8, 3),
      seenSeconds: bytes.readUInt32LE(at + 11),
      end: isLast ? this.footer.rowCount : bytes.readUInt32LE(at + groupBytes),
    }
  }

  /** The group of a row. */
  of(row: number): Group {
    const last = this.#last
    return last !== undefined && row >= last.first && row < last.end ? last : this.open(this.numberOf(row))
  }

  /** The group with this number: its rows are found without a search from here on. */
  open(number: number): Group {
    this.#last = this.group(number)
    return this.#last
  }

  /** The number of the group of a row. */
  numberOf(row: number): number {
    let low = 0
    let high = this.footer.groupCount - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#firstOf(middle) <= row) low = middle
      else high = middle - 1
    }
    return low
  }

  #firstOf(number: number): number {
    const start = this.footer.groups + number * groupBytes
    const at = this.file.at(start, start + 4)
    return this.file.bytes.readUInt32LE(at)
  }

  /** Number of the first group that is at or behind this place in the chain; `count` where all are before it. */
  lowerBound(height: number, place: number): number {
    let low = 0
    let high = this.footer.groupCount
    while (low < high) {
      const middle = (low + high) >>> 1
      const group = this.group(middle)
      if (group.height < height || (group.height === height && group.place < place)) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The first row at or behind this place in the chain. */
  firstRow(height: number, place: number): number {
    const number = this.lowerBound(height, place)
    return number === this.footer.groupCount ? this.footer.rowCount : this.group(number).first
  }
}
