import { LateCodes, lateCodesMax } from './late-codes.js'
import { leftOut, type MergeOrder, type MergeSource, type RowNumbers, stepsPerPause } from './merge-order.js'
import { besideMax, type RowListReader } from './row-list.js'
import type { Segment } from './segment.js'
import type { SegmentDraft } from './segment-draft.js'
import type { WordBlock } from './word-block.js'
import { sharedBytes } from './word-key.js'

/** The words of one segment, one after the other. */
class WordHead {
  isOver = false
  bytes: Buffer = Buffer.alloc(0)
  from = 0
  to = 0
  /** All of the word is here. */
  isFull = false
  /** The one row that has the word, and its place there: where all of the word was read from it. Else -1. */
  row = -1
  placeInRow = -1
  #block = -1
  #word = 0
  #coded = -1
  readonly rows: NumberedRows
  readonly #words: WordBlock
  readonly #reader: RowListReader

  constructor(
    readonly at: number,
    private readonly segment: Segment,
    numbers: RowNumbers,
  ) {
    this.rows = new NumberedRows(numbers)
    this.#words = segment.words.newBlock()
    this.#reader = segment.reader({ place: -1, count: 0, rows: [] })
    this.next()
  }

  next(): void {
    const words = this.#words
    this.#word += 1
    if (this.#block < 0 || this.#word >= words.count) {
      this.#block += 1
      this.#word = 0
      this.isOver = this.#block >= this.segment.footer.wordBlockCount
      if (this.isOver) return
      this.segment.words.load(this.#block, words)
    }
    this.bytes = words.texts
    this.from = words.starts[this.#word] as number
    this.to = words.starts[this.#word + 1] as number
    this.isFull = words.isWhole(this.#word)
    this.placeInRow = -1
    if (this.isCoded) this.#coded += 1
  }

  get isCoded(): boolean {
    return this.#words.isCoded(this.#word)
  }

  /** The number of the word in its segment, where it is coded. */
  get number(): number {
    return this.#coded
  }

  get rowCount(): number {
    return this.#words.rowCounts[this.#word] as number
  }

  /** Begins the rows of the word, by their new numbers; false where none is left. */
  beginRows(): boolean {
    const words = this.#words
    const word = this.#word
    const place = words.places[word] as number
    if (place < 0) return this.rows.begin(words.rows, word * besideMax, this.rowCount, undefined)
    const reader = this.#reader
    reader.reset({ place, count: this.rowCount, rows: [] })
    return this.rows.begin(reader.rows, 0, 0, reader)
  }

  /** Reads all of the word from its first row. */
  fill(): void {
    const words = this.#words
    let row = words.rows[this.#word * besideMax] as number
    if ((words.places[this.#word] as number) >= 0) {
      this.#reader.reset(words.list(this.#word))
      this.#reader.load(0)
      row = this.#reader.rows[0] as number
    }
    const key = this.segment.rows.keyStarting(row, this.bytes.subarray(this.from, this.to))
    if (key === undefined) throw new Error(`${this.segment.file.path} has a word that its row does not have`)
    if (this.rowCount === 1) {
      this.row = row
      this.placeInRow = this.segment.rows.foundAt
    }
    this.bytes = key
    this.from = 0
    this.to = key.length
    this.isFull = true
  }
}

/** The rows of a word of one segment, by their new numbers. */
class NumberedRows {
  /** Where it stands; infinite at its end. */
  number = Number.POSITIVE_INFINITY
  #rows: Uint32Array = new Uint32Array(0)
  #at = 0
  #end = 0
  #reader: RowListReader | undefined

  constructor(private readonly numbers: RowNumbers) {}

  /** `reader`: the rows of its blocks follow. */
  begin(rows: Uint32Array, from: number, count: number, reader: RowListReader | undefined): boolean {
    this.#rows = rows
    this.#at = from
    this.#end = from + count
    this.#reader = reader
    return this.next()
  }

  next(): boolean {
    for (;;) {
      while (this.#at < this.#end) {
        const number = this.numbers.of(this.#rows[this.#at] as number)
        this.#at += 1
        if (number === leftOut) continue
        this.number = number
        return true
      }
      const reader = this.#reader
      if (reader === undefined || reader.block + 1 === reader.blockCount) {
        this.number = Number.POSITIVE_INFINITY
        return false
      }
      reader.load(reader.block + 1)
      this.#at = 0
      this.#end = reader.filled
    }
  }
}

/** Below zero where `one` comes before `other`. Reads words whole where their beginnings do not tell. */
function compareHeads(one: WordHead, other: WordHead): number {
  for (;;) {
    const [size, otherSize] = [one.to - one.from, other.to - other.from]
    const shared = sharedBytes(one.bytes, one.from, one.to, other.bytes, other.from, other.to)
    if (shared < size && shared < otherSize) {
      return (one.bytes[one.from + shared] as number) - (other.bytes[other.from + shared] as number)
    }
    if (shared === size && !one.isFull) one.fill()
    else if (shared === otherSize && !other.isFull) other.fill()
    else return size - otherSize
  }
}

/** Merges the words of some segments into a new one. */
export class MergeWords {
  /** Indexed by segment: the numbers in the new one of its words that have one. */
  readonly numbers: readonly Uint32Array[]
  /** Indexed by segment: words of its rows that have a number from now on. */
  readonly late: readonly LateCodes[]
  #lateCount = 0
  readonly #heads: WordHead[] = []

  constructor(
    private readonly sources: readonly MergeSource[],
    private readonly order: MergeOrder,
    private readonly draft: SegmentDraft,
  ) {
    this.numbers = sources.map(({ segment }) => new Uint32Array(segment.footer.codedCount))
    this.late = sources.map(() => new LateCodes())
  }

  *run(): Generator<void> {
    for (const [at, { segment }] of this.sources.entries()) {
      this.#put(new WordHead(at, segment, this.order.numbers[at] as RowNumbers))
    }
    const heads = this.#heads
    const same: WordHead[] = []
    for (let steps = 1; heads.length > 0; steps += 1) {
      if (steps % stepsPerPause === 0) yield
      same.length = 0
      const first = heads.pop() as WordHead
      same.push(first)
      while (heads.length > 0 && compareHeads(first, heads[heads.length - 1] as WordHead) === 0) {
        same.push(heads.pop() as WordHead)
      }
      this.#write(first, same)
      for (const head of same) {
        head.next()
        this.#put(head)
      }
    }
  }

  /** Puts a head where it belongs among the others, the least last; of the same word, that of the first segment last. */
  #put(head: WordHead): void {
    if (head.isOver) return
    const heads = this.#heads
    let [low, high] = [0, heads.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareHeads(heads[middle] as WordHead, head) >= 0) low = middle + 1
      else high = middle
    }
    heads.push(head)
    for (let at = heads.length - 1; at > low; at -= 1) heads[at] = heads[at - 1] as WordHead
    heads[low] = head
  }

  #write(first: WordHead, same: readonly WordHead[]): void {
    const { words } = this.draft
    const isCoded = (same.length > 1 && this.#lateCount < lateCodesMax) || same.some((head) => head.isCoded)
    words.begin(first.bytes, first.from, first.to, isCoded)
    this.#push(same)
    const number = words.end()
    for (const head of same) {
      const numbers = this.numbers[head.at] as Uint32Array
      // None where all of its rows are gone: nobody asks for it then.
      if (head.isCoded) numbers[head.number] = Math.max(number, 0)
      else if (number >= 0 && head.placeInRow >= 0 && this.#lateCount < lateCodesMax) {
        this.late[head.at]?.add(head.row, head.placeInRow, number)
        this.#lateCount += 1
      }
    }
  }

  /** Rows of a word from all of its segments, in the order of their new numbers. */
  #push(same: readonly WordHead[]): void {
    const { words } = this.draft
    let left = 0
    for (const head of same) if (head.beginRows()) left += 1
    while (left > 0) {
      let least = (same[0] as WordHead).rows
      let bound = Number.POSITIVE_INFINITY
      for (let at = 1; at < same.length; at += 1) {
        const { rows } = same[at] as WordHead
        if (rows.number < least.number) {
          bound = least.number
          least = rows
        } else if (rows.number < bound) bound = rows.number
      }
      // Most often all rows of one segment come before those of another one.
      while (least.number < bound) {
        words.push(least.number)
        if (least.next()) continue
        left -= 1
        break
      }
    }
  }
}
