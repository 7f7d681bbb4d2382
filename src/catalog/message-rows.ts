import { VarReader } from '../format/varbytes.js'
import { type RowTransfer, readTransfer } from './row.js'

/** Numbers of a word in `MessageRows.words`: its role (pack.ts), where it begins and where it ends. */
export const wordNumbers = 3

/** Where an item lies, without its bundle. */
export interface MessagePlace {
  readonly rootItemOffset: number
  readonly parentItemOffset: number
  readonly headerSize: number
}

/** The public key behind an owner of a message. */
export interface MessageKey {
  /** The number of the owner among the words, from 1 on. */
  readonly word: number
  readonly key: Buffer
}

const noBytes: Buffer = Buffer.alloc(0)

/**
 * The rows of a message (pack.ts), one after the other: stands in front of the first. Words are their places in the message, from
 * 1 on; byte fields are views of it. Throws a RangeError on what `RowPacker` did not write.
 */
export class MessageRows {
  id: Buffer = noBytes
  size = 0
  owner = 0
  /** 0: none. */
  recipient = 0
  anchor: Buffer = noBytes
  /** The first `tagCount` are those of the row. */
  tags: Uint32Array = new Uint32Array(128)
  tagCount = 0
  signature: Buffer | undefined
  signatureType: number | undefined
  /** The bundle of an item. */
  parent = 0
  /** Present for items alone. */
  place: MessagePlace | undefined
  /** Present for transactions alone. */
  transfer: RowTransfer | undefined
  /** Position in the block, of transactions. */
  index = 0
  readonly bytes: Buffer
  wordCount = 0
  readonly keys: MessageKey[] = []
  #words: Uint32Array = new Uint32Array(1024 * wordNumbers)
  readonly #read: VarReader

  constructor(
    packed: Uint8Array,
    readonly areItems: boolean,
  ) {
    this.bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength)
    const end = this.bytes.length === 0 ? 0 : 4 + this.bytes.readUInt32LE(0)
    this.#readWords(end)
    this.#read = new VarReader(this.bytes, end)
  }

  /** All words of the message: see `wordNumbers`. Of a tag name and value, each behind its length. */
  get words(): Uint32Array {
    return this.#words.subarray(0, this.wordCount * wordNumbers)
  }

  #readWords(end: number): void {
    const read = new VarReader(this.bytes, 4)
    while (read.at < end) {
      const role = read.u8()
      const start = read.at
      const first = read.skip()
      if (role === 1) read.skip()
      this.#word(role, role === 1 ? start : first, read.at)
      const key = role === 2 ? read.block() : noBytes
      if (key.length > 0) this.keys.push({ word: this.wordCount, key })
    }
  }

  #word(role: number, from: number, to: number): void {
    const at = this.wordCount * wordNumbers
    if (at === this.#words.length) {
      const larger = new Uint32Array(2 * at)
      larger.set(this.#words)
      this.#words = larger
    }
    this.#words[at] = role
    this.#words[at + 1] = from
    this.#words[at + 2] = to
    this.wordCount += 1
  }

  /** Goes on to the next row; false at the end. */
  next(): boolean {
    const read = this.#read
    if (!read.more) return false
    this.id = read.raw(32)
    this.size = read.uint()
    this.owner = this.#known(read.uint())
    const recipient = read.uint()
    this.recipient = recipient === 0 ? 0 : this.#known(recipient)
    this.anchor = read.block()
    this.#readTags(read)
    const signature = read.block()
    this.signature = signature.length === 0 ? undefined : signature
    const type = read.uint()
    this.signatureType = type === 0 ? undefined : type - 1
    if (this.areItems) {
      this.parent = this.#known(read.uint())
      this.place = {
        rootItemOffset: read.uint(),
        parentItemOffset: read.uint(),
        headerSize: read.uint(),
      }
    } else {
      this.index = read.uint()
      this.transfer = readTransfer(read)
    }
    return true
  }

  #readTags(read: VarReader): void {
    this.tagCount = read.uint()
    // Each takes a byte at least: no more room is made than the message has bytes.
    read.checked(this.tagCount)
    if (this.tagCount > this.tags.length) this.tags = new Uint32Array(2 * this.tagCount)
    for (let at = 0; at < this.tagCount; at += 1) this.tags[at] = this.#known(read.uint())
  }

  #known(word: number): number {
    if (word < 1 || word > this.wordCount) throw new RangeError(`a message has no word ${word}`)
    return word
  }
}
