/**
 * RowBinary, the format in which ClickHouse takes and gives rows: values one after the other without names or separators,
 * integers little-endian, texts and arrays behind their length as LEB128
 * (https://clickhouse.com/docs/interfaces/formats/RowBinary).
 */

const growth = 2
const copyMin = 160

/** Writes rows into one buffer that grows. */
export class RowBinaryWriter {
  #bytes: Buffer
  #at = 0

  constructor(sizeBytes = 1 << 20) {
    this.#bytes = Buffer.allocUnsafe(sizeBytes)
  }

  get size(): number {
    return this.#at
  }

  u8(value: number): void {
    this.#room(1)
    this.#bytes[this.#at] = value
    this.#at += 1
  }

  u16(value: number): void {
    this.#room(2)
    this.#at = this.#bytes.writeUInt16LE(value, this.#at)
  }

  u32(value: number): void {
    this.#room(4)
    this.#u32(value)
  }

  #u32(value: number): void {
    const bytes = this.#bytes
    const at = this.#at
    bytes[at] = value
    bytes[at + 1] = value >>> 8
    bytes[at + 2] = value >>> 16
    bytes[at + 3] = value >>> 24
    this.#at = at + 4
  }

  /** A whole number below 2^53, or any below 2^64 as a bigint. */
  u64(value: number | bigint): void {
    this.#room(8)
    if (typeof value === 'bigint') {
      this.#at = this.#bytes.writeBigUInt64LE(value, this.#at)
      return
    }
    const high = Math.floor(value / 2 ** 32)
    this.#u32(value - high * 2 ** 32)
    this.#u32(high)
  }

  /** Decimal(20, 0): 16 bytes. */
  decimal(value: bigint): void {
    this.u64(value & 0xffff_ffff_ffff_ffffn)
    this.u64(value >> 64n)
  }

  /** The same of an unsigned integer that stands in `bytes`, at most 16 of them, big-endian. */
  amount(bytes: Uint8Array, from: number, to: number): void {
    this.#room(16)
    const start = this.#at
    this.#at += 16
    for (let at = 0; at < 16; at += 1)
      this.#bytes[start + at] = to - 1 - at >= from ? (bytes[to - 1 - at] as number) : 0
  }

  /** Bytes that are RowBinary already. Few are copied faster one by one. */
  range(bytes: Uint8Array, from: number, to: number): void {
    this.#room(to - from)
    const own = this.#bytes
    const start = this.#at
    this.#at += to - from
    if (to - from > copyMin) own.set(bytes.subarray(from, to), start)
    else for (let at = from; at < to; at += 1) own[start + at - from] = bytes[at] as number
  }

  length(value: number): void {
    this.#room(5)
    let left = value
    while (left >= 0x80) {
      this.#bytes[this.#at] = (left & 0x7f) | 0x80
      this.#at += 1
      left = Math.floor(left / 0x80)
    }
    this.#bytes[this.#at] = left
    this.#at += 1
  }

  /** A String: bytes, not only text. */
  bytes(value: Uint8Array): void {
    this.length(value.length)
    this.#room(value.length)
    this.#bytes.set(value, this.#at)
    this.#at += value.length
  }

  /** What was written: a view until the next `reset`. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  /** Goes on in a buffer of its own, so that what was written stays. */
  reset(): void {
    if (this.#at === 0) return
    this.#bytes = Buffer.allocUnsafe(this.#bytes.length)
    this.#at = 0
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * growth, this.#at + bytes))
    this.#bytes.copy(grown, 0, 0, this.#at)
    this.#bytes = grown
  }
}

/** The bytes of an answer are not RowBinary of the columns that were requested. */
export class RowBinaryFault extends Error {}

/** Reads what a server answered, which may be anything: throws a RowBinaryFault where bytes are missing or lengths are absurd. */
export class RowBinaryReader {
  #at = 0

  constructor(private readonly from: Buffer) {}

  get more(): boolean {
    return this.#at < this.from.length
  }

  u8(): number {
    return this.from[this.#pass(1)] as number
  }

  /** A Bool is 0 or 1. */
  bool(): boolean {
    const value = this.u8()
    if (value > 1) throw new RowBinaryFault('a Bool is neither 0 nor 1')
    return value === 1
  }

  u16(): number {
    return this.from.readUInt16LE(this.#pass(2))
  }

  u32(): number {
    return this.from.readUInt32LE(this.#pass(4))
  }

  /** Below 2^53. */
  u64(): number {
    const at = this.#pass(8)
    const high = this.from.readUInt32LE(at + 4)
    if (high >= 2 ** 21) throw new RowBinaryFault('a number of 2^53 or more')
    return high * 2 ** 32 + this.from.readUInt32LE(at)
  }

  /** Decimal(20, 0), not below zero. */
  decimal(): bigint {
    const at = this.#pass(16)
    const high = this.from.readBigInt64LE(at + 8)
    if (high < 0n) throw new RowBinaryFault('an amount below zero')
    return (high << 64n) | this.from.readBigUInt64LE(at)
  }

  length(max: number): number {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.u8()
      value += (byte & 0x7f) * scale
      if (value > max) throw new RowBinaryFault(`a length above ${max}`)
      if (byte < 0x80) return value
    }
  }

  /** A String of at most so many bytes: a view. */
  bytes(max: number): Buffer {
    const size = this.length(max)
    const at = this.#pass(size)
    return this.from.subarray(at, at + size)
  }

  /** A String of exactly so many bytes. */
  exactly(size: number): Buffer {
    const bytes = this.bytes(size)
    if (bytes.length !== size) throw new RowBinaryFault(`a field has ${bytes.length} bytes and not ${size}`)
    return bytes
  }

  #pass(bytes: number): number {
    const at = this.#at
    if (at + bytes > this.from.length) throw new RowBinaryFault('the answer ends within a row')
    this.#at = at + bytes
    return at
  }
}
