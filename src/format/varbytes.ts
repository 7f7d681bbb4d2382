/**
 * Compact records: unsigned integers in groups of seven bits, the lowest first (LEB128), byte strings behind
 * their length. Numbers are exact up to 2^53.
 */
export class VarWriter {
  #bytes = Buffer.allocUnsafeSlow(4096)
  #at = 0

  /** `usual`: bytes for which it makes room when the first 4,096 are not enough; behind that, twice as many each time. */
  constructor(private readonly usual = 0) {}

  #room(count: number): number {
    const start = this.#at
    this.#at += count
    if (this.#at > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.#at, this.usual, this.#bytes.length * 2))
      this.#bytes.copy(larger, 0, 0, start)
      this.#bytes = larger
    }
    return start
  }

  /** Bytes written. */
  get size(): number {
    return this.#at
  }

  u8(value: number): void {
    const at = this.#room(1)
    this.#bytes[at] = value
  }

  u32(value: number): void {
    this.#bytes.writeUInt32LE(value, this.#room(4))
  }

  /** Throws a RangeError on anything but a safe unsigned integer: that is a bug of the caller. */
  uint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is no unsigned integer`)
    let rest = value
    while (rest >= 0x80) {
      this.u8((rest % 0x80) + 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.u8(rest)
  }

  raw(bytes: Uint8Array): void {
    this.part(bytes, 0)
  }

  /** The bytes from `from` on. */
  part(bytes: Uint8Array, from: number): void {
    this.range(bytes, from, bytes.length)
  }

  /** The bytes from `from` to `to`. Few are copied faster one by one. */
  range(bytes: Uint8Array, from: number, to: number): void {
    const count = to - from
    const at = this.#room(count)
    if (count > 64) this.#bytes.set(count === bytes.length ? bytes : bytes.subarray(from, to), at)
    else for (let byte = 0; byte < count; byte += 1) this.#bytes[at + byte] = bytes[from + byte] as number
  }

  /** Bytes behind their length. */
  block(bytes: Uint8Array): void {
    this.uint(bytes.length)
    this.raw(bytes)
  }

  /** Forgets what was written and begins anew. */
  reset(): this {
    this.#at = 0
    return this
  }

  /** What was written: a view that is valid until the next `reset`. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  /** What was written, in a buffer of its own (so that it can be handed to another thread). */
  copy(): Uint8Array {
    return Uint8Array.prototype.slice.call(this.#bytes, 0, this.#at)
  }
}

const none = Buffer.alloc(0)

/** Reads what `VarWriter` wrote. Throws a RangeError where the bytes end early. */
export class VarReader {
  #at: number
  #bytes: Buffer

  constructor(bytes: Uint8Array, start = 0) {
    const { buffer, byteOffset, byteLength } = bytes
    this.#bytes = bytes instanceof Buffer ? bytes : Buffer.from(buffer, byteOffset, byteLength)
    this.#at = start
  }

  get more(): boolean {
    return this.#at < this.#bytes.length
  }

  /** How far it was read. */
  get at(): number {
    return this.#at
  }

  /** The bytes that it reads. */
  get bytes(): Buffer {
    return this.#bytes
  }

  /** Reads other bytes from here on. */
  reset(bytes: Buffer, at: number): this {
    this.#bytes = bytes
    this.#at = at
    return this
  }

  /** Passes over bytes. */
  pass(count: number): void {
    this.#at += this.checked(count)
  }

  /** The same number, where so many bytes are still there. */
  checked(count: number): number {
    if (this.#at + count > this.#bytes.length) throw new RangeError('an index record ends early')
    return count
  }

  u8(): number {
    const value = this.#bytes[this.#at]
    if (value === undefined) throw new RangeError('an index record ends early')
    this.#at += 1
    return value
  }

  u32(): number {
    this.#at += 4
    return this.#bytes.readUInt32LE(this.#at - 4)
  }

  uint(): number {
    const first = this.#bytes[this.#at]
    if (first !== undefined && first < 0x80) {
      this.#at += 1
      return first
    }
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.u8()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) break
      scale *= 0x80
      if (scale > 2 ** 53) throw new RangeError('a number in an index record is too long')
    }
    return value
  }

  /** A view; copy what must stay. */
  raw(count: number): Buffer {
    const start = this.#at
    if (start + count > this.#bytes.length) throw new RangeError('an index record ends early')
    this.#at += count
    return this.#bytes.subarray(start, this.#at)
  }

  block(): Buffer {
    const count = this.uint()
    return count === 0 ? none : this.raw(count)
  }

  /** A byte string behind its length, as text of one character per byte. */
  text(): string {
    const bytes = this.uint()
    return this.#text(this.#at, bytes)
  }

  /** Passes over a byte string behind its length: where it begins. */
  skip(): number {
    const bytes = this.uint()
    const start = this.#at
    this.#at += bytes
    if (this.#at > this.#bytes.length) throw new RangeError('an index record ends early')
    return start
  }

  #text(start: number, size: number): string {
    this.#at = start + size
    if (this.#at > this.#bytes.length) throw new RangeError('an index record ends early')
    return this.#bytes.toString('latin1', start, this.#at)
  }
}
