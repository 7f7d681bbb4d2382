import { type CheckedFile, DamagedSegment, pageBytes } from './checked-file.js'
import type { Footer } from './footer.js'
import type { RowList } from './row-list.js'
import { WordBlock } from './word-block.js'
import { blockWords } from './word-block-writer.js'
import { compareBytes } from './word-key.js'
import { blocksPerTop, WordTops } from './word-tops.js'

/** Bytes of a block in the table: where it begins u40, words with numbers in front of it u32. */
export const tableEntryBytes = 9

/** Few blocks have more, and those are read a little later. */
const blockBytes = 1024
/** Long lists may lie between blocks: then only the first word of each is wanted. */
const wantedMax = 2 ** 17
const headBytes = 64

/** Where a word stands. */
export interface WordPlace {
  readonly block: number
  readonly word: number
}

/** The words of a segment, in the order of their keys. */
export class WordTable {
  readonly #heads: WordBlock
  readonly #block: WordBlock
  readonly #tops: WordTops
  #loaded = -1
  /** Damaged pages of the table hide only the words of their own blocks: for who saves what can be read. */
  skipsDamage = false
  /** Which pages of the table are sound, of those that `skipsDamage` had to know. */
  readonly #pages = new Map<number, boolean>()

  constructor(
    private readonly file: CheckedFile,
    private readonly footer: Footer,
    private readonly rowBytes: number,
  ) {
    this.#tops = new WordTops(file, footer)
    this.#heads = new WordBlock(rowBytes)
    this.#block = new WordBlock(rowBytes)
  }

  /** A block of its own, for who reads on and on. */
  newBlock(): WordBlock {
    return new WordBlock(this.rowBytes)
  }

  load(block: number, into: WordBlock, words: number = blockWords): void {
    const { footer } = this
    if (block < 0 || block >= footer.wordBlockCount) {
      throw new DamagedSegment(this.file.path, Math.floor(footer.wordBlocks / pageBytes), 'has no such block')
    }
    into.load(this.file, this.#positionOf(block), footer.wordBlocks, words)
  }

  #positionOf(block: number): number {
    const entry = this.footer.wordBlocks + block * tableEntryBytes
    const at = this.file.at(entry, entry + tableEntryBytes)
    return this.file.bytes.readUIntLE(at, 5)
  }

