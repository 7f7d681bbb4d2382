import { VarReader } from '../format/varbytes.js'
import type { WordRole } from './pack.js'
import type { PostingList } from './posting-lists.js'
import type { RowTransfer } from './row.js'
import { readTransfer } from './row.js'

/** A word of a message. */
export class PackedWord {
  /** Its number in the index, and the list of rows that have it in this role: not before they are needed. */
  number = 0
  list: PostingList | undefined

  constructor(
    readonly role: WordRole,
    /** The message, and where the word stands in it. */
    readonly bytes: Buffer,
    readonly from: number,
    readonly to: number,
    /** Of owners, where it is known. */
    readonly key: Buffer,
  ) {}

  /** One character per byte. Of tags name and value, each behind its length: `tagTexts` takes them apart. */
  get text(): string {
    return this.bytes.toString('latin1', this.from, this.to)
  }
}

/** Where an item lies. */
export interface PackedPlace {
  readonly parent: PackedWord
  readonly rootItemOffset: number
  readonly parentItemOffset: number
  readonly headerSize: number
}

/** Name and value of a tag, one character per byte. */
export function tagTexts(text: string): [name: string, value: string] {
  const read = (at: number): { start: number; end: number } => {
    let size = 0
    let scale = 1
    for (let byte = 0x80, next = at; ; next += 1) {
      byte = text.charCodeAt(next)
      size += (byte & 0x7f) * scale
      scale *= 0x80
      if (byte < 0x80) return { start: next + 1, end: next + 1 + size }
    }
  }
  const name = read(0)
  const value = read(name.end)
  return [text.slice(name.start, name.end), text.slice(value.start, value.end)]
}

const noBytes: Buffer = Buffer.alloc(0)

/**
 * The rows of a message (pack.ts), one after the other: stands in front of the first. Byte fields are views of
 * the message. Throws a RangeError on what `RowPacker` did not write.
 */
export class PackedRows {
  id: Buffer = noBytes
  size = 0
  owner: PackedWord
  recipient: PackedWord | undefined
  anchor: Buffer = noBytes
  /** The first `tagCount` are those of the row. */
  readonly tags: PackedWord[] = []
  tagCount = 0
  signature: Buffer | undefined
  signatureType: number | undefined
  /** Of items. */
  place: PackedPlace | undefined
  /** Of transactions. */
  transfer: RowTransfer | undefined
  /** Position in the block, of transactions. */
  index = 0
  readonly #words: PackedWord[] = []
  readonly #read: VarReader

  constructor(
    packed: Uint8Array,
    readonly areItems: boolean,
  ) {
    const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength)
    const end = bytes.length === 0 ? 0 : 4 + bytes.readUInt32LE(0)
    this.#readWords(bytes, end)
    this.#read = new VarReader(bytes, end)
    this.owner = new PackedWord(1, bytes, 0, 0, noBytes)
  }

  /** Different words of the message. */
  get wordCount(): number {
    return this.#words.length
  }

  #readWords(bytes: Buffer, end: number): void {
    const read = new VarReader(bytes, 4)
    while (read.at < end) {
      const role = read.u8() as WordRole
      const start = read.at
      // A tag keeps the lengths: they tell its name from its value.
      const first = read.skip()
      if (role === 1) read.skip()
      const key = role === 2 ? { to: read.at, bytes: read.block() } : { to: read.at, bytes: noBytes }
      this.#words.push(new PackedWord(role, bytes, role === 1 ? start : first, key.to, key.bytes))
    }
  }

  /** Goes on to the next row; false at the end. */
  next(): boolean {
    const read = this.#read
    if (!read.more) return false
    this.id = read.raw(32)
    this.size = read.uint()
    this.owner = this.#word(read.uint())
    const recipient = read.uint()
    this.recipient = recipient === 0 ? undefined : this.#word(recipient)
    this.anchor = read.block()
    this.tagCount = read.uint()
    for (let at = 0; at < this.tagCount; at += 1) this.tags[at] = this.#word(read.uint())
    const signature = read.block()
    this.signature = signature.length === 0 ? undefined : signature
    const type = read.uint()
    this.signatureType = type === 0 ? undefined : type - 1
    if (this.areItems) this.place = this.#place(read)
    else {
      this.index = read.uint()
      this.transfer = readTransfer(read)
    }
    return true
  }

  #place(read: VarReader): PackedPlace {
    return {
      parent: this.#word(read.uint()),
      rootItemOffset: read.uint(),
      parentItemOffset: read.uint(),
      headerSize: read.uint(),
    }
  }

  #word(place: number): PackedWord {
    const word = this.#words[place - 1]
    if (word === undefined) throw new RangeError(`a message has no word ${place}`)
    return word
  }
}
