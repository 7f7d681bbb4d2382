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
import { Chains, writeAll } from './chains.js'

/** Bytes gathered before they are written. */
const outBytes = 1024 * 1024
/** 256 slots a block, a block for each table: 1 MiB. */
const slotBlockBytes = 4096

/** The memory of a writer. */
export interface CdbScratch {
  readonly out: Buffer
  readonly slots: Buffer
  /** A table while it is filled; made larger for a larger one. */
  table: Int32Array
}

export function cdbScratch(): CdbScratch {
  return {
    out: Buffer.allocUnsafeSlow(outBytes),
    slots: Buffer.allocUnsafeSlow(tableCount * slotBlockBytes),
    table: new Int32Array(slotBlockBytes),
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

  /** Writes bytes together with others, where they are few. */
  #gather(bytes: Uint8Array): void {
    if (this.#used + bytes.length > outBytes) this.#flush()
    if (bytes.length > outBytes) {
      this.#append(bytes)
      return
    }
    this.#out.set(bytes, this.#used)
    this.#used += bytes.length
  }

  #append(bytes: Uint8Array): void {
    writeAll(this.#file, bytes, this.#written)
    this.#written += bytes.length
  }

  /** Writes the tables and the header. Nothing can be added any more. The file is not synced. */
  finish(): { readonly sizeBytes: number } {
    try {
      const header = Buffer.alloc(headerBytes)
      for (let table = 0; table < tableCount; table += 1) {
        const slots = (this.#slots.sizeOf(table) / slotBytes) * 2
        if (slots > slotsMax) throw new RangeError('too many records for one file')
        // The running position also where the table is empty, as the writers of published files have it.
        writeU64(header, table * slotBytes, this.#written + this.#used)
        writeU64(header, table * slotBytes + 8, slots)
        if (slots > 0) this.#gather(this.#table(table, slots))
      }
      this.#flush()
      writeAll(this.#file, header, 0)
      return { sizeBytes: this.#written }
    } finally {
      this.close()
    }
  }

  /** The slots of a table: each entry in the first free slot at or behind its own, in the order of the records. */
  #table(table: number, slots: number): Uint8Array {
    if (this.scratch.table.length < slots * 4) this.scratch.table = new Int32Array(slots * 4)
    const words = this.scratch.table
    words.fill(0, 0, slots * 4)
    const upper = 2 ** 24 % slots
    for (const block of this.#slots.read(table)) {
      const from = new Int32Array(block.buffer, block.byteOffset, block.length >> 2)
      for (let at = 0; at < from.length; at += 4) {
        const lo = from[at] as number
        const hi = from[at + 1] as number
        let slot = startSlot(lo, hi, slots, upper)
        while (words[slot * 4 + 2] !== 0 || words[slot * 4 + 3] !== 0)
          slot = slot + 1 === slots ? 0 : slot + 1
        words[slot * 4] = lo
        words[slot * 4 + 1] = hi
        words[slot * 4 + 2] = from[at + 2] as number
        words[slot * 4 + 3] = from[at + 3] as number
      }
    }
    return new Uint8Array(words.buffer, 0, slots * slotBytes)
  }

  /** Gives up: closes what is open. The half-written file stays for whoever made its folder. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#slots.close()
    closeSync(this.#file)
  }
}
