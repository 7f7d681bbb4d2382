import { randomBytes } from 'node:crypto'
import { internNatively } from '../../native/words/words.js'
import { halfSipHash, type SipSecret } from '../format/half-sip-hash.js'
import { grownLength } from './grown-length.js'
import { type Field, lengthBytes, wordField } from './word-key.js'
import { textsMax } from './word-sort.js'

/** Bytes of memory for each word beside its key: where it begins, its hash, and two to four slots. */
const wordBytes = 24

const sipHash = halfSipHash({ block: 1, end: 3 })

/** Words of rows in memory: each stands once, and has a number in the order of its arrival. */
export class WordBatch {
  count = 0
  /** Keys, one behind the other: word `at` from `starts[at]` to `starts[at + 1]`. */
  keys: Buffer = Buffer.allocUnsafeSlow(1 << 20)
  starts: Uint32Array = new Uint32Array(1 << 14)
  #hashes = new Int32Array(1 << 14)
  /** Open addressing: number of a word + 1. */
  #slots = new Int32Array(1 << 15)
  #words = new Int32Array(1024)
  readonly #outcome = new Int32Array(2)
  readonly #secret: SipSecret
  readonly #secretWords: Int32Array

  /** `bytesMax`: that a full batch takes, about. */
  constructor(private readonly bytesMax: number) {
    const secret = randomBytes(8)
    this.#secret = { low: secret.readInt32LE(0), high: secret.readInt32LE(4) }
    this.#secretWords = Int32Array.of(this.#secret.low, this.#secret.high)
  }

  /** Bytes of memory that its words hold. */
  get bytes(): number {
    return (this.starts[this.count] as number) + wordBytes * this.count
  }

  /** Forgets all words. The memory stays, for as many again. */
  clear(): void {
    this.count = 0
    this.#slots.fill(0)
  }

  /** The number of an owner, recipient or bundle. */
  ofField(of: Field, bytes: Uint8Array): number {
    const from = this.starts[this.count] as number
    this.#room(from + 8 + bytes.length)
    this.keys[from] = of
    return this.#intern(from, put(this.keys, from + 1, bytes))
  }

  /** The number of a tag. */
  ofTag(name: Uint8Array, value: Uint8Array): number {
    const from = this.starts[this.count] as number
    this.#room(from + 16 + name.length + value.length)
    const { keys } = this
    keys[from] = wordField.tag
    let at = from + 1
    let rest = name.length
    for (let left = lengthBytes(rest); left > 1; left -= 1) {
      keys[at++] = (rest % 0x80) + 0x80
      rest = Math.floor(rest / 0x80)
    }
    keys[at++] = rest
    return this.#intern(from, put(keys, put(keys, at, name), value))
  }

  /** The same, of bytes that are part of others. */
  ofFieldIn(of: Field, bytes: Uint8Array, start: number, end: number): number {
    const from = this.starts[this.count] as number
    this.#room(from + 8 + end - start)
    this.keys[from] = of
    return this.#intern(from, putRange(this.keys, from + 1, bytes, start, end))
  }

  /** The number of a tag that stands in other bytes: name and value, each behind its length (LEB128). */
  ofTagIn(bytes: Uint8Array, start: number, end: number): number {
    const from = this.starts[this.count] as number
    this.#room(from + 16 + end - start)
    const { keys } = this
    keys[from] = wordField.tag
    let [at, size, scale] = [start, 0, 1]
    for (let byte = 0x80; byte >= 0x80; at += 1, scale *= 0x80) {
      byte = bytes[at] as number
      size += (byte & 0x7f) * scale
    }
    const nameEnd = at + size
    let value = nameEnd
    while ((bytes[value] as number) >= 0x80) value += 1
    const to = putRange(keys, from + 1, bytes, start, nameEnd)
    return this.#intern(from, putRange(keys, to, bytes, value + 1, end))
  }