  #codedBefore(block: number): number {
    const entry = this.footer.wordBlocks + block * tableEntryBytes
    const at = this.file.at(entry, entry + tableEntryBytes)
    return this.file.bytes.readUInt32LE(at + 5)
  }

  /** The block at hand. */
  #at(block: number): WordBlock {
    if (this.#loaded !== block) {
      this.#loaded = -1
      this.load(block, this.#block)
      this.#loaded = block
    }
    return this.#block
  }

  /** The last word that does not come behind `key`; undefined where all do. It is valid until the next call. */
  floor(key: Uint8Array): (WordPlace & { readonly words: WordBlock }) | undefined {
    let [low, high] = this.#tops.around(key)
    this.#want(low, high)
    while (low < high) {
      const middle = (low + high) >>> 1
      this.load(middle, this.#heads, 1)
      const { texts, starts } = this.#heads
      if (compareBytes(texts, 0, starts[1] as number, key, 0, key.length) <= 0) low = middle + 1
      else high = middle
    }
    if (low === 0) return undefined
    const words = this.#at(low - 1)
    let word = words.count - 1
    while (word > 0) {
      const [from, to] = [words.starts[word] as number, words.starts[word + 1] as number]
      if (compareBytes(words.texts, from, to, key, 0, key.length) <= 0) break
      word -= 1
    }
    return { block: low - 1, word, words }
  }

  /** Begins to read at once what a search between these blocks (inclusive) reads, where they are few. */
  #want(low: number, high: number): void {
    const { wordBlockCount, wordBlocks } = this.footer
    if (low >= wordBlockCount || high - low > 2 * blocksPerTop) return
    const entries = Math.min(high + 2, wordBlockCount)
    this.file.want(wordBlocks + low * tableEntryBytes, wordBlocks + entries * tableEntryBytes)
    const start = this.#positionOf(low)
    const end = high + 1 < wordBlockCount ? this.#positionOf(high + 1) : wordBlocks
    if (end - start <= wantedMax) this.file.want(start, end)
    else if (!this.file.isKnown(this.#positionOf((low + Math.min(high, wordBlockCount - 1)) >>> 1))) {
      const blocks = Math.min(high + 1, wordBlockCount) - low
      const heads = Float64Array.from({ length: blocks }, (_, at) => this.#positionOf(low + at))
      this.file.ahead(heads, headBytes)
    }
  }

  /**
   * The rows of the word with this key; undefined where there is none. `mayBe`: only the row can tell whether it has this word,
   * because it has one that begins with the same bytes.
   */
  find(key: Uint8Array): { readonly list: RowList; readonly mayBe: boolean } | undefined {
    const found = this.floor(key)
    if (found === undefined) return undefined
    const { words, word } = found
    const [from, to] = [words.starts[word] as number, words.starts[word + 1] as number]
    const isWhole = words.isWhole(word)
    if (isWhole ? to - from !== key.length : to - from > key.length) return undefined
    for (let at = from; at < to; at += 1) if (words.texts[at] !== key[at - from]) return undefined
    return { list: words.list(word), mayBe: !isWhole }
  }

  /** Begins to read the words with these numbers at once. */
  ahead(numbers: readonly number[]): void {
    const { file, footer } = this
    const entryOf = (number: number): number => {
      const [low] = this.#tops.aroundNumber(number)
      return footer.wordBlocks + low * tableEntryBytes
    }
    // Without tops all of the table is searched.
    if (footer.tops < footer.end)
      file.ahead(Float64Array.from(numbers, entryOf), blocksPerTop * tableEntryBytes)
    file.ahead(
      Float64Array.from(numbers, (number) => this.#positionOf(this.#blockOf(number))),
      blockBytes,
    )
  }

  /** The block of the word with this number. */
  #blockOf(number: number): number {
    let [low, high] = this.skipsDamage ? [0, this.footer.wordBlockCount - 1] : this.#tops.aroundNumber(number)
    while (low < high) {
      const middle = this.#between(low, high)
      if (middle === low) break
      if (this.#codedBefore(middle) <= number) low = middle
      else high = middle - 1
    }
    return low
  }

  /** The key of the word with this number: bytes of its own. */
  key(number: number): Buffer {
    const low = this.#blockOf(number)
    const wanted = number - this.#codedBefore(low) + 1
    const words = this.#heads
    words.load(this.file, this.#positionOf(low), this.footer.wordBlocks, blockWords, wanted)
    if (words.coded === wanted) {
      const [from, to] = [words.starts[words.count - 1], words.starts[words.count]]
      return Buffer.from(words.texts.subarray(from, to))
    }
    throw new DamagedSegment(
      this.file.path,
      Math.floor(this.footer.words / pageBytes),
      `has no word ${number}`,
    )
  }

  /** A block behind `low`, up to `high`, whose entry of the table can be read, about in the middle; `low` where there is none. */
  #between(low: number, high: number): number {
    const middle = (low + high + 1) >>> 1
    if (!this.skipsDamage) return middle
    const entriesOfPage = Math.ceil(pageBytes / tableEntryBytes)
    for (let distance = 0; distance <= high - low; distance += entriesOfPage) {
      for (const block of [middle + distance, middle - distance]) {
        if (block > low && block <= high && this.#isReadable(block)) return block
      }
    }
    // The ends of what is left are in other pages than the middle, perhaps.
    return [high, low + 1].find((block) => this.#isReadable(block)) ?? low
  }

  #isReadable(block: number): boolean {
    const start = this.footer.wordBlocks + block * tableEntryBytes
    return [start, start + tableEntryBytes - 1].every((place) => {
      const page = Math.floor(place / pageBytes)
      const isSound = this.#pages.get(page) ?? this.file.isSound(page)
      this.#pages.set(page, isSound)
      return isSound
    })
  }

  /** Words from `place` on, in order, until `look` says that it has seen enough. It may not look words up meanwhile. */
  scan(place: WordPlace, look: (words: WordBlock, word: number) => boolean): void {
    const words = this.newBlock()
    let first = place.word
    for (let block = place.block; block < this.footer.wordBlockCount; block += 1) {
      this.load(block, words)
      for (let word = first; word < words.count; word += 1) if (!look(words, word)) return
      first = 0
    }
  }
}
