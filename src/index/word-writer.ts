import { VarWriter } from '../format/varbytes.js'
import { RowListWriter } from './row-list.js'
import type { SectionSpool, SegmentOutput } from './segment-output.js'
import { Top } from './top.js'
import { blockWords, WordBlockWriter, type WordToWrite } from './word-block-writer.js'
import { sharedBytes } from './word-key.js'
import { blocksPerTop, writeTop } from './word-tops.js'

/** So much more of a word than makes it differ from its neighbours: it differs from most words of other segments by that, too. */
const slackBytes = 3

/** Words that have a short code in rows. */
export const shortCodesMax = 16_000

/** A word that waits for the next one. */
interface Waiting extends WordToWrite {
  /** Memory of its own. */
  own: Buffer
  text: Uint8Array
  start: number
  size: number
  /** Bytes shared with the word before. */
  shared: number
  isCoded: boolean
  count: number
  place: number
}

/** Writes the words of a segment with their rows, in the order of their keys, and a table of the blocks. */
export class WordWriter {
  wordCount = 0
  /** Words that have numbers, from 0 on. */
  codedCount = 0
  blockCount = 0
  /** Words with numbers by how many rows have them. */
  readonly top = new Top(shortCodesMax)
  readonly #list: RowListWriter
  readonly #block: WordBlockWriter
  readonly #bytes = new VarWriter()
  #waiting: Waiting | undefined
  #spare: Waiting | undefined
  #next: Waiting
  #settledCoded = 0
  #firstCoded = 0

  constructor(
    private readonly out: SegmentOutput,
    private readonly tables: { readonly blocks: SectionSpool; readonly tops: SectionSpool },
    rowBytes: number,
  ) {
    this.#list = new RowListWriter(out)
    this.#block = new WordBlockWriter(rowBytes)
    this.#next = newWaiting()
  }

  /**
   * Begins a word behind all others: the text in `bytes`, all of it or as much as tells it from its neighbours in each segment
   * that it comes from. `isCoded`: it is all of it, and has a number. `stays`: the bytes are still there when the word behind the
   * next one begins.
   */
  begin(bytes: Uint8Array, from: number, to: number, isCoded: boolean, stays = false): void {
    const size = to - from
    const word = this.#next
    if (stays) {
      word.text = bytes
      word.start = from
    } else {
      if (word.own.length < size) word.own = Buffer.allocUnsafeSlow(2 * size)
      for (let at = 0; at < size; at += 1) word.own[at] = bytes[from + at] as number
      word.text = word.own
      word.start = 0
    }
    word.size = size
    word.isCoded = isCoded
    this.#list.begin()
  }

  /** A row of the word, behind all others of it. */
  push(row: number): void {
    this.#list.push(row)
  }

  /** Ends the word: its number, or -1 where it has none. Without a row it is left out. */
  end(): number {
    const word = this.#next
    const list = this.#list
    if (list.count === 0) return -1
    word.count = list.count
    word.place = list.end()
    if (word.place < 0) for (let at = 0; at < word.count; at += 1) word.rows[at] = list.rows[at] as number
    const before = this.#waiting
    word.shared = before === undefined ? 0 : sharedTexts(before, word)
    if (before !== undefined) this.#settle(before, word.shared)
    this.#next = this.#spare ?? newWaiting()
    this.#spare = before
    this.#waiting = word
    if (!word.isCoded) return -1
    this.top.add(this.codedCount, word.count)
    this.codedCount += 1
    return this.codedCount - 1
  }

  /** Its text is cut as far as its neighbours allow; it is whole where it has a number or the next one begins with it. */
  #settle(word: Waiting, sharedWithNext: number): void {
    if (this.#block.count === blockWords) this.#endBlock()
    if (this.#block.count === 0) this.#firstCoded = this.#settledCoded
    const needed = Math.max(word.shared, sharedWithNext) + 1
    const isWhole = word.isCoded || needed > word.size
    this.#block.add(word, isWhole, isWhole ? word.size : cutAt(word, needed))
    if (word.isCoded) this.#settledCoded += 1
    this.wordCount += 1
  }

  #endBlock(): void {
    this.#bytes.reset()
    const position = this.out.position
    if (this.blockCount % blocksPerTop === 0) writeTop(this.tables.tops, this.#firstCoded, this.#block.first)
    this.#block.end(this.#bytes, position)
    for (let rest = this.#bytes.size; ; rest = Math.floor(rest / 0x80)) {
      if (rest < 0x80) {
        this.out.u8(rest)
        break
      }
      this.out.u8((rest % 0x80) + 0x80)
    }
    this.out.write(this.#bytes.written)
    this.tables.blocks.uint(position, 5)
    this.tables.blocks.uint(this.#firstCoded, 4)
    this.blockCount += 1
  }

  /** Ends the last block. */
  finish(): void {
    if (this.#waiting !== undefined) this.#settle(this.#waiting, 0)
    if (this.#block.count > 0) this.#endBlock()
  }
}

function sharedTexts(one: Waiting, other: Waiting): number {
  const { text, start, size } = other
  return sharedBytes(one.text, one.start, one.start + one.size, text, start, start + size)
}

/** The dash of a UUID is not left at the end of a text: see `withoutDashes`. */
function cutAt(word: Waiting, needed: number): number {
  const size = Math.min(word.size, needed + slackBytes)
  return size > needed && word.text[word.start + size - 1] === 0x2d ? size - 1 : size
}

function newWaiting(): Waiting {
  const own = Buffer.allocUnsafeSlow(256)
  return {
    own,
    text: own,
    start: 0,
    size: 0,
    shared: 0,
    isCoded: false,
    count: 0,
    place: -1,
    rows: new Uint32Array(8),
  }
}
