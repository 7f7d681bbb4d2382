/** Maps and arrays in each other that are skipped: nothing that is published has more than two. */
const depthMax = 16

/**
 * The part of MessagePack that index records are written in: maps, arrays, strings, binary, integers that are not negative.
 * A reader takes integers in every form that holds one, double precision included; a writer takes the shortest below 2^32 and
 * double precision above, as the records that are published do.
 */
export class PackReader {
  /** Set when a value is not of the requested kind; everything that is returned from then on is meaningless. */
  failed = false
  #at: number
  readonly #end: number

  constructor(
    private readonly bytes: Uint8Array,
    start = 0,
    end = bytes.length,
  ) {
    this.#at = start
    this.#end = end
  }

  get atEnd(): boolean {
    return this.#at === this.#end
  }

  /** Number of pairs of the map that begins here. */
  map(): number {
    const head = this.#byte()
    if ((head & 0xf0) === 0x80) return head & 0x0f
    return head === 0xde ? this.#uint(2) : this.#fail()
  }

  /** Number of entries of the array that begins here. */
  array(): number {
    const head = this.#byte()
    if ((head & 0xf0) === 0x90) return head & 0x0f
    return head === 0xdc ? this.#uint(2) : this.#fail()
  }

  /** A string of one ASCII character as its code; 0 for every other string. */
  letter(): number {
    const head = this.#byte()
    const length = (head & 0xe0) === 0xa0 ? head & 0x1f : head === 0xd9 ? this.#uint(1) : this.#fail()
    const code = length === 1 ? (this.bytes[this.#at] ?? 0) : 0
    this.#skip(length)
    return code < 0x80 ? code : 0
  }

  /** A view of binary of exactly `length` bytes. */
  binary(length: number): Uint8Array {
    const head = this.#byte()
    const written =
      head === 0xc4 ? this.#uint(1) : head === 0xc5 ? this.#uint(2) : head === 0xc6 ? this.#uint(4) : -1
    if (written !== length) this.#fail()
    const start = this.#at
    this.#skip(length)
    return this.bytes.subarray(start, start + length)
  }

  /** An integer from 0 to 2^53 - 1. */
  integer(): number {
    const head = this.#byte()
    if (head < 0x80) return head
    if (head >= 0xcc && head <= 0xce) return this.#uint(1 << (head - 0xcc))
    if (head >= 0xd0 && head <= 0xd2) return this.#signed(1 << (head - 0xd0))
    if (head === 0xcf || head === 0xd3) return this.#safe(this.#uint(4) * 2 ** 32 + this.#uint(4))
    if (head !== 0xcb || this.#at + 8 > this.#end) return this.#fail()
    // Such large numbers are rare, so the view is made here: a view for each reader would take longer than reading
    // the record.
    const { buffer, byteOffset } = this.bytes
    const value = new DataView(buffer, byteOffset + this.#at, 8).getFloat64(0)
    this.#at += 8
    return this.#safe(value)
  }

  /**
   * Skips one value of any kind, with all that is in it. Maps and arrays in each other down to `deepest` levels; each value in
   * them takes a byte at least, so the work is bounded by the bytes.
   */
  skip(deepest = depthMax): void {
    const head = this.#byte()
    const values = this.#valuesIn(head)
    if (values !== undefined) {
      if (deepest === 0) this.#fail()
      for (let left = values; left > 0 && !this.failed; left -= 1) this.skip(deepest - 1)
      return
    }
    if (head < 0x80 || head >= 0xe0 || head === 0xc0 || head === 0xc2 || head === 0xc3) return
    if ((head & 0xe0) === 0xa0) this.#skip(head & 0x1f)
    else if (head === 0xd9 || head === 0xc4) this.#skip(this.#uint(1))
    else if (head === 0xda || head === 0xc5) this.#skip(this.#uint(2))
    else if (head === 0xdb || head === 0xc6) this.#skip(this.#uint(4))
    else if (head >= 0xcc && head <= 0xcf) this.#skip(1 << (head - 0xcc))
    else if (head >= 0xd0 && head <= 0xd3) this.#skip(1 << (head - 0xd0))
    else if (head >= 0xd4 && head <= 0xd8) this.#skip(1 + (1 << (head - 0xd4)))
    else if (head >= 0xc7 && head <= 0xc9) this.#skip(1 + this.#uint(1 << (head - 0xc7)))
    else if (head === 0xca || head === 0xcb) this.#skip(head === 0xca ? 4 : 8)
    else this.#fail()
  }

  /** How many values, keys included, follow the head of a map or array; undefined: it is the head of something else. */
  #valuesIn(head: number): number | undefined {
    if ((head & 0xf0) === 0x80) return 2 * (head & 0x0f)
    if ((head & 0xf0) === 0x90) return head & 0x0f
    if (head === 0xdc || head === 0xdd) return this.#uint(head === 0xdc ? 2 : 4)
    if (head === 0xde || head === 0xdf) return 2 * this.#uint(head === 0xde ? 2 : 4)
    return undefined
  }

  #fail(): 0 {
    this.failed = true
    return 0
  }

  #byte(): number {
    if (this.#at >= this.#end) return this.#fail()
    const byte = this.bytes[this.#at] as number
    this.#at += 1
    return byte
  }

  #uint(length: number): number {
    if (this.#at + length > this.#end) return this.#fail()
    let value = 0
    for (let at = 0; at < length; at += 1) value = value * 256 + (this.bytes[this.#at + at] as number)
    this.#at += length
    return value
  }

  #signed(length: number): number {
    const value = this.#uint(length)
    return value < 2 ** (8 * length - 1) ? value : this.#fail()
  }

  #safe(value: number): number {
    return Number.isSafeInteger(value) && value >= 0 ? value : this.#fail()
  }

  #skip(length: number): void {
    if (this.#at + length > this.#end) this.#fail()
    else this.#at += length
  }
}

/** Writes into `bytes`, which has room enough: a record is at most some hundred bytes. */
export class PackWriter {
  /** Where the next byte goes. */
  at = 0
  readonly #view: DataView

  constructor(readonly bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** Up to 15 pairs follow. */
  map(pairs: number): void {
    this.#byte(0x80 | pairs)
  }

  /** Up to 15 entries follow. */
  array(entries: number): void {
    this.#byte(0x90 | entries)
  }

  /** A string of one ASCII character. */
  letter(code: number): void {
    const { at, bytes } = this
    bytes[at] = 0xa1
    bytes[at + 1] = code
    this.at = at + 2
  }

  /** Up to 255 bytes. */
  binary(value: Uint8Array): void {
    const { at, bytes } = this
    const { length } = value
    bytes[at] = 0xc4
    bytes[at + 1] = length
    for (let index = 0; index < length; index += 1) bytes[at + 2 + index] = value[index] as number
    this.at = at + 2 + length
  }

  /** From 0 to 2^53 - 1. */
  integer(value: number): void {
    if (value < 0x80) {
      this.#byte(value)
    } else if (value < 0x100) {
      this.#byte(0xcc)
      this.#byte(value)
    } else if (value < 0x1_0000) {
      this.#byte(0xcd)
      this.#view.setUint16(this.at, value)
      this.at += 2
    } else if (value < 2 ** 32) {
      this.#byte(0xce)
      this.#view.setUint32(this.at, value)
      this.at += 4
    } else {
      this.#byte(0xcb)
      this.#view.setFloat64(this.at, value)
      this.at += 8
    }
  }

  #byte(value: number): void {
    this.bytes[this.at] = value
    this.at += 1
  }
}
