import type { Segment } from '../index/segment.js'
import { putLength } from '../index/shapes.js'
import { nameStart, valueStart } from '../index/word-key.js'

/** Bytes that stand somewhere. */
export interface TextPlace {
  bytes: Uint8Array
  from: number
  to: number
}

const contentType = 'content-type'
/** Words that are kept: one for each place, by the lower bits of its code. The most frequent ones have the lowest codes. */
const placesCount = 2 ** 16
const sizeBytes = 8 * 2 ** 20
/** Longer words are read each time. */
const longMax = 4096
/** Bytes of the length of a field or tag, at most. */
const lengthBytes = 10

/** Whether a tag of this name says what type the content has. */
export function isContentType(name: Uint8Array): boolean {
  return (
    name.length === contentType.length &&
    Buffer.from(name.buffer, name.byteOffset, name.byteLength).toString('latin1').toLowerCase() ===
      contentType
  )
}

/**
 * The words of one segment that have a number, as RowBinary: a field is its bytes behind their length, a tag is its name and its
 * value, each behind its length. Bounded: 8 MiB of words, and a MiB of places.
 */
export class WordCache {
  /** Code and one of the word at each place. */
  readonly #codes = new Float64Array(placesCount)
  readonly #starts = new Int32Array(placesCount)
  readonly #ends = new Int32Array(placesCount)
  /** Where the value of a Content-Type begins; -1: it is another tag, or a field. */
  readonly #types = new Int32Array(placesCount)
  #bytes = new Uint8Array(sizeBytes)
  #used = 0
  /** Where the value of a Content-Type begins in the tag that was read last; -1: it is another tag. */
  typeAt = -1

  constructor(private readonly segment: Segment) {}

  /** Says where the field with this code stands. */
  field(code: number, into: TextPlace): void {
    if (this.#find(code, into)) return
    const key = this.#keyOf(code)
    const target = this.#target(code, key.length + lengthBytes, into)
    const at = putLength(target, into.from, key.length - 1)
    target.set(key.subarray(1), at)
    this.#end(code, at + key.length - 1, -1, into)
  }

  /** Says where the tag with this code stands, and by `typeAt` whether it is the type of the content. */
  tag(code: number, into: TextPlace): void {
    if (this.#find(code, into)) return
    const key = this.#keyOf(code)
    const [from, value] = [nameStart(key, 0), valueStart(key, 0, key.length)]
    const target = this.#target(code, key.length + 2 * lengthBytes, into)
    const name = putLength(target, into.from, value - from)
    target.set(key.subarray(from, value), name)
    const end = name + value - from
    const text = putLength(target, end, key.length - value)
    target.set(key.subarray(value), text)
    const isType = isContentType(key.subarray(from, value))
    this.#end(code, text + key.length - value, isType ? end : -1, into)
  }

  #find(code: number, into: TextPlace): boolean {
    const place = code % placesCount
    if (this.#codes[place] !== code + 1) return false
    into.bytes = this.#bytes
    into.from = this.#starts[place] as number
    into.to = this.#ends[place] as number
    this.typeAt = this.#types[place] as number
    return true
  }

  #keyOf(code: number): Buffer {
    const { words, rows } = this.segment
    return words.key(rows.numberOf(code))
  }

  /** Room for a word. Whoever reads a word that was found before goes on to read it where it was. */
  #target(code: number, size: number, into: TextPlace): Uint8Array {
    into.from = 0
    if (size > longMax) {
      into.bytes = new Uint8Array(size)
      return into.bytes
    }
    if (this.#used + size > sizeBytes) {
      this.#bytes = new Uint8Array(sizeBytes)
      this.#used = 0
      this.#codes.fill(0)
    }
    into.from = this.#used
    into.bytes = this.#bytes
    this.#starts[code % placesCount] = this.#used
    this.#codes[code % placesCount] = 0
    return into.bytes
  }

  #end(code: number, end: number, typeAt: number, into: TextPlace): void {
    into.to = end
    this.typeAt = typeAt
    if (into.bytes !== this.#bytes) return
    const place = code % placesCount
    this.#ends[place] = end
    this.#types[place] = typeAt
    this.#codes[place] = code + 1
    this.#used = end
  }
}
