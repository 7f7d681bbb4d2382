import { MessageRows, wordNumbers } from './message-rows.js'
import type { WordRole } from './pack.js'
import type { PostingList } from './posting-lists.js'
import type { RowTransfer } from './row.js'

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
    /** The key of the owner, where it is known. */
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

/** The rows of a message as `MessageRows` reads them, with their words. */
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
  /** Present for items alone. */
  place: PackedPlace | undefined
  /** Present for transactions alone. */
  transfer: RowTransfer | undefined
  /** Position in the block, of transactions. */
  index = 0
  readonly #words: PackedWord[] = []
  readonly #rows: MessageRows

  constructor(
    packed: Uint8Array,
    readonly areItems: boolean,
  ) {
    const rows = new MessageRows(packed, areItems)
    const { bytes, words } = rows
    const keys = new Map(rows.keys.map(({ word, key }) => [word, key]))
    for (let at = 0; at < words.length; at += wordNumbers) {
      const [role, from, to] = [words[at] as WordRole, words[at + 1] as number, words[at + 2] as number]
      this.#words.push(new PackedWord(role, bytes, from, to, keys.get(this.#words.length + 1) ?? noBytes))
    }
    this.#rows = rows
    this.owner = new PackedWord(1, bytes, 0, 0, noBytes)
  }

  /** Goes on to the next row; false at the end. Throws a RangeError on what `RowPacker` did not write. */
  next(): boolean {
    const rows = this.#rows
    if (!rows.next()) return false
    const { tagCount, tags } = rows
    this.id = rows.id
    this.size = rows.size
    this.owner = this.#word(rows.owner)
    this.recipient = rows.recipient === 0 ? undefined : this.#word(rows.recipient)
    this.anchor = rows.anchor
    this.tagCount = tagCount
    for (let at = 0; at < tagCount; at += 1) this.tags[at] = this.#word(tags[at] as number)
    this.signature = rows.signature
    this.signatureType = rows.signatureType
    this.place = rows.place && { parent: this.#word(rows.parent), ...rows.place }
    this.index = rows.index
    this.transfer = rows.transfer
    return true
  }

  #word(place: number): PackedWord {
    return this.#words[place - 1] as PackedWord
  }
}
