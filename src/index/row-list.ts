import type { CheckedFile } from './checked-file.js'
import type { SegmentOutput } from './segment-output.js'

/**
 * The rows of a word, ascending, in blocks of 128. A block is a byte that says how, and the distances of its rows but the first:
 *
 *     0                  LEB128, each less one
 *     1 and so many bits the same, each in so many bits (0: rows that follow each other), the lowest first
 *
 * A list of one block begins with its first row (LEB128). Of more, each block is followed by the next, and behind the last stands
 * a table of them: first row u32, bytes from the beginning of the block to the table u32. `place` says where the one block or the
 * table is.
 */
export const listBlockRows = 128
/** Lists of no more rows stand beside their word. */
export const besideMax = 7
const packedMax = 24
/** So much of a list is wanted of the disk at once on either side of where it is read first: some 300 blocks. */
const besideBytes = 2 ** 15
/** The table of a list of 4 million rows is read in one piece. */
const tableMax = 2 ** 18

/** Writes lists into a segment, one after the other. */
export class RowListWriter {
  /** The rows of the block that fills. */
  readonly rows: Uint32Array = new Uint32Array(listBlockRows)
  /** Rows of this list. */
  count = 0
  #filled = 0
  /** First row and position of each block. */
  #blocks = new Float64Array(64)
  #blockCount = 0

  constructor(private readonly out: SegmentOutput) {}

  begin(): void {
    this.count = 0
    this.#filled = 0
    this.#blockCount = 0
  }

  /** Adds a row, behind all others of the list. */
  push(row: number): void {
    if (this.#filled === listBlockRows) this.#block()
    this.rows[this.#filled] = row
    this.#filled += 1
    this.count += 1
  }

  /** Ends the list: its place; -1 where it has few rows, which are in `rows`. */
  end(): number {
    if (this.count <= besideMax) return -1
    if (this.#blockCount === 0) {
      const place = this.out.position
      this.#varint(this.rows[0] as number)
      this.#distances()
      return place
    }
    this.#block()
    const table = this.out.position
    for (let block = 0; block < this.#blockCount; block += 1) {
      this.#u32(this.#blocks[2 * block] as number)
      this.#u32(table - (this.#blocks[2 * block + 1] as number))
    }
    return table
  }

  #block(): void {
    if (2 * this.#blockCount + 2 > this.#blocks.length) {
      const larger = new Float64Array(this.#blocks.length * 2)
      larger.set(this.#blocks)
      this.#blocks = larger
    }
    this.#blocks[2 * this.#blockCount] = this.rows[0] as number
    this.#blocks[2 * this.#blockCount + 1] = this.out.position
    this.#blockCount += 1
    this.#distances()
    this.#filled = 0
  }

  #distances(): void {
    const { rows, out } = this
    let [all, plainBytes] = [0, 0]
    for (let at = 1; at < this.#filled; at += 1) {
      const distance = (rows[at] as number) - (rows[at - 1] as number) - 1
      all |= distance
      plainBytes += distance < 0x80 ? 1 : distance < 0x4000 ? 2 : distance < 0x20_0000 ? 3 : 5
    }
    const bits = 32 - Math.clz32(all)
    const isPacked = bits <= packedMax && ((this.#filled - 1) * bits) / 8 <= plainBytes
    out.u8(isPacked ? 1 + bits : 0)
    let [held, filled] = [0, 0]
    for (let at = 1; at < this.#filled; at += 1) {
      const distance = (rows[at] as number) - (rows[at - 1] as number) - 1
      if (!isPacked) {
        this.#varint(distance)
        continue
      }
      held |= distance << filled
      for (filled += bits; filled >= 8; filled -= 8) {
        out.u8(held & 0xff)
        held >>>= 8
      }
    }
    if (filled > 0) out.u8(held & 0xff)
  }

  #varint(value: number): void {
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.out.u8((rest % 0x80) + 0x80)
    this.out.u8(rest)
  }

  #u32(value: number): void {
    for (let shift = 0; shift < 32; shift += 8) this.out.u8((value >>> shift) & 0xff)
  }
}

/** A list as its word names it. */
export interface RowList {
  readonly count: number
  /** Position in the file; -1: the rows are here. */
  readonly place: number
  readonly rows: readonly number[]
}

const noList: RowList = { count: 0, place: -1, rows: [] }

/** Reads one list, a block at a time. */
export class RowListReader {
  /** The rows of the block that was loaded last; the first `filled` of them. */
  readonly rows: Uint32Array = new Uint32Array(listBlockRows)
  filled = 0
  block = -1
  blockCount = 0
  #list: RowList = noList

  constructor(
    private readonly file: CheckedFile,
    list: RowList,
    /** End of the section in the file. */
    private readonly end: number,
  ) {
    this.reset(list)
  }

  /** Reads another list from here on. */
  reset(list: RowList): void {
    this.#list = list
    this.block = -1
    this.filled = 0
    this.blockCount = list.place < 0 ? 1 : Math.ceil(list.count / listBlockRows)
  }

  /** The last block whose first row is not behind `row`; 0 where there is none. Looks near the block that was loaded last. */
  blockOf(row: number): number {
    if (this.blockCount === 1) return 0
    if (this.block < 0) this.#wantTable()
    let low = 0
    let high = this.blockCount - 1
    if (this.block >= 0) {
      const isBehind = this.#firstOf(this.block) <= row
      if (isBehind) low = this.block
      else high = Math.max(0, this.block - 1)
      // Twice as far each time: who leaps, leaps over few blocks.
      for (let step = 1; step < high - low; step *= 2) {
        const at = isBehind ? low + step : high - step
        if (this.#firstOf(at) <= row) low = at
        else high = at - 1
        if (isBehind !== low >= at) break
      }
    }
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#firstOf(middle) <= row) low = middle
      else high = middle - 1
    }
    return low
  }

  /** Begins to read the table of the blocks at once, with what lies before it: the last blocks. */
  #wantTable(): void {
    const { place } = this.#list
    const end = place + Math.min(8 * this.blockCount, tableMax)
    this.file.want(Math.max(0, place - besideBytes), end, place, end)
  }

  #firstOf(block: number): number {
    const entry = this.#list.place + block * 8
    const at = this.file.at(entry, entry + 8)
    return this.file.bytes.readUInt32LE(at)
  }

