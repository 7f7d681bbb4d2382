import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import {
  type CdbHeader,
  headerBytes,
  KeyHash,
  readHeader,
  recordHeadBytes,
  slotBytes,
  startSlot,
  tableCount,
  tableOf,
} from '../format/cdb64.js'
import { runMax, valueMaxBytes } from '../format/cdb64-lookup.js'

/** What a file must hold. */
export interface CdbExpectation {
  /** Every key has so many bytes... */
  readonly keyBytes: number
  /** ...and begins with this one. */
  readonly firstByte?: number
  /** Looks at a record's value; false: it is no good. */
  value?(bytes: Buffer, start: number, end: number): boolean
}

export interface CdbChecked {
  readonly records: number
  readonly sizeBytes: number
  readonly sha256: string
}

const pieceBytes = 1024 * 1024
/** A table of 2 million records; whoever writes larger ones should have made more files. */
const tableMaxBytes = 64 * 1024 * 1024

/** Memory for one check after another. */
export function checkMemory(): Buffer {
  return Buffer.allocUnsafeSlow(2 * pieceBytes)
}

/** Why a file is no good. */
class Wrong extends Error {}

/**
 * Reads a whole CDB64 file once, and checks that every record can be found and nothing else is there. Records must go from the
 * header to the first table without a gap, and tables without a gap to the end. Each slot must be in its own table, within reach
 * of a search, and point to the record whose key has its hash. Returns a text with the fault. Rejects where the disk refuses.
 */
export async function checkCdb(
  path: string,
  expected: CdbExpectation,
  memory: Buffer = checkMemory(),
): Promise<CdbChecked | string> {
  const file = await open(path, 'r')
  try {
    return await new Check(new Pieces(file, (await file.stat()).size, memory), expected).run()
  } catch (error) {
    if (error instanceof Wrong) return error.message
    throw error
  } finally {
    await file.close()
  }
}

/** A file read in order, with a window large enough for one thing at a time. */
class Pieces {
  window: Buffer
  view: DataView
  /** Where in `window` the next byte is. */
  at = 0
  readonly #hash = createHash('sha256')
  #memory: Buffer
  #read = 0

  constructor(
    private readonly file: FileHandle,
    readonly sizeBytes: number,
    memory: Buffer,
  ) {
    this.#memory = memory
    this.window = memory.subarray(0, 0)
    this.view = viewOf(this.window)
  }

  /** Position in the file of the next byte. */
  get position(): number {
    return this.#read - (this.window.length - this.at)
  }

  /** Whether `bytes` are in the window from `at` on. */
  has(bytes: number): boolean {
    return this.window.length - this.at >= bytes
  }

