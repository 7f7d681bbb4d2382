import { VarReader, VarWriter } from '../format/varbytes.js'
import { grownLength } from './grown-length.js'
import { flagsOf, type PlainRow, type RowFacts, readFacts, writeFacts } from './row-record.js'
import { placeInBlock, type SegmentRow } from './segment-row.js'
import { WordBatch } from './word-batch.js'
import { wordField } from './word-key.js'
import { textsMax } from './word-sort.js'

/** Rows of a batch at most: more cannot be sorted at once. */
export const batchRowsMax = 2 ** 21
/** Tags of a row at most: no format of the network allows as many. */
export const tagsMax = 65_535

/** Numbers of a row in `keys`. */
export const keyNumbers = 11
/** How many of them stand in front of the id. */
export const idNumber = 3

export interface BatchLimits {
  /** A batch with so many rows is full; at most 2^21. */
  readonly rows: number
  /** A batch whose rows and words take so many bytes is full. Writing it takes up to as much again (batch-writer.ts). */
  readonly bytes: number
}

const noBytes = new Uint8Array(0)

export const usualLimits: BatchLimits = { rows: 250_000, bytes: 96 * 2 ** 20 }

/** Rows in memory that become a segment. */
export class RowBatch {
  count = 0
  readonly words: WordBatch
  /** Keys, row after row: height, place in the block, when it was first seen, id as eight numbers (big-endian). */
  keys: Uint32Array = new Uint32Array(1024 * keyNumbers)
  flags: Uint8Array = new Uint8Array(1024)
  /** Where the words and the facts of each row begin. */
  wordStarts: Uint32Array = new Uint32Array(1025)
  factStarts: Uint32Array = new Uint32Array(1025)
  /** Words of rows by their numbers: owner, recipient and bundle where there is one, tags. */
  rowWords: Uint32Array = new Uint32Array(16 * 1024)
  readonly facts: VarWriter
  /** Public keys by their addresses, as one character per byte. */
  readonly ownerKeys = new Map<string, Uint8Array>()
  /** Rows that are left out. */
  readonly dropped = new Set<number>()
  #keyBytes = 0
  /** Owners whose keys are here. */
  readonly #keyed = new Set<number>()
  #next = 0

  constructor(private readonly limits: BatchLimits = usualLimits) {
    this.words = new WordBatch(limits.bytes)
    this.facts = new VarWriter(limits.bytes)
  }

  /** Forgets all rows. The memory stays, for as many again. */
  clear(): void {
    this.count = 0
    this.words.clear()
    this.facts.reset()
    this.ownerKeys.clear()
    this.dropped.clear()
    this.#keyBytes = 0
    this.#keyed.clear()
  }

  /** No more rows should be added. */
  get isFull(): boolean {
    return (
      this.count >= Math.min(this.limits.rows, batchRowsMax) ||
      this.bytes >= this.limits.bytes ||
      this.words.count + tagsMax + 3 > textsMax
    )
  }

  /** Bytes that rows, words and keys take. */
  get bytes(): number {
    const rowWords = this.wordStarts[this.count] as number
    return this.words.bytes + this.facts.size + this.#keyBytes + 64 * this.count + 4 * rowWords
  }

  /** Adds a row. Throws a RangeError on one that no format of the network allows, and where there is no more room. */
  add(row: SegmentRow): void {
    this.begin(row.tags.length)
    const { words } = this
    this.word(words.ofField(wordField.owner, row.owner))
    const hasRecipient = row.recipient.length > 0
    if (hasRecipient) this.word(words.ofField(wordField.recipient, row.recipient))
    if (row.place !== undefined) this.word(words.ofField(wordField.parent, row.place.parent))
    for (const { name, value } of row.tags) this.word(words.ofTag(name, value))
    this.end(row, hasRecipient)
  }

  /**
   * Begins a row of so many tags: `word` for the number of each of its words (owner, recipient and bundle where there is one,
   * tags), then `end`. Throws as `add` does.
   */
  begin(tags: number): void {
    if (tags > tagsMax) throw new RangeError(`a row with ${tags} tags`)
    if (this.count >= batchRowsMax || this.words.count + tags + 3 > textsMax) {
      throw new RangeError('the batch has no more room')
    }
    this.#room(tags + 3)
    this.#next = this.wordStarts[this.count] as number
  }

  word(number: number): void {
    this.rowWords[this.#next] = number
    this.#next += 1
  }

  end(row: PlainRow, hasRecipient: boolean): void {
    const at = this.count
    this.#key(at * keyNumbers, row)
    this.flags[at] = flagsOf(row, hasRecipient)
    this.wordStarts[at + 1] = this.#next
    writeFacts(this.facts, row)
    this.factStarts[at + 1] = this.facts.size
    this.count += 1
  }

  /** Leaves a row out: another one with its id counts. */
  drop(row: number): void {
    this.dropped.add(row)
  }

  /** What a row has beside its words; valid until the next row. */
  factsOf(row: number): RowFacts {
    const start = this.factStarts[row] as number
    return readFacts(new VarReader(this.facts.written, start), this.flags[row] as number, noBytes)
  }

  /** The public key with this address (32 bytes). */
  addOwnerKey(address: Uint8Array, key: Uint8Array): void {
    const text = Buffer.from(address).toString('latin1')
    if (this.ownerKeys.has(text)) return
    this.ownerKeys.set(text, Buffer.from(key))
    this.#keyBytes += 96 + key.length
  }

  /** The public key of an owner, by the number of its word. */
  addKeyOf(owner: number, key: Uint8Array): void {
    if (this.#keyed.has(owner)) return
    this.#keyed.add(owner)
    const { keys, starts } = this.words
    this.addOwnerKey(keys.subarray((starts[owner] as number) + 1, starts[owner + 1]), key)
  }

  #key(at: number, row: PlainRow): void {
    const { keys } = this
    keys[at] = row.height
    keys[at + 1] = placeInBlock(row.index, row.isItem)
    keys[at + 2] = row.seenSeconds
    const { id } = row
    for (let word = 0; word < 8; word += 1) {
      const from = 4 * word
      keys[at + 3 + word] = (id[from]! << 24) | (id[from + 1]! << 16) | (id[from + 2]! << 8) | id[from + 3]!
    }
  }

  #room(words: number): void {
    if (this.count === this.flags.length) {
      const rows = grownLength(this.count + 1, Math.min(this.limits.rows, batchRowsMax))
      this.keys = grown(this.keys, rows * keyNumbers)
      this.wordStarts = grown(this.wordStarts, rows + 1)
      this.factStarts = grown(this.factStarts, rows + 1)
      const flags = new Uint8Array(rows)
      flags.set(this.flags)
      this.flags = flags
    }
    const needed = (this.wordStarts[this.count] as number) + words
    if (needed > this.rowWords.length) {
      this.rowWords = grown(this.rowWords, grownLength(needed, Math.ceil(this.limits.bytes / 4)))
    }
  }
}

function grown(array: Uint32Array, length: number): Uint32Array {
  const larger = new Uint32Array(length)
  larger.set(array)
  return larger
}