  load(block: number): void {
    if (block === this.block) return
    const isFirst = this.block < 0
    this.block = block
    const list = this.#list
    if (list.place < 0) {
      this.rows.set(list.rows)
      this.filled = list.rows.length
      return
    }
    this.filled = Math.min(listBlockRows, list.count - block * listBlockRows)
    if (this.blockCount === 1) this.#read(list.place, undefined)
    else {
      const entry = list.place + block * 8
      const at = this.file.at(entry, entry + 8)
      const first = this.file.bytes.readUInt32LE(at)
      const position = list.place - this.file.bytes.readUInt32LE(at + 4)
      // A page of results goes on through the blocks beside it, in either direction.
      const end = position + 6 + 5 * this.filled
      if (isFirst) this.file.want(Math.max(0, position - besideBytes), position + besideBytes, position, end)
      this.#read(position, first)
    }
  }

  #read(position: number, first: number | undefined): void {
    const { file, rows, filled } = this
    // At most so many: a byte how, and five for each row.
    let at = file.at(position, Math.min(this.end, position + 6 + 5 * filled))
    const { bytes } = file
    let row = first ?? 0
    if (first === undefined) {
      for (let scale = 1; ; scale *= 0x80) {
        const byte = bytes[at] as number
        at += 1
        row += (byte & 0x7f) * scale
        if (byte < 0x80) break
      }
    }
    const bits = (bytes[at] as number) - 1
    at += 1
    rows[0] = row
    if (bits < 0) readPlain(bytes, at, rows, filled)
    else readPacked(bytes, at, bits, rows, filled)
  }
}

function readPlain(bytes: Uint8Array, start: number, rows: Uint32Array, filled: number): void {
  let at = start
  let row = rows[0] as number
  for (let next = 1; next < filled; next += 1) {
    let byte = bytes[at] as number
    at += 1
    let distance = byte & 0x7f
    for (let scale = 0x80; byte >= 0x80; scale *= 0x80) {
      byte = bytes[at] as number
      at += 1
      distance += (byte & 0x7f) * scale
    }
    row += distance + 1
    rows[next] = row
  }
}

/** Four bytes at a time, wherever in them a distance begins: without a branch, which would depend on the bits. */
function readPacked(bytes: Uint8Array, start: number, bits: number, rows: Uint32Array, filled: number): void {
  const mask = 2 ** bits - 1
  let row = rows[0] as number
  for (let next = 1, bit = 0; next < filled; next += 1, bit += bits) {
    const at = start + (bit >>> 3)
    const word =
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)
    row += ((word >>> (bit & 7)) & mask) + 1
    rows[next] = row
  }
}
