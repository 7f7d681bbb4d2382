/**
 * Bencoding, BEP 3. Only the canonical form is read, so that each value has exactly one encoding. Integers and
 * lengths have no leading zeros, keys are in ascending byte order and once each, and nothing follows the end.
 */

/** Keys are byte strings too, held as Latin-1 text: one character a byte, and the order of characters is that of bytes. */
export type Bencoded = number | Uint8Array | readonly Bencoded[] | BencodeDictionary
export type BencodeDictionary = ReadonlyMap<string, Bencoded>

export interface BencodeLimits {
  /** Nesting depth of lists and dictionaries. */
  readonly depthMax: number
  /** Numbers, strings, lists and dictionaries in all; keys do not count. */
  readonly valuesMax: number
  /**
   * Accepts keys in any order, for extension messages: some programs do not sort them. A key that comes twice is
   * refused all the same.
   */
  readonly anyOrder?: boolean
}

export interface BencodeRead {
  readonly value: Bencoded
  /** Where the value ends in the bytes. */
  readonly end: number
  /** Where each value of a dictionary at the top begins and ends. An infohash is that of the bytes as they came. */
  readonly spans: ReadonlyMap<string, readonly [start: number, end: number]>
}

const zero = 0x30
const nine = 0x39
const minus = 0x2d
const colon = 0x3a
const endMark = 0x65

/** A value that is not canonical; never leaves this file. */
class Malformed extends Error {}

class Reader {
  readonly spans = new Map<string, readonly [number, number]>()
  #at = 0
  #values = 0

  constructor(
    private readonly bytes: Buffer,
    private readonly limits: BencodeLimits,
  ) {}

  get at(): number {
    return this.#at
  }

  value(depth: number): Bencoded {
    this.#values += 1
    if (this.#values > this.limits.valuesMax || depth > this.limits.depthMax) throw new Malformed()
    const mark = this.bytes[this.#at]
    if (mark === 0x69) {
      this.#at += 1
      return this.#integer()
    }
    if (mark === 0x6c) return this.#list(depth)
    if (mark === 0x64) return this.#dictionary(depth)
    return this.#string()
  }

  #list(depth: number): Bencoded[] {
    this.#at += 1
    const list: Bencoded[] = []
    while (this.bytes[this.#at] !== endMark) list.push(this.value(depth + 1))
    this.#at += 1
    return list
  }

  #dictionary(depth: number): BencodeDictionary {
    this.#at += 1
    const dictionary = new Map<string, Bencoded>()
    let before: string | undefined
    while (this.bytes[this.#at] !== endMark) {
      const key = this.#string().toString('latin1')
      const isNew =
        this.limits.anyOrder === true ? !dictionary.has(key) : before === undefined || key > before
      if (!isNew) throw new Malformed()
      before = key
      const start = this.#at
      dictionary.set(key, this.value(depth + 1))
      if (depth === 0) this.spans.set(key, [start, this.#at])
    }
    this.#at += 1
    return dictionary
  }

  #integer(): number {
    const negative = this.bytes[this.#at] === minus
    if (negative) this.#at += 1
    const value = this.#digits(endMark)
    if (negative && value === 0) throw new Malformed()
    return negative ? -value : value
  }

  /** Reads digits up to the byte `mark`, and skips that byte. */
  #digits(mark: number): number {
    const start = this.#at
    let value = 0
    for (;;) {
      const digit = this.bytes[this.#at]
      this.#at += 1
      if (digit === mark && this.#at - start > 1) break
      if (digit === undefined || digit < zero || digit > nine) throw new Malformed()
      value = value * 10 + (digit - zero)
      if (!Number.isSafeInteger(value)) throw new Malformed()
    }
    if (this.bytes[start] === zero && this.#at - start > 2) throw new Malformed()
    return value
  }

  #string(): Buffer {
    const length = this.#digits(colon)
    const end = this.#at + length
    if (end > this.bytes.length) throw new Malformed()
    const found = this.bytes.subarray(this.#at, end)
    this.#at = end
    return found
  }
}

/**
 * Reads the value at the beginning of `bytes`, whatever follows it; undefined where there is none. Strings share the memory of
 * `bytes`.
 */
export function readBencode(bytes: Uint8Array, limits: BencodeLimits): BencodeRead | undefined {
  const reader = new Reader(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), limits)
  try {
    const value = reader.value(0)
    return { value, end: reader.at, spans: reader.spans }
  } catch (error) {
    if (error instanceof Malformed) return undefined
    throw error
  }
}

/** Same as `readBencode`, for bytes that hold the value and nothing else. */
export function decodeBencode(bytes: Uint8Array, limits: BencodeLimits): BencodeRead | undefined {
  const read = readBencode(bytes, limits)
  return read?.end === bytes.length ? read : undefined
}

/** What may be written: text stands for its UTF-8 bytes. */
export type Bencodable =
  | number
  | string
  | Uint8Array
  | readonly Bencodable[]
  | ReadonlyMap<string, Bencodable>

/** The canonical bytes of a value; keys of maps are Latin-1, one character a byte. Throws on a number that is no safe integer. */
export function encodeBencode(value: Bencodable): Buffer {
  const parts: Uint8Array[] = []
  write(value, parts)
  return Buffer.concat(parts)
}

function write(value: Bencodable, parts: Uint8Array[]): void {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} cannot be bencoded`)
    parts.push(Buffer.from(`i${value}e`))
  } else if (typeof value === 'string') writeBytes(Buffer.from(value), parts)
  else if (value instanceof Uint8Array) writeBytes(value, parts)
  else if (value instanceof Map) {
    parts.push(Buffer.from('d'))
    const entries = [...(value as ReadonlyMap<string, Bencodable>)]
    for (const [key, inner] of entries.sort(([one], [other]) => (one < other ? -1 : 1))) {
      writeBytes(Buffer.from(key, 'latin1'), parts)
      write(inner, parts)
    }
    parts.push(Buffer.from('e'))
  } else {
    parts.push(Buffer.from('l'))
    for (const inner of value as readonly Bencodable[]) write(inner, parts)
    parts.push(Buffer.from('e'))
  }
}

function writeBytes(bytes: Uint8Array, parts: Uint8Array[]): void {
  parts.push(Buffer.from(`${bytes.length}:`), bytes)
}
