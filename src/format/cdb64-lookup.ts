import {
  type CdbHeader,
  headerBytes,
  KeyHash,
  recordHeadBytes,
  slotBytes,
  startSlot,
  tableOf,
} from './cdb64.js'

/** How much is read at once. */
export interface LookupWindows {
  /** A multiple of 16. Half of the slots being empty, 4 slots end most searches. */
  readonly slotBytes: number
  /** Room for a whole usual record. */
  readonly recordBytes: number
}

/**
 * Longest run of occupied slots that is followed. In a table that is half empty no run is so long unless it was made
 * on purpose.
 */
export const runMax = 1024

/** A longer value cannot be a root-transaction record. */
export const valueMaxBytes = 64 * 1024

/**
 * `read`: the caller fills `buffer` with `length` bytes from `position` of the file (or passes memory that has them
 * to `lie`), and calls `step` again. `found`: the value is in `bytes` from `valueStart` to `valueEnd`. `broken`: this
 * is no sound file.
 */
export type LookupStep = 'read' | 'found' | 'absent' | 'broken'

/**
 * Searches CDB64 files, as a state machine without input or output: the caller does the reads, from a file or over
 * the network. Reusable for one search after the other.
 */
export class CdbLookup {
  /** What was read goes here. */
  buffer: Buffer
  /** What was read: `buffer`, or the memory passed to `lie`. */
  bytes: Uint8Array
  position = 0
  length = 0
  valueStart = 0
  valueEnd = 0
  readonly #hash = new KeyHash()
  readonly #windows: LookupWindows
  #bufferView: DataView
  #view: DataView
  /** Position in `bytes` where what was read begins. */
  #from = 0
  #key: Uint8Array = new Uint8Array(0)
  #sizeBytes = 0
  #table = 0
  #slots = 0
  #slot = 0
  #left = 0
  #inRecord = false

  constructor(windows: LookupWindows) {
    this.#windows = windows
    this.buffer = Buffer.alloc(Math.max(windows.slotBytes, windows.recordBytes))
    this.bytes = this.buffer
    this.#bufferView = viewOf(this.buffer)
    this.#view = this.#bufferView
  }

  /** Begins the search for `key` in a file of `sizeBytes` with this header. */
  begin(header: CdbHeader, sizeBytes: number, key: Uint8Array): 'read' | 'absent' {
    const { lo, hi } = this.#hash.of(key, 0, key.length)
    const table = tableOf(lo)
    const slots = header.slots[table] as number
    if (slots === 0) return 'absent'
    this.#key = key
    this.#sizeBytes = sizeBytes
    this.#table = header.positions[table] as number
    this.#slots = slots
    this.#slot = startSlot(lo, hi, slots)
    this.#left = Math.min(slots, runMax + 1)
    this.#readSlots()
    return 'read'
  }

  /** Looks at what was read. */
  step(): LookupStep {
    return this.#inRecord ? this.#stepRecord() : this.#stepSlots()
  }

  /** Instead of filling `buffer`: what is to be read lies in `view` (which is of all of `bytes`) from `from` on. */
  lie(bytes: Uint8Array, view: DataView, from: number): void {
    this.bytes = bytes
    this.#view = view
    this.#from = from
  }

  #toBuffer(): void {
    this.bytes = this.buffer
    this.#view = this.#bufferView
    this.#from = 0
  }

  #readSlots(): void {
    this.#toBuffer()
    this.#inRecord = false
    this.position = this.#table + this.#slot * slotBytes
    this.length = Math.min(this.#windows.slotBytes, (this.#slots - this.#slot) * slotBytes)
  }

  #stepSlots(): LookupStep {
    const view = this.#view
    const { lo, hi } = this.#hash
    const end = this.#from + this.length
    for (let at = this.#from; at < end; at += slotBytes) {
      const positionLo = view.getUint32(at + 8, true)
      const positionHi = view.getInt32(at + 12, true)
      if (positionLo === 0 && positionHi === 0) return 'absent'
      if (this.#left === 0) return this.#slots <= runMax ? 'absent' : 'broken'
      this.#left -= 1
      this.#slot = this.#slot + 1 === this.#slots ? 0 : this.#slot + 1
      if (view.getInt32(at, true) === lo && view.getInt32(at + 4, true) === hi)
        return this.#readRecord(positionLo, positionHi)
    }
    this.#readSlots()
    return 'read'
  }

  #readRecord(lo: number, hi: number): LookupStep {
    const position = hi >= 0 && hi < 2 ** 21 ? hi * 2 ** 32 + lo : Number.NaN
    const room = this.#sizeBytes - position
    if (!(position >= headerBytes && room >= recordHeadBytes)) return 'broken'
    this.#toBuffer()
    this.#inRecord = true
    this.position = position
    this.length = Math.min(this.#windows.recordBytes, room)
    return 'read'
  }

  #stepRecord(): LookupStep {
    const key = this.#key
    const from = this.#from
    const keyBytes = lengthAt(this.#view, from)
    const valueBytes = lengthAt(this.#view, from + 8)
    const whole = recordHeadBytes + keyBytes + valueBytes
    if (!(whole <= this.#sizeBytes - this.position)) return 'broken'
    if (keyBytes !== key.length) return this.#other()
    if (valueBytes > valueMaxBytes) return 'broken'
    if (whole > this.length) {
      this.#grow(whole)
      this.#toBuffer()
      this.length = whole
      return 'read'
    }
    const { bytes } = this
    for (let at = 0; at < keyBytes; at += 1) {
      if (bytes[from + recordHeadBytes + at] !== key[at]) return this.#other()
    }
    this.valueStart = from + recordHeadBytes + keyBytes
    this.valueEnd = from + whole
    return 'found'
  }

  /** A record with the same hash but another key: the search goes on with the next slots. */
  #other(): LookupStep {
    this.#readSlots()
    return 'read'
  }

  #grow(bytes: number): void {
    if (this.buffer.length >= bytes) return
    this.buffer = Buffer.alloc(bytes)
    this.#bufferView = viewOf(this.buffer)
  }
}

/**
 * The integer at `at`; where it is 2^32 or more, a number above 2^53: no such length is valid, so the exact value
 * does not matter.
 */
function lengthAt(view: DataView, at: number): number {
  return view.getUint32(at, true) + (view.getUint32(at + 4, true) === 0 ? 0 : 2 ** 53)
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}
