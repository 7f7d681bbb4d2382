import { closeSync, openSync } from 'node:fs'
import {
  headerBytes,
  KeyHash,
  recordHeadBytes,
  slotBytes,
  slotsMax,
  startSlot,
  tableCount,
  tableOf,
  writeU64,
} from '../format/cdb64.js'
import { runMax } from '../format/cdb64-lookup.js'
import { Chains, writeAll } from './chains.js'

/** Bytes gathered before they are written. */
const outBytes = 1024 * 1024
/** 256 slots a block, a block for each table: 1 MiB. */
const slotBlockBytes = 4096
const slotWords = slotBytes / 4

/** The memory of a writer. */
export interface CdbScratch {
  readonly out: Buffer
  readonly slots: Buffer
  /** Tables while they are filled; made larger for a larger one. */
  tables: Int32Array
}

/** Memory of 3 MiB, which several writers can use one after the other. */
export function cdbScratch(): CdbScratch {
  return {
    out: Buffer.allocUnsafeSlow(outBytes),
    slots: Buffer.allocUnsafeSlow(tableCount * slotBlockBytes),
    tables: new Int32Array(outBytes >> 2),
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

/**
 * Writes one CDB64 file: the records in the order given, then the tables. What is written depends on the records alone. Memory
 * does not grow with their number but for one table at a time, of 32 bytes a record in it.
 */
export class CdbWriter {
  records = 0
  /** Where records lie whose slots are in a row of more full slots than readers search: one for each such table. See `finish`. */
  readonly crowded: number[] = []
  readonly #file: number
  readonly #slots: Chains
  readonly #words: Int32Array
  readonly #hash = new KeyHash()
  readonly #out: Buffer
  readonly #view: DataView
  #used = 0
  #from: Uint8Array = new Uint8Array(0)
  #fromView: DataView = viewOf(this.#from)
  #closed = false
  /** Bytes that are in the file before those of `out`. */
  #written = headerBytes

  /**
   * `path` must not exist. A second file beside it, `<path>.slots`, comes and goes. Whoever writes many files, one after the
   * other, makes the scratch once.
   */
  constructor(
    path: string,
    private readonly scratch: CdbScratch = cdbScratch(),
  ) {
    this.#out = scratch.out
    this.#view = viewOf(scratch.out)
    this.#slots = new Chains(`${path}.slots`, tableCount, slotBlockBytes, scratch.slots)
    const { memory } = this.#slots
    this.#words = new Int32Array(memory.buffer, memory.byteOffset, memory.length >> 2)
    this.#file = openSync(path, 'wx', 0o644)
  }

  /** Adds a record: `keyBytes` of key at `start` of `from`, `valueBytes` of value behind it. */
  add(from: Uint8Array, start: number, keyBytes: number, valueBytes: number): void {
    const bodyBytes = keyBytes + valueBytes
    const bytes = recordHeadBytes + bodyBytes
    if (this.#used + bytes > outBytes) this.#flush()
    const position = this.#written + this.#used
    this.#note(this.#hash.of(from, start, start + keyBytes), position)
    this.records += 1
    if (bytes > outBytes) {
      this.#addLarge(from, start, keyBytes, valueBytes)
      return
    }
    if (from !== this.#from) {
      this.#from = from
      this.#fromView = viewOf(from)
    }
    const to = this.#view
    const source = this.#fromView
    let at = this.#used
    to.setUint32(at, keyBytes, true)
    to.setUint32(at + 4, 0, true)
    to.setUint32(at + 8, valueBytes, true)
    to.setUint32(at + 12, 0, true)
    at += recordHeadBytes
    // By hand, four bytes at a time: records are short, and a view for each would cost more than its bytes.
    let done = 0
    for (; done + 4 <= bodyBytes; done += 4) to.setInt32(at + done, source.getInt32(start + done, true), true)
    for (; done < bodyBytes; done += 1) to.setUint8(at + done, source.getUint8(start + done))
    this.#used = at + bodyBytes
  }

  #addLarge(from: Uint8Array, start: number, keyBytes: number, valueBytes: number): void {
    const head = Buffer.alloc(recordHeadBytes)
    writeU64(head, 0, keyBytes)
    writeU64(head, 8, valueBytes)
    this.#append(head)
    this.#append(from.subarray(start, start + keyBytes + valueBytes))
  }

  #note({ lo, hi }: KeyHash, position: number): void {
    const word = this.#slots.reserve(tableOf(lo), slotBytes) >> 2
    const words = this.#words
    words[word] = lo
    words[word + 1] = hi
    words[word + 2] = position | 0
    words[word + 3] = Math.floor(position / 2 ** 32)
  }

  #flush(): void {
    this.#append(this.#out.subarray(0, this.#used))
    this.#used = 0
  }

  #append(bytes: Uint8Array): void {
    writeAll(this.#file, bytes, this.#written)
    this.#written += bytes.length
  }

  /**
   * Writes the tables and the header. Nothing can be added any more. The file is not synced. Where `crowded` is not empty then,
   * no reader takes the file: the hash has no key, so ids can be made that fall on one stretch of a table. With one record less
   * the number of slots is another one, and so the place of each.
   */
  finish(): { readonly sizeBytes: number } {
    try {
      this.#flush()
      const header = Buffer.alloc(headerBytes)
      let used = 0
      for (let table = 0; table < tableCount; table += 1) {
        const slots = (this.#slots.sizeOf(table) / slotBytes) * 2
        if (slots > slotsMax) throw new RangeError('too many records for one file')
        const end = used + slots * slotWords
        if (end > this.scratch.tables.length) {
          this.#appendTables(used)
          used = 0
        }
        // The running position also where the table is empty, as the writers of published files have it.
        writeU64(header, table * slotBytes, this.#written + used * 4)
        writeU64(header, table * slotBytes + 8, slots)
        if (slots > 0) this.#table(table, slots, used)
        used += slots * slotWords
      }
      this.#appendTables(used)
      writeAll(this.#file, header, 0)
      return { sizeBytes: this.#written }
    } finally {
      this.close()
    }
  }

  #appendTables(words: number): void {
    this.#append(new Uint8Array(this.scratch.tables.buffer, 0, words * 4))
  }

  /** The slots of a table, `at` words behind others. */
  #table(table: number, slots: number, at: number): void {
    const size = slots * slotWords
    if (at + size > this.scratch.tables.length) this.scratch.tables = new Int32Array(size)
    this.scratch.tables.fill(0, at, at + size)
    const held = this.#slots.heldOf(table)
    if (this.#slots.sizeOf(table) > held) {
      for (const block of this.#slots.flushed(table)) {
        const from = new Int32Array(block.buffer, block.byteOffset, block.length >> 2)
        this.#settle(from, 0, from.length, slots, at)
      }
    }
    const start = (table * slotBlockBytes) >> 2
    this.#settle(this.#words, start, start + (held >> 2), slots, at)
    const position = this.#crowdedIn(slots, at)
    if (position !== undefined) this.crowded.push(position)
  }

  /** Position of the record of the first slot that has too many full ones before it; undefined: no slot has. */
  #crowdedIn(slots: number, at: number): number | undefined {
    if (slots <= runMax) return undefined
    const words = this.scratch.tables
    // Half of the slots are empty: two rounds find a row that goes over the end.
    for (let slot = 0, run = 0; slot < 2 * slots; slot += 1) {
      const word = at + (slot % slots) * slotWords
      const [lo, hi] = [words[word + 2] as number, words[word + 3] as number]
      run = lo === 0 && hi === 0 ? 0 : run + 1
      if (run > runMax) return (lo >>> 0) + hi * 2 ** 32
    }
    return undefined
  }

  /** Each entry into the first free slot at or behind its own, in the order of the records. */
  #settle(from: Int32Array, start: number, end: number, slots: number, at: number): void {
    const words = this.scratch.tables
    const upper = 2 ** 24 % slots
    const last = at + (slots - 1) * slotWords
    for (let entry = start; entry < end; entry += slotWords) {
      const lo = from[entry] as number
      const hi = from[entry + 1] as number
      let slot = at + startSlot(lo, hi, slots, upper) * slotWords
      while (words[slot + 2] !== 0 || words[slot + 3] !== 0) slot = slot === last ? at : slot + slotWords
      words[slot] = lo
      words[slot + 1] = hi
      words[slot + 2] = from[entry + 2] as number
      words[slot + 3] = from[entry + 3] as number
    }
  }

  /** Gives up: closes what is open. The half-written file stays for whoever made its folder. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#slots.close()
    closeSync(this.#file)
  }
}
