import { createHash } from 'node:crypto'
import { RunWriter } from '../store/run-writer.js'
import type { Look } from '../store/runs.js'
import { type IndexTables, ledgerOf, tagRuns, wordRuns } from './index-tables.js'
import { tagTexts } from './pack.js'
import { Recent } from './recent.js'
import { Spill, type SpillLimits } from './spill.js'
import { WordHash } from './word-hash.js'

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

/** Kind and bytes: what stands under a word's number, and what is hashed. */
function wholeWord(kind: WordKind, bytes: Uint8Array): Buffer {
  const whole = Buffer.allocUnsafe(1 + bytes.length)
  whole[0] = kind
  whole.set(bytes, 1)
  return whole
}

interface Finder {
  find(first: number, second: number, look: Look): boolean
}

/** The number of a word that the runs have; what they name may be gone, so the word itself decides. */
function findWord(tables: IndexTables, runs: Finder, hash: WordHash, whole: Buffer): number | undefined {
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
const inRecord = 20
/** Tags that a search by prefix looks at: 2 to 3 us each where they have to be read. */
const looksMax = 20_000

/** Number of a tag's name, and the start of its value: as a record has it. Fills up with zeros. */
export function tagStart(name: number, value: Uint8Array): number[] {
  const start = Buffer.alloc(inRecord)
  start.set(value.subarray(0, inRecord))
  return [name % 2 ** 32, ...[0, 4, 8, 12, 16].map((at) => start.readUInt32BE(at))]
}

/** Looks words up: any thread. */
export class Words {
  readonly #bytes = new Recent<number, Buffer>(readMax)
  readonly #hash: WordHash

  constructor(private readonly tables: IndexTables) {
    this.#hash = new WordHash(tables.wordKey)
  }

  /** The number of a word, if it was ever given one. */
  number(kind: WordKind, bytes: Uint8Array): number | undefined {
    const found = this.tables.words.view(wordKey(kind, bytes))
    if (found !== undefined) return numberOf(found)
    return findWord(this.tables, this.tables.runs.words, this.#hash, wholeWord(kind, bytes))
  }

  /** The number of a tag, if any row ever had it. */
  tag(name: Uint8Array, value: Uint8Array): number | undefined {
    const number = this.number(wordKind.name, name)
    return number === undefined ? undefined : this.number(wordKind.tag, tagWord(number, value))
  }

  /**
   * Numbers of the tags with this name whose value starts with `start`, at most `limit`. `cut` is told where there may be
   * more, because too many had to be looked at.
   */
  tagsWith(name: Uint8Array, start: Uint8Array, limit: number, cut: () => void): number[] {
    const number = this.number(wordKind.name, name)
    if (number === undefined) return []
    const from = Buffer.concat([Buffer.of(wordKind.tag), tagWord(number, start.subarray(0, inKey))])
    const found: number[] = []
    for (const entry of this.tables.words.span({ start: from })) {
      if (found.length === limit || Buffer.compare(entry.key.subarray(0, from.length), from) !== 0) break
      const tag = numberOf(entry.value)
      if (start.length <= inKey || this.#startsWith(tag, start)) found.push(tag)
    }
    this.#scanTags(tagStart(number, start), number, start, (tag) => found.push(tag) < limit, cut)
    return found.slice(0, limit)
  }

  /** Tells `hear` of tags in the runs, until it has enough. */
  #scanTags(
    from: readonly number[],
    name: number,
    start: Uint8Array,
    hear: (tag: number) => boolean,
    cut: () => void,
  ): void {
    const whole = Math.min(start.length, inRecord) >> 2
    let looks = 0
    let isEnough = false
    this.tables.runs.tags.scan(from, (words, at) => {
      for (let word = 0; word <= whole; word += 1) if (words[at + word] !== from[word]) return true
      const rest = (Math.min(start.length, inRecord) & 3) * 8
      const shift = 32 - rest
      if (rest > 0 && (words[at + whole + 1] as number) >>> shift !== (from[whole + 1] as number) >>> shift)
        return true
      if (isEnough) return true
      looks += 1
      if (looks > looksMax) {
        cut()
        return true
      }
      const tag = (words[at + 6] as number) * 2 ** 32 + (words[at + 7] as number)
      // Zeros may be the end of a short value, and of a name's number not all is there.
      const isSure = start.length <= inRecord && start.at(-1) !== 0 && name < 2 ** 32
      if (isSure || this.#startsWith(tag, start, name)) isEnough = !hear(tag)
      return false
    })
  }

  #startsWith(tag: number, start: Uint8Array, name?: number): boolean {
    const bytes = this.bytes(tag)
    return (
      (name === undefined || numberOf(bytes) === name) && bytes.subarray(5, 5 + start.length).equals(start)
    )
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
  readonly #hash: WordHash
  readonly #found: RunWriter
  readonly #ordered: RunWriter
  readonly #spill: Spill

  constructor(
    private readonly tables: IndexTables,
    limits: SpillLimits,
  ) {
    const last = tables.indexMeta.get(lastKey)
    this.#last = last === undefined ? 0 : numberOf(last)
    this.#settled = this.#last
    this.#hash = new WordHash(tables.wordKey)
    this.#found = new RunWriter(tables.runs.words, ledgerOf(tables, wordRuns), limits)
    this.#ordered = new RunWriter(tables.runs.tags, ledgerOf(tables, tagRuns), limits)
    this.#spill = new Spill(tables.words, limits, this.runs, (key, value) => this.#move(key, numberOf(value)))
  }

  get runs(): readonly RunWriter[] {
    return [this.#found, this.#ordered]
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

  /** Writes what was collected: before every commit. */
  settle(): void {
    this.#spill.settle()
    if (this.#settled === this.#last) return
    this.tables.indexMeta.put(lastKey, numberBytes(this.#last))
    this.#settled = this.#last
  }

  /** Only words that come a second time are remembered: most values of tags never do. */
  #look(kind: WordKind, text: string, bytes: Buffer, fresh: (number: number) => void): number {
    const whole = wholeWord(kind, bytes)
    const known = this.#find(kind, whole)
    if (known !== undefined) {
      this.#recent[kind].set(text, known)
      return known
    }
    this.#last += 1
    const number = numberBytes(this.#last)
    this.tables.numbers.append(number, whole)
    this.#keep(this.#last, whole)
    this.#spill.add(whole.length <= 1 + plainBytesMax ? whole : wordKey(kind, bytes), number)
    fresh(this.#last)
    return this.#last
  }

  #find(kind: WordKind, whole: Buffer): number | undefined {
    const found = this.#spill.isTableEmpty
      ? undefined
      : this.tables.words.view(wordKey(kind, whole.subarray(1)))
    return found === undefined ? findWord(this.tables, this.#found, this.#hash, whole) : numberOf(found)
  }

  /** Adds a word to the runs. */
  #keep(number: number, whole: Buffer): void {
    const [high, low] = [Math.floor(number / 2 ** 32), number % 2 ** 32]
    this.#hash.take(whole)
    this.#found.add([this.#hash.first, this.#hash.second, high, low])
    if (whole[0] !== wordKind.tag) return
    this.#ordered.add([...tagStart(whole.readUIntBE(1, 5), whole.subarray(6)), high, low])
  }

  #move(key: Uint8Array, number: number): void {
    // The key of a long word is a part of it only.
    const whole = key.length > 1 + plainBytesMax ? this.tables.numbers.get(numberBytes(number)) : key
    if (whole !== undefined) this.#keep(number, Buffer.from(whole))
  }
}

function nobody(): void {
  // Names have no postings.
}
