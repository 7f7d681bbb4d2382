/**
 * Metadata of Parquet files is one struct in Thrift's compact protocol. The library makes an object of each value in it, and
 * allocates a list by its stated length, before any field is checked: one byte becomes hundreds. So it is walked here first.
 */

/** Types of fields, by the low half of their first byte (Thrift's compact protocol). */
const types = {
  yes: 1,
  no: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  struct: 12,
} as const

/** Structs within structs: the metadata of Parquet has six. */
const depthMax = 16
/** Bytes of a number of 64 bits at most, seven bits a byte. */
const varintBytesMax = 10

/** A walk over one struct. Each step says whether what it read is well formed and within the bounds. */
class Walk {
  constructor(
    private readonly bytes: Uint8Array,
    public at: number,
    private valuesLeft: number,
  ) {}

  struct(depth: number): boolean {
    if (depth > depthMax) return false
    for (;;) {
      const head = this.bytes[this.at++]
      if (head === undefined) return false
      if ((head & 0x0f) === 0) return true
      // The number of the field, where it is not the one before and some more.
      if (head >> 4 === 0 && this.varint() === undefined) return false
      if (!this.value(head & 0x0f, depth)) return false
    }
  }

  private value(type: number, depth: number): boolean {
    this.valuesLeft -= 1
    if (this.valuesLeft < 0) return false
    switch (type) {
      case types.yes:
      case types.no:
        return true
      case types.byte:
        return this.skip(1)
      case types.i16:
      case types.i32:
      case types.i64:
        return this.varint() !== undefined
      case types.double:
        return this.skip(8)
      case types.binary:
        return this.skip(this.varint() ?? Number.POSITIVE_INFINITY)
      case types.list:
        return this.list(depth)
      case types.struct:
        return this.struct(depth + 1)
      default:
        return false
    }
  }

  private list(depth: number): boolean {
    if (depth > depthMax) return false
    const head = this.bytes[this.at++]
    if (head === undefined) return false
    const size = head >> 4 === 15 ? this.varint() : head >> 4
    // Each has at least a byte.
    if (size === undefined || size > this.bytes.length - this.at) return false
    const type = head & 0x0f
    const ofOne = type === types.yes || type === types.no ? types.byte : type
    for (let left = size; left > 0; left -= 1) if (!this.value(ofOne, depth + 1)) return false
    return true
  }

  private skip(count: number): boolean {
    this.at += count
    return this.at <= this.bytes.length
  }

  /** Undefined: it is cut off, or has more bytes than any number. */
  private varint(): number | undefined {
    let value = 0
    for (let read = 0; read < varintBytesMax; read += 1) {
      const byte = this.bytes[this.at++]
      if (byte === undefined) return undefined
      value += (byte & 0x7f) * 2 ** (7 * read)
      if (byte < 0x80) return value
    }
    return undefined
  }
}

/** Whether a struct that begins at `start` is well formed, and has at most `valuesMax` values with those of structs within it. */
export function isThriftStruct(bytes: Uint8Array, start: number, valuesMax: number): boolean {
  return new Walk(bytes, start, valuesMax).struct(0)
}
