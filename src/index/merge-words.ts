import { leftOut, type MergeOrder, type MergeSource, stepsPerPause } from './merge-order.js'
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
  #block = -1
  #word = 0
  #coded = -1
  readonly #words: WordBlock

  constructor(
    readonly at: number,
    private readonly segment: Segment,
  ) {
    this.#words = segment.words.newBlock()
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

  /** The row, where it is the only one. */
  get firstRow(): number {
    return this.#words.rows[this.#word * besideMax] as number
  }

  list(): RowListReader {
    return this.segment.reader(this.#words.list(this.#word))
  }

  /** Reads all of the word from its first row. */
  fill(): void {
    const reader = this.list()
    reader.load(0)
    const key = this.segment.rows.keyStarting(
      reader.rows[0] as number,
      this.bytes.subarray(this.from, this.to),
    )
    if (key === undefined) throw new Error(`${this.segment.file.path} has a word that its row does not have`)
    this.bytes = key
    this.from = 0
    this.to = key.length
    this.isFull = true
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
  /** Of each segment: for each of its words with a number, the number in the new one. */
  readonly numbers: readonly Uint32Array[]
  readonly #heads: WordHead[] = []
  readonly #rows: RowMerge

  constructor(
    private readonly sources: readonly MergeSource[],
    order: MergeOrder,
    private readonly draft: SegmentDraft,
  ) {
    this.numbers = sources.map(({ segment }) => new Uint32Array(segment.footer.codedCount))
    this.#rows = new RowMerge(order.numbers, draft)
  }

  *run(): Generator<void> {
    for (const [at, { segment }] of this.sources.entries()) this.#put(new WordHead(at, segment))
    const same: WordHead[] = []
    for (let steps = 1; this.#heads.length > 0; steps += 1) {
      if (steps % stepsPerPause === 0) yield
      same.length = 0
      same.push(this.#heads.shift() as WordHead)
      const first = same[0] as WordHead
      while (this.#heads.length > 0 && compareHeads(first, this.#heads[0] as WordHead) === 0) {
        same.push(this.#heads.shift() as WordHead)
      }
      this.#write(first, same)
      for (const head of same) {
        head.next()
        this.#put(head)
      }
    }
  }

  /** Puts a head where it belongs among the others, the least first. */
  #put(head: WordHead): void {
    if (head.isOver) return
    let [low, high] = [0, this.#heads.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareHeads(this.#heads[middle] as WordHead, head) < 0) low = middle + 1
      else high = middle
    }
    this.#heads.splice(low, 0, head)
  }

  #write(first: WordHead, same: readonly WordHead[]): void {
    const { words } = this.draft
    const isCoded = same.some((head) => head.isCoded)
    words.begin(first.bytes, first.from, first.to, isCoded)
    this.#rows.push(same)
    const number = words.end()
    for (const head of same) {
      const numbers = this.numbers[head.at] as Uint32Array
      // None where all of its rows are gone: nobody asks for it then.
      if (head.isCoded) numbers[head.number] = Math.max(number, 0)
    }
  }
}

/** Rows of a word from several segments, by their new numbers. */
class RowMerge {
  constructor(
    private readonly numbers: readonly Uint32Array[],
    private readonly draft: SegmentDraft,
  ) {}

  push(heads: readonly WordHead[]): void {
    const [first] = heads
    if (first === undefined) return
    const { words } = this.draft
    if (heads.length === 1 && first.rowCount === 1) {
      const number = this.numbers[first.at]?.[first.firstRow] as number
      if (number !== leftOut) words.push(number)
      return
    }
    const lists = heads.map((head) => this.#numbered(head))
    const next = lists.map((list) => list.next())
    for (;;) {
      let least = -1
      for (const [at, { value, done }] of next.entries()) {
        if (done !== true && (least < 0 || value < (next[least]?.value as number))) least = at
      }
      if (least < 0) return
      words.push(next[least]?.value as number)
      next[least] = (lists[least] as Generator<number, number>).next()
    }
  }

  *#numbered(head: WordHead): Generator<number, number> {
    const numbers = this.numbers[head.at] as Uint32Array
    const reader = head.list()
    for (let block = 0; block < reader.blockCount; block += 1) {
      reader.load(block)
      for (let at = 0; at < reader.filled; at += 1) {
        const number = numbers[reader.rows[at] as number] as number
        if (number !== leftOut) yield number
      }
    }
    return -1
  }
}