  /**
   * The numbers of the words of a message: of each its field, where it begins and where it ends, as `ofTagIn` and `ofFieldIn`
   * take them. Throws a RangeError on a tag whose lengths do not fit.
   */
  internAll(message: Uint8Array, words: Uint32Array): Uint32Array {
    const numbers = new Uint32Array(words.length / 3)
    if (internNatively === undefined) return this.#internHere(message, words, numbers)
    let bytes = 0
    for (let at = 0; at < words.length; at += 3)
      bytes += 1 + (words[at + 2] as number) - (words[at + 1] as number)
    this.#room((this.starts[this.count] as number) + bytes, numbers.length)
    this.#rehash(2 * (this.count + numbers.length))
    const { keys, starts } = this
    const memory = { keys, starts, hashes: this.#hashes, slots: this.#slots, secret: this.#secretWords }
    this.count = internNatively(memory, this.count, message, words, numbers)
    return numbers
  }

  /** Without the addon. */
  #internHere(message: Uint8Array, words: Uint32Array, numbers: Uint32Array): Uint32Array {
    for (let at = 0; at < numbers.length; at += 1) {
      const [field, from, to] = [
        words[3 * at] as Field,
        words[3 * at + 1] as number,
        words[3 * at + 2] as number,
      ]
      const isTag = field === wordField.tag
      numbers[at] = isTag ? this.ofTagIn(message, from, to) : this.ofFieldIn(field, message, from, to)
    }
    return numbers
  }

  /** Room for keys up to `size` bytes, and so many more words. */
  #room(size: number, words = 1): void {
    if (size > this.keys.length) {
      const larger = Buffer.allocUnsafeSlow(grownLength(size, this.bytesMax))
      this.keys.copy(larger)
      this.keys = larger
    }
    if (this.count + words < this.starts.length) return
    const usual = Math.min(Math.ceil(this.bytesMax / wordBytes), textsMax) + 1
    const length = grownLength(this.count + words + 1, usual)
    const starts = new Uint32Array(length)
    starts.set(this.starts)
    this.starts = starts
    const hashes = new Int32Array(length)
    hashes.set(this.#hashes)
    this.#hashes = hashes
  }

  /** The number of the word whose key lies behind all others. */
  #intern(from: number, to: number): number {
    const hash = this.#hash(from, to)
    const mask = this.#slots.length - 1
    let slot = hash & mask
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const word = (this.#slots[slot] as number) - 1
      if (this.#hashes[word] === hash && this.#isSame(word, from, to)) return word
    }
    const word = this.count
    this.#slots[slot] = word + 1
    this.#hashes[word] = hash
    this.starts[word + 1] = to
    this.count += 1
    this.#rehash(2 * this.count)
    return word
  }

  #isSame(word: number, from: number, to: number): boolean {
    const start = this.starts[word] as number
    const size = to - from
    if ((this.starts[word + 1] as number) - start !== size) return false
    const { keys } = this
    for (let at = 0; at < size; at += 1) if (keys[start + at] !== keys[from + at]) return false
    return true
  }

  #hash(from: number, to: number): number {
    const count = (to - from) >>> 2
    if (count > this.#words.length) this.#words = new Int32Array(2 * count)
    const words = this.#words
    const { keys } = this
    let at = from
    for (let word = 0; word < count; word += 1, at += 4) {
      words[word] = keys[at]! | (keys[at + 1]! << 8) | (keys[at + 2]! << 16) | (keys[at + 3]! << 24)
    }
    let last = (to - from) << 24
    for (let shift = 0; at < to; at += 1, shift += 8) last |= keys[at]! << shift
    sipHash(words, count, last, this.#secret, this.#outcome)
    return this.#outcome[0] as number
  }

  /** Room for so many slots, half of which have a word. */
  #rehash(needed: number): void {
    let { length } = this.#slots
    if (needed <= length) return
    while (length < needed) length *= 2
    this.#slots = new Int32Array(length)
    const mask = this.#slots.length - 1
    for (let word = 0; word < this.count; word += 1) {
      let slot = (this.#hashes[word] as number) & mask
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
      this.#slots[slot] = word + 1
    }
  }
}

function putRange(target: Buffer, at: number, bytes: Uint8Array, from: number, to: number): number {
  if (to - from > 64) target.set(bytes.subarray(from, to), at)
  else for (let byte = from; byte < to; byte += 1) target[at + byte - from] = bytes[byte] as number
  return at + to - from
}

function put(target: Buffer, at: number, bytes: Uint8Array): number {
  if (bytes.length > 64) target.set(bytes, at)
  else for (let byte = 0; byte < bytes.length; byte += 1) target[at + byte] = bytes[byte] as number
  return at + bytes.length
}
