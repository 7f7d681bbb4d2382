import { createHash } from 'node:crypto'
import type { IndexTables } from './index-tables.js'
import { tagTexts } from './pack.js'
import { Recent } from './recent.js'

/**
 * Every tag name, tag, address and bundle id is stored once and has a number. Numbers are given out in order
 * and never reused; a word stays when the last row that used it is unwound, because it most often comes back
 * in the next block.
 */
export const wordKind = { name: 1, tag: 2, address: 3, bundle: 4 } as const
export type WordKind = (typeof wordKind)[keyof typeof wordKind]

/**
 * Longer words are found by their start and a hash: keys of LMDB are short. The reverse table holds them
 * whole.
 */
const plainBytesMax = 240
const hashBytes = 16
/** Bytes of a tag's value that its key certainly holds. */
const inKey = plainBytesMax - 5
/**
 * Words that a reader keeps at hand (about 200 bytes each, twice as many at most), and of each kind the
 * keeper.
 */
const readMax = 20_000
const givenMax = 50_000

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
  readonly #bytes = new Recent<number, Buffer>(readMax)

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

  /**
   * Numbers of the tags with this name whose value starts with `start`, at most `limit`, in the order of
   * their values.
   */
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

/**
 * Gives numbers out: only the keeper, inside its transaction. Words come as texts of one character per byte.
 */
export class WordGiver {
  readonly #recent = {
    [wordKind.name]: new Recent<string, number>(givenMax),
    [wordKind.tag]: new Recent<string, number>(givenMax),
    [wordKind.address]: new Recent<string, number>(givenMax),
    [wordKind.bundle]: new Recent<string, number>(givenMax),
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
    return this.#recent[kind].get(text) ?? this.#look(kind, text, Buffer.from(text, 'latin1'), fresh)
  }

  /** The number of a tag, as it stands in a message (pack.ts). */
  tag(text: string, fresh: (number: number) => void): number {
    const recent = this.#recent[wordKind.tag].get(text)
    if (recent !== undefined) return recent
    const [name, value] = tagTexts(text)
    const number = this.give(wordKind.name, name, nobody)
    const bytes = Buffer.allocUnsafe(5 + value.length)
    bytes.writeUIntBE(number, 0, 5)
    bytes.write(value, 5, 'latin1')
    return this.#look(wordKind.tag, text, bytes, fresh)
  }

  /** Writes down the last number given out: before every commit. */
  settle(): void {
    if (this.#settled === this.#last) return
    this.tables.indexMeta.put(lastKey, numberBytes(this.#last))
    this.#settled = this.#last
  }

  /** Only words that come a second time are remembered: most values of tags never do. */
  #look(kind: WordKind, text: string, bytes: Buffer, fresh: (number: number) => void): number {
    const key = wordKey(kind, bytes)
    const number = numberBytes(this.#last + 1)
    if (!this.tables.words.add(key, number)) {
      const found = this.tables.words.view(key)
      if (found === undefined) throw new Error('a word is there and cannot be found')
      const known = numberOf(found)
      this.#recent[kind].set(text, known)
      return known
    }
    this.#last += 1
    // The key of a short word is its kind and its bytes, which is what stands here too.
    const whole = bytes.length <= plainBytesMax ? key : Buffer.concat([Buffer.of(kind), bytes])
    this.tables.numbers.append(number, whole)
    fresh(this.#last)
    return this.#last
  }
}

function nobody(): void {
  // Names have no postings.
}
