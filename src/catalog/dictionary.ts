import { createHash } from 'node:crypto'
import { Recent } from '../store/recent.js'
import type { Look } from '../store/runs.js'
import type { Row, RowTag, StoredRow } from './row.js'
import type { RowTables } from './row-tables.js'
import { TermHash } from './term-hash.js'

/**
 * Every tag name, tag, address and bundle id is stored once and has a number. Numbers are assigned in order and never reused. A
 * word stays when its last row is unwound, because it usually returns in the next block. It goes when all rows of its set of
 * tables have left: each set has numbers of its own (table-sets.ts).
 */
export const wordKind = { name: 1, tag: 2, address: 3, bundle: 4 } as const
export type WordKind = (typeof wordKind)[keyof typeof wordKind]

/**
 * Longer words are found by their start and a hash: keys of LMDB are short. The reverse table holds them
 * whole.
 */
export const plainBytesMax = 240
const hashBytes = 16
/** Bytes of a tag's value that its key certainly holds. */
export const inKey = plainBytesMax - 5
/** Words that a reader keeps at hand, by number and by what they say (twice as many at most); longer ones are read each time. */
const readMax = 20_000
const foundMax = 10_000
const shortMax = 256
const none = Buffer.alloc(0)
const noTags: readonly RowTag[] = []

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

/** Kind and bytes: what stands under a word's number, and what is hashed. */
function wholeWord(kind: WordKind, bytes: Uint8Array): Buffer {
  const whole = Buffer.allocUnsafe(1 + bytes.length)
  whole[0] = kind
  whole.set(bytes, 1)
  return whole
}

/** The key of a word in the table `words`. */
export function wordTableKey(whole: Buffer): Buffer {
  return whole.length <= 1 + plainBytesMax ? whole : wordKey(whole[0] as WordKind, whole.subarray(1))
}

interface Finder {
  find(first: number, second: number, look: Look): boolean
}

/** The number of a word that the runs have; what they name may be gone, so the word itself decides. */
export function findWord(tables: RowTables, runs: Finder, hash: TermHash, whole: Buffer): number | undefined {
  let found: number | undefined
  hash.take(whole)
  runs.find(hash.first, hash.second, (words, at) => {
    const number = (words[at + 2] as number) * 2 ** 32 + (words[at + 3] as number)
    const bytes = tables.numbers.view(numberBytes(number))
    if (bytes === undefined || !whole.equals(bytes)) return false
    found = number
    return true
  })
  return found
}

/** Bytes of a tag's value that a record of `tagRuns` holds. */
export const inRecord = 20

/** Number of a tag's name, and the start of its value (in `bytes` from `at` on): as a record has it. Fills up with zeros. */
export function tagStart(
  name: number,
  bytes: Uint8Array,
  at = 0,
  record = new Uint32Array(1 + inRecord / 4),
): Uint32Array {
  record[0] = name % 2 ** 32
  for (let word = 0, from = at; word < inRecord / 4; word += 1, from += 4) {
    // What is undefined, behind the end, counts as 0 here.
    record[1 + word] =
      ((bytes[from] as number) << 24) |
      ((bytes[from + 1] as number) << 16) |
      ((bytes[from + 2] as number) << 8) |
      (bytes[from + 3] as number)
  }
  return record
}

/** Looks words up: any thread. */
export class Dictionary {
  readonly #bytes = new Recent<number, Buffer>(readMax)
  readonly #tags = new Recent<number, RowTag>(readMax)
  /** Kind and bytes of words that were looked up: a word keeps its number until `forget`. */
  #found = new Recent<string, number>(foundMax)
  readonly #hash: TermHash

  constructor(private readonly tables: RowTables) {
    this.#hash = new TermHash(tables.wordKey)
  }

  /** The number of a word, if it was ever given one. */
  number(kind: WordKind, bytes: Uint8Array): number | undefined {
    if (bytes.length > shortMax) return this.#find(kind, bytes)
    const word = kind + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
    const known = this.#found.get(word)
    if (known !== undefined) return known
    const found = this.#find(kind, bytes)
    if (found !== undefined) this.#found.set(word, found)
    return found
  }

  #find(kind: WordKind, bytes: Uint8Array): number | undefined {
    const found = this.tables.words.view(wordKey(kind, bytes))
    if (found !== undefined) return numberOf(found)
    return findWord(this.tables, this.tables.runs.words, this.#hash, wholeWord(kind, bytes))
  }

  /** The number of a tag, if any row ever had it. */
  tag(name: Uint8Array, value: Uint8Array): number | undefined {
    const number = this.number(wordKind.name, name)
    return number === undefined ? undefined : this.number(wordKind.tag, tagWord(number, value))
  }

  /** The bytes of the word with this number. Throws a RangeError where there is none: the index is broken. */
  bytes(number: number): Buffer {
    const recent = this.#bytes.get(number)
    if (recent !== undefined) return recent
    const found = this.tables.numbers.get(numberBytes(number))
    if (found === undefined) throw new RangeError(`the index has no word ${number}`)
    const bytes = Buffer.from(found.buffer, found.byteOffset + 1, found.byteLength - 1)
    if (bytes.length <= shortMax) this.#bytes.set(number, bytes)
    return bytes
  }

  /** All words may have been dropped since: they have other numbers now. No number is given out twice. */
  forget(): void {
    this.#found = new Recent<string, number>(foundMax)
  }

  /** A row with its words; without `takesTags` it has no tags. */
  whole(row: StoredRow, takesTags = true): Row {
    const { place } = row
    return {
      ...row,
      owner: this.bytes(row.owner),
      recipient: row.recipient === 0 ? none : this.bytes(row.recipient),
      tags: takesTags ? row.tags.map((tag) => this.#tag(tag)) : noTags,
      place: place === undefined ? undefined : { ...place, parent: this.bytes(place.parent) },
    }
  }

  #tag(number: number): RowTag {
    const known = this.#tags.get(number)
    if (known !== undefined) return known
    // One look-up for both: values may be long, and those are not kept at hand.
    const word = this.bytes(number)
    const tag = { name: this.bytes(numberOf(word)), value: word.subarray(5) }
    if (tag.value.length <= shortMax) this.#tags.set(number, tag)
    return tag
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
