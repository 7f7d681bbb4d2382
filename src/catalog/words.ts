import { createHash } from 'node:crypto'
import type { IndexTables } from './index-tables.js'
import { tagOfText } from './pack.js'
import { Recent } from './recent.js'

/**
 * Every tag name, tag, address and bundle id is stored once and has a number. Numbers are given out in order and never
 * reused; a word stays when the last row that used it is unwound, because it most often comes back in the next block.
 */
export const wordKind = { name: 1, tag: 2, address: 3, bundle: 4 } as const
export type WordKind = (typeof wordKind)[keyof typeof wordKind]

/** Longer words are found by their start and a hash: keys of LMDB are short. The reverse table holds them whole. */
const plainBytesMax = 240
const hashBytes = 16
/** Bytes of a tag's value that its key certainly holds. */
const inKey = plainBytesMax - 5
const recentMax = 100_000

/** The 5 bytes of a number. */
export function numberBytes(number: number): Buffer {
  const bytes = Buffer.allocUnsafe(5)
  bytes.writeUIntBE(number, 0, 5)
  return bytes
}

/** The number in 5 bytes. */
export function numberOf(bytes: Uint8Array): number {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).readUIntBE(0, 5)
}

/** Key of a word in the table `words`. */
export function wordKey(kind: WordKind, bytes: Uint8Array): Buffer {
  const plain = bytes.length <= plainBytesMax
  const key = Buffer.allocUnsafe(1 + (plain ? bytes.length : plainBytesMax + hashBytes))
  key[0] = kind
  key.set(plain ? bytes : bytes.subarray(0, plainBytesMax), 1)
  if (!plain) {
    key.set(createHash('sha256').update(bytes).digest().subarray(0, hashBytes), 1 + plainBytesMax)
  }
  return key
}

/** The bytes of a tag as a word: the number of its name, then its value. */
export function tagWord(name: number, value: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(5 + value.length)
  bytes.writeUIntBE(name, 0, 5)
  bytes.set(value, 5)
  return bytes
}

/** Looks words up: any thread. */
export class Words {
  readonly #bytes = new Recent<number, Buffer>(recentMax)

  constructor(private readonly tables: IndexTables) {}

  /** The number of a word, if it was ever given one. */
  number(kind: WordKind, bytes: Uint8Array): number | undefined {
    const found = this.tables.words.view(wordKey(kind, bytes))
    return found === undefined ? undefined : numberOf(found)
  }

  /** The number of a tag, if any row ever had it. */
  tag(name: Uint8Array, value: Uint8Array): number | undefined {
    const number = this.number(wordKind.name, name)
    return number === undefined ? undefined : this.number(wordKind.tag, tagWord(number, value))
  }

  /** Numbers of the tags with this name whose value starts with `start`, at most `limit`, in the order of their values. */
  tagsWith(name: Uint8Array, start: Uint8Array, limit: number): number[] {
    const number = this.number(wordKind.name, name)
    if (number === undefined) return []
    const from = Buffer.concat([Buffer.of(wordKind.tag), tagWord(number, start.subarray(0, inKey))])
    const found: number[] = []
    for (const entry of this.tables.words.span({ start: from })) {
      if (found.length === limit || Buffer.compare(entry.key.subarray(0, from.length), from) !== 0) break
      const tag = numberOf(entry.value)
      if (start.length <= inKey || this.value(tag).subarray(0, start.length).equals(start)) found.push(tag)
    }
    return found
  }

  /** The bytes of the word with this number. Throws a RangeError where there is none: the index is broken. */
  bytes(number: number): Buffer {
    const recent = this.#bytes.get(number)
    if (recent !== undefined) return recent
    const found = this.tables.numbers.get(numberBytes(number))
    if (found === undefined) throw new RangeError(`the index has no word ${number}`)
    const bytes = Buffer.from(found.buffer, found.byteOffset + 1, found.byteLength - 1)
    this.#bytes.set(number, bytes)
    return bytes
  }

  /** The name of a tag. */
  name(tag: number): Buffer {
    return this.bytes(numberOf(this.bytes(tag)))
  }

  /** The value of a tag. */
  value(tag: number): Buffer {
    return this.bytes(tag).subarray(5)
  }
}

const lastKey = Buffer.from('last word')

/** Gives numbers out: only the keeper, inside its transaction. Words come as texts of one character per byte. */
export class WordGiver {
  readonly #recent = {
    [wordKind.name]: new Recent<string, number>(recentMax),
    [wordKind.tag]: new Recent<string, number>(recentMax),
    [wordKind.address]: new Recent<string, number>(recentMax),
    [wordKind.bundle]: new Recent<string, number>(recentMax),
  }
  #last: number
  #settled: number

  constructor(private readonly tables: IndexTables) {
    const last = tables.indexMeta.get(lastKey)
    this.#last = last === undefined ? 0 : numberOf(last)
    this.#settled = this.#last
  }

  /** The number of a name, address or bundle id. `fresh` is told where it is new. */
  give(kind: WordKind, text: string, fresh: (number: number) => void): number {
    const recent = this.#recent[kind].get(text)
    if (recent !== undefined) return recent
    const number = this.#look(kind, Buffer.from(text, 'latin1'), fresh)
    this.#recent[kind].set(text, number)
    return number
  }

  /** The number of a tag, as it stands in a message (pack.ts). */
  tag(text: string, fresh: (number: number) => void): number {
    const recent = this.#recent[wordKind.tag].get(text)
    if (recent !== undefined) return recent
    const tag = tagOfText(text)
    const name = this.give(wordKind.name, latin(tag.name), nobody)
    const number = this.#look(wordKind.tag, tagWord(name, tag.value), fresh)
    this.#recent[wordKind.tag].set(text, number)
    return number
  }

  /** Writes down the last number given out: before every commit. */
  settle(): void {
    if (this.#settled === this.#last) return
    this.tables.indexMeta.put(lastKey, numberBytes(this.#last))
    this.#settled = this.#last
  }

  #look(kind: WordKind, bytes: Buffer, fresh: (number: number) => void): number {
    const key = wordKey(kind, bytes)
    const found = this.tables.words.view(key)
    if (found !== undefined) return numberOf(found)
    const number = this.#add(kind, key, bytes)
    fresh(number)
    return number
  }

  #add(kind: WordKind, key: Buffer, bytes: Uint8Array): number {
    this.#last += 1
    const number = numberBytes(this.#last)
    this.tables.words.put(key, number)
    const whole = Buffer.allocUnsafe(1 + bytes.length)
    whole[0] = kind
    whole.set(bytes, 1)
    this.tables.numbers.put(number, whole)
    return this.#last
  }
}

function latin(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

function nobody(): void {
  // Names have no postings.
}
