import { Recent } from '../store/recent.js'
import { RunWriter } from '../store/run-writer.js'
import {
  findWord,
  numberBytes,
  numberOf,
  plainBytesMax,
  tagStart,
  type WordKind,
  wordKind,
  wordTableKey,
} from './dictionary.js'
import { tagTexts } from './packed-rows.js'
import { ledgerOf, type RowTables, tagRuns, wordRuns } from './row-tables.js'
import { Spill, type SpillLimits } from './spill.js'
import { TermHash } from './term-hash.js'

/** Words of each kind that the keeper keeps at hand, about 200 bytes each, twice as many at most. */
const givenMax = 50_000

function recentWords(): Readonly<Record<WordKind, Recent<string, number>>> {
  return {
    [wordKind.name]: new Recent<string, number>(givenMax),
    [wordKind.tag]: new Recent<string, number>(givenMax),
    [wordKind.address]: new Recent<string, number>(givenMax),
    [wordKind.bundle]: new Recent<string, number>(givenMax),
  }
}

/**
 * Gives numbers out: only the keeper, inside its transaction. Words come as texts of one character per byte.
 */
export class DictionaryWriter {
  #recent = recentWords()
  /** Whether the last number was given out only now. */
  isNew = false
  #last: number
  #settled: number
  readonly #hash: TermHash
  readonly #found: RunWriter
  readonly #ordered: RunWriter
  readonly #spill: Spill<{ readonly number: number; readonly whole: Buffer }>
  readonly #number = Buffer.alloc(5)
  readonly #record = new Uint32Array(tagRuns.width)
  readonly #lastKey: Buffer

  constructor(
    private readonly tables: RowTables,
    limits: SpillLimits,
  ) {
    this.#lastKey = Buffer.from(`last word${tables.suffix}`)
    const last = tables.indexMeta.get(this.#lastKey)
    this.#last = last === undefined ? 0 : numberOf(last)
    this.#settled = this.#last
    this.#hash = new TermHash(tables.wordKey)
    this.#found = new RunWriter(tables.runs.words, ledgerOf(tables, wordRuns), limits)
    this.#ordered = new RunWriter(tables.runs.tags, ledgerOf(tables, tagRuns), limits)
    this.#spill = new Spill(tables.words, limits, this.runs, {
      put: (table, { number, whole }) => table.put(wordTableKey(whole), numberBytes(number)),
      move: (key, value) => this.#move(key, numberOf(value)),
    })
  }

  /** New words that are collected. */
  get pending(): number {
    return this.#found.pending
  }

  get runs(): readonly RunWriter[] {
    return [this.#found, this.#ordered]
  }

  /** The number of a name, address or bundle id. */
  give(kind: WordKind, text: string): number {
    this.isNew = false
    const recent = this.#recent[kind].get(text)
    if (recent !== undefined) return recent
    const whole = Buffer.allocUnsafe(1 + text.length)
    whole[0] = kind
    whole.write(text, 1, 'latin1')
    return this.#look(kind, text, whole)
  }

  /** The number of a tag, as it stands in a message (pack.ts). */
  tag(text: string): number {
    this.isNew = false
    const recent = this.#recent[wordKind.tag].get(text)
    if (recent !== undefined) return recent
    const [name, value] = tagTexts(text)
    const number = this.give(wordKind.name, name)
    this.isNew = false
    const whole = Buffer.allocUnsafe(6 + value.length)
    whole[0] = wordKind.tag
    whole.writeUIntBE(number, 1, 5)
    whole.write(value, 6, 'latin1')
    return this.#look(wordKind.tag, text, whole)
  }

  /** Writes what was collected: before every commit. */
  settle(): void {
    this.#spill.settle()
    if (this.#settled === this.#last) return
    this.tables.indexMeta.put(this.#lastKey, numberBytes(this.#last))
    this.#settled = this.#last
  }

  /** Forgets words that are at hand: they are found anew. */
  forget(): void {
    this.#recent = recentWords()
  }

  /** Drops all words. Numbers are not given out a second time. */
  clear(): void {
    this.forget()
    this.#spill.clear()
    this.tables.numbers.clear()
  }

  /** Only words that come a second time are remembered: most values of tags never do. */
  #look(kind: WordKind, text: string, whole: Buffer): number {
    const known = this.#find(whole)
    if (known !== undefined) {
      this.#recent[kind].set(text, known)
      return known
    }
    this.#last += 1
    this.#number.writeUIntBE(this.#last, 0, 5)
    this.tables.numbers.append(this.#number, whole)
    this.#keep(this.#last, whole)
    if (this.#spill.takes()) this.#spill.add({ number: this.#last, whole })
    this.isNew = true
    return this.#last
  }

  #find(whole: Buffer): number | undefined {
    const found = this.#spill.isTableEmpty ? undefined : this.tables.words.view(wordTableKey(whole))
    return found === undefined ? findWord(this.tables, this.#found, this.#hash, whole) : numberOf(found)
  }

  /** Adds a word to the runs. */
  #keep(number: number, whole: Buffer): void {
    const record = this.#record
    this.#hash.take(whole)
    record[0] = this.#hash.first
    record[1] = this.#hash.second
    record[2] = number / 2 ** 32
    record[3] = number % 2 ** 32
    this.#found.add(record)
    if (whole[0] !== wordKind.tag) return
    tagStart(whole.readUIntBE(1, 5), whole, 6, record)
    record[6] = number / 2 ** 32
    record[7] = number % 2 ** 32
    this.#ordered.add(record)
  }

  #move(key: Uint8Array, number: number): void {
    // The key of a long word is a part of it only.
    const whole = key.length > 1 + plainBytesMax ? this.tables.numbers.get(numberBytes(number)) : key
    if (whole !== undefined) this.#keep(number, Buffer.from(whole))
  }
}