  /** Makes sure that they are. */
  async need(bytes: number): Promise<void> {
    if (this.has(bytes)) return
    const rest = this.window.length - this.at
    const whole = rest + Math.min(Math.max(bytes - rest, pieceBytes), this.sizeBytes - this.#read)
    if (whole < bytes) throw new Wrong('the file ends too soon')
    const memory = whole > this.#memory.length ? Buffer.allocUnsafeSlow(whole) : this.#memory
    this.window.copy(memory, 0, this.at)
    this.#memory = memory
    for (let filled = rest; filled < whole; ) {
      const { bytesRead } = await this.file.read(memory, filled, whole - filled, this.#read)
      if (bytesRead === 0) throw new Wrong('the file was cut while it was read')
      this.#hash.update(memory.subarray(filled, filled + bytesRead))
      filled += bytesRead
      this.#read += bytesRead
    }
    this.window = memory.subarray(0, whole)
    this.view = viewOf(this.window)
    this.at = 0
  }

  digest(): string {
    return this.#hash.digest('hex')
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

class Check {
  readonly #hash = new KeyHash()
  /**
   * Sums over (hash, position) of all records, minus those of all slots: 0 where the slots say what the records do. Two sums
   * of 32 bits each, mixed differently, so that faults do not cancel out by chance.
   */
  #sumA = 0
  #sumB = 0
  #records = 0

  constructor(
    private readonly pieces: Pieces,
    private readonly expected: CdbExpectation,
  ) {}

  async run(): Promise<CdbChecked> {
    const { pieces } = this
    await pieces.need(headerBytes)
    const header = readHeader(pieces.window, pieces.sizeBytes)
    if (header === undefined) throw new Wrong('a table is outside the file')
    pieces.at = headerBytes
    const tables = tablesStart(header, pieces.sizeBytes)
    await this.#walk(tables)
    if (this.#records !== header.records) throw new Wrong('records and slots are not equally many')
    await this.#tables(header, tables)
    if (pieces.position !== pieces.sizeBytes) throw new Wrong('there is something behind the tables')
    if (this.#sumA !== 0 || this.#sumB !== 0) throw new Wrong('slots do not point at their records')
    return { records: this.#records, sizeBytes: pieces.sizeBytes, sha256: pieces.digest() }
  }

  /** The records, up to the first table. */
  async #walk(end: number): Promise<void> {
    const { pieces, expected } = this
    for (let position = headerBytes; position < end; ) {
      await pieces.need(Math.min(pieceBytes, end - position))
      // Without waiting, as long as whole records are here.
      for (;;) {
        const { window, view, at } = pieces
        const here = window.length - at
        if (here < recordHeadBytes || position >= end) break
        const keyBytes = size(view, at)
        const valueBytes = size(view, at + 8)
        if (keyBytes !== expected.keyBytes) throw new Wrong(`a key is not of ${expected.keyBytes} bytes`)
        if (!(valueBytes <= valueMaxBytes)) throw new Wrong('a value is too long')
        const bytes = recordHeadBytes + keyBytes + valueBytes
        if (position + bytes > end) throw new Wrong('a record reaches into the tables')
        if (here < bytes) break
        this.#record(window, at + recordHeadBytes, valueBytes, position)
        pieces.at += bytes
        position += bytes
      }
      if (end - position > 0 && end - position < recordHeadBytes) throw new Wrong('a record is cut off')
    }
  }

  #record(window: Buffer, keyAt: number, valueBytes: number, position: number): void {
    const { keyBytes, firstByte, value } = this.expected
    if (firstByte !== undefined && window[keyAt] !== firstByte) throw new Wrong('a key is in the wrong file')
    const valueAt = keyAt + keyBytes
    if (value?.(window, valueAt, valueAt + valueBytes) === false) throw new Wrong('a value cannot be read')
    const { lo, hi } = this.#hash.of(window, keyAt, valueAt)
    this.#sum(lo, hi, position | 0, Math.floor(position / 2 ** 32), 1)
    this.#records += 1
  }

  #sum(lo: number, hi: number, positionLo: number, positionHi: number, sign: 1 | -1): void {
    let a = Math.imul(lo ^ Math.imul(positionLo, 0x9e3779b1), 0x85ebca6b) ^ hi
    a = Math.imul(a ^ (a >>> 15), 0xc2b2ae35) ^ positionHi
    const b = Math.imul(a ^ (a >>> 13) ^ positionLo, 0x27d4eb2f) ^ Math.imul(lo, 0x165667b1)
    this.#sumA = (this.#sumA + sign * (a ^ (a >>> 16))) | 0
    this.#sumB = (this.#sumB + sign * (b ^ (b >>> 15))) | 0
  }

  async #tables({ positions, slots }: CdbHeader, end: number): Promise<void> {
    const { pieces } = this
    for (let table = 0; table < tableCount; table += 1) {
      const count = slots[table] as number
      if (count === 0) continue
      if (positions[table] !== pieces.position) throw new Wrong('tables are not one behind the other')
      const bytes = count * slotBytes
      if (bytes > tableMaxBytes) throw new Wrong('a table is too large')
      // Most of them are small: a turn of the loop for each would cost more than looking at it.
      if (!pieces.has(bytes)) await pieces.need(bytes)
      this.#table(table, count, end)
      pieces.at += bytes
    }
  }

  /** A table of `slots`, all in the window; records end at `end`. */
  #table(table: number, slots: number, end: number): void {
    const { view, at } = this.pieces
    let first = 0
    while (first < slots && !isEmpty(view, at + first * slotBytes)) first += 1
    // A reader that looks for an absent key would go around for ever.
    if (first === slots) throw new Wrong('no slot of a table is empty')
    const upper = 2 ** 24 % slots
    let run = 0
    let occupied = 0
    // Once around from behind an empty slot, so that no run is cut in two.
    for (let step = 1; step <= slots; step += 1) {
      const slot = first + step < slots ? first + step : first + step - slots
      const slotAt = at + slot * slotBytes
      const positionLo = view.getInt32(slotAt + 8, true)
      const positionHi = view.getInt32(slotAt + 12, true)
      if (positionLo === 0 && positionHi === 0) {
        run = 0
        continue
      }
      const lo = view.getInt32(slotAt, true)
      const hi = view.getInt32(slotAt + 4, true)
      run += 1
      occupied += 1
      if (run > runMax) throw new Wrong('too many slots in a row are full')
      if (tableOf(lo) !== table) throw new Wrong('a slot is in another table than its hash')
      const position = (positionLo >>> 0) + positionHi * 2 ** 32
      if (!(position >= headerBytes && position < end)) throw new Wrong('a slot points outside the records')
      const from = startSlot(lo, hi, slots, upper)
      const distance = slot >= from ? slot - from : slot - from + slots
      if (distance >= run) throw new Wrong('a slot is out of reach of its search')
      this.#sum(lo, hi, positionLo, positionHi, -1)
    }
    if (occupied * 2 !== slots) throw new Wrong('a table is not half full')
  }
}

/** Whether the slot at `at` points at no record. */
function isEmpty(view: DataView, at: number): boolean {
  return view.getInt32(at + 8, true) === 0 && view.getInt32(at + 12, true) === 0
}

/** The integer at `at`; anything above 2^32 where it is above that, for no such length is right. */
function size(view: DataView, at: number): number {
  return view.getUint32(at, true) + (view.getUint32(at + 4, true) === 0 ? 0 : 2 ** 32)
}

/** Where the records end: at the first table that has slots, or at the end of a file that has none. */
function tablesStart({ positions, slots }: CdbHeader, sizeBytes: number): number {
  for (let table = 0; table < tableCount; table += 1) {
    if ((slots[table] as number) > 0) return positions[table] as number
  }
  return sizeBytes
}
