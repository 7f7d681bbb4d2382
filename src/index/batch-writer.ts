import { orderOf } from '../store/sort-records.js'
import { PlainTags, plainTag } from './plain-tags.js'
import { idNumber, keyNumbers, type RowBatch } from './row-batch.js'
import { rowFlag } from './row-record.js'
import { SegmentDraft, type WrittenSegment } from './segment-draft.js'
import { type ValueShape, writeShaped } from './shapes.js'
import { nameStart, valueStart, wordField } from './word-key.js'
import { sortedTexts } from './word-sort.js'

const idWords = 8

/** Rows of a batch in the order of the chain and of their ids; each id once, where it comes first in the chain. */
interface Order {
  readonly byChain: Uint32Array
  readonly byId: Uint32Array
}

function orderRows({ count, keys, dropped: out }: RowBatch): Order {
  const sorted = orderOf(keys, keyNumbers, count, idNumber)
  const dropped = new Uint8Array(count)
  for (const row of out) dropped[row] = 1
  for (let at = 1; at < count; at += 1) {
    const [before, row] = [sorted[at - 1] as number, sorted[at] as number]
    if (!isSameId(keys, before, row)) continue
    const isLater = dropped[row] === 1 || (dropped[before] !== 1 && chainOrder(keys, before, row) <= 0)
    dropped[isLater ? row : before] = 1
    // What stays goes on to be compared with the next.
    if (isLater) [sorted[at - 1], sorted[at]] = [row, before]
  }
  const byId = sorted.filter((row) => dropped[row] === 0)
  const places = new Uint32Array(byId.length * 2)
  // In the order of ids already: what is the same in height and place stays in it.
  for (const [at, row] of byId.entries()) {
    places[2 * at] = keys[row * keyNumbers] as number
    places[2 * at + 1] = keys[row * keyNumbers + 1] as number
  }
  const byChain = stableOrder(places, byId.length).map((at) => byId[at] as number)
  return { byChain, byId }
}

/** The order of pairs; those that are the same stay in the order that they have. */
function stableOrder(pairs: Uint32Array, count: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, at) => at)
  let isSorted = true
  for (let at = 1; at < count && isSorted; at += 1) {
    const before = (pairs[2 * at - 2] as number) - (pairs[2 * at] as number)
    isSorted = before < 0 || (before === 0 && (pairs[2 * at - 1] as number) <= (pairs[2 * at + 1] as number))
  }
  if (isSorted) return order
  const triples = new Uint32Array(3 * count)
  for (let at = 0; at < count; at += 1) {
    triples[3 * at] = pairs[2 * at] as number
    triples[3 * at + 1] = pairs[2 * at + 1] as number
    triples[3 * at + 2] = at
  }
  return orderOf(triples, 3, count)
}

function isSameId(keys: Uint32Array, one: number, other: number): boolean {
  for (let at = idNumber; at < keyNumbers; at += 1) {
    if (keys[one * keyNumbers + at] !== keys[other * keyNumbers + at]) return false
  }
  return true
}

function chainOrder(keys: Uint32Array, one: number, other: number): number {
  const [left, right] = [one * keyNumbers, other * keyNumbers]
  const heights = (keys[left] as number) - (keys[right] as number)
  return heights === 0 ? (keys[left + 1] as number) - (keys[right + 1] as number) : heights
}

/** The rows of each word, ascending: those of word `at` from `starts[at]` to `starts[at + 1]`. */
function rowsOfWords(batch: RowBatch, byChain: Uint32Array): { starts: Uint32Array; rows: Uint32Array } {
  const { words, rowWords, wordStarts } = batch
  const starts = new Uint32Array(words.count + 1)
  // The last row that had a word, and one: a row that has it twice counts once.
  const last = new Uint32Array(words.count)
  for (let row = 0; row < byChain.length; row += 1) {
    const came = byChain[row] as number
    const end = wordStarts[came + 1] as number
    for (let at = wordStarts[came] as number; at < end; at += 1) {
      const word = rowWords[at] as number
      if (last[word] === row + 1) continue
      last[word] = row + 1
      starts[word + 1] = (starts[word + 1] as number) + 1
    }
  }
  for (let word = 0; word < words.count; word += 1) {
    starts[word + 1] = (starts[word + 1] as number) + (starts[word] as number)
  }
  // The same memory: a row that has a word twice is now the last one of the word's list.
  const next = last
  next.set(starts.subarray(0, words.count))
  const rows = new Uint32Array(starts[words.count] as number)
  for (let row = 0; row < byChain.length; row += 1) {
    const came = byChain[row] as number
    const end = wordStarts[came + 1] as number
    for (let at = wordStarts[came] as number; at < end; at += 1) {
      const word = rowWords[at] as number
      const place = next[word] as number
      if (place > (starts[word] as number) && rows[place - 1] === row) continue
      rows[place] = row
      next[word] = place + 1
    }
  }
  return { starts, rows }
}

/** Words or rows that are written in one step. */
const stepSize = 4096

/** Writes the rows of a batch as a segment, in one go. On an error of the disk, which it throws, nothing is left. */
export function writeBatch(batch: RowBatch, path: string): WrittenSegment {
  const steps = writeBatchInSteps(batch, path)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** The same, some of it with each step; rows and words are sorted in one. Where it is ended early (`return`) nothing is left. */
export function* writeBatchInSteps(batch: RowBatch, path: string): Generator<void, WrittenSegment> {
  const order = orderRows(batch)
  yield
  const draft = new SegmentDraft(path, order.byChain.length)
  try {
    const written = new BatchWords(batch, draft)
    yield* written.write(order.byChain)
    let rows = 0
    for (const row of order.byChain) {
      written.row(row)
      rows += 1
      if (rows % stepSize === 0) yield
    }
    writeIds(batch, draft, order)
    yield
    draft.beginKeys()
    const addresses = [...batch.ownerKeys.keys()].map((text) => Buffer.from(text, 'latin1'))
    for (const address of addresses.sort(Buffer.compare)) {
      draft.ownerKey(address, batch.ownerKeys.get(address.toString('latin1')) as Uint8Array)
    }
    return draft.finish()
  } finally {
    draft.drop()
  }
}

function writeIds({ count, keys }: RowBatch, draft: SegmentDraft, { byChain, byId }: Order): void {
  const numbers = new Uint32Array(count)
  for (let row = 0; row < byChain.length; row += 1) numbers[byChain[row] as number] = row
  draft.beginIds()
  for (const row of byId) {
    const at = row * keyNumbers + idNumber
    draft.ids.add((keys[at] as number) * 4096 + ((keys[at + 1] as number) >>> 20), numbers[row] as number)
  }
}

/** The words of a batch, and its rows by them. */
class BatchWords {
  /**
   * For each word its number in the segment, and one; 0: none, it stands in its row; of tags without a number see `plainTag`. One
   * array, because words are looked up in no order, and memory is slow.
   */
  readonly #numbers: Uint32Array
  readonly #id: Buffer = Buffer.allocUnsafe(32)

  constructor(
    private readonly batch: RowBatch,
    private readonly draft: SegmentDraft,
  ) {
    const { count } = batch.words
    this.#numbers = new Uint32Array(count)
  }

  /** Writes the words, and begins the rows. */
  *write(byChain: Uint32Array): Generator<void> {
    const { keys, starts, count } = this.batch.words
    const sorted = sortedTexts(keys, starts, count)
    const { starts: listStarts, rows } = rowsOfWords(this.batch, byChain)
    const { words } = this.draft
    const plain = new PlainTags(count)
    yield
    let steps = 0
    for (const word of sorted) {
      steps += 1
      if (steps % stepSize === 0) yield
      const [from, to] = [listStarts[word] as number, listStarts[word + 1] as number]
      const [start, end] = [starts[word] as number, starts[word + 1] as number]
      words.begin(keys, start, end, to - from > 1, true)
      for (let at = from; at < to; at += 1) words.push(rows[at] as number)
      const number = words.end() + 1
      this.#numbers[word] = number
      if (number === 0 && keys[start] === wordField.tag) plain.add(word, keys, start, end)
    }
    this.draft.beginRows(plain.forms(keys))
    plain.number(keys, this.#numbers, this.draft.formNumbers)
  }

  /** Writes a row of the batch (by its number of arrival): the next in the order of the chain. */
  row(came: number): void {
    const { batch, draft } = this
    const { keys, rowWords, wordStarts, factStarts } = batch
    const key = came * keyNumbers
    draft.beginRow(keys[key] as number, keys[key + 1] as number, keys[key + 2] as number)
    const id = this.#id
    for (let word = 0; word < idWords; word += 1) {
      id.writeUInt32BE(keys[key + idNumber + word] as number, 4 * word)
    }
    const flags = batch.flags[came] as number
    draft.head(flags, id, 0)
    const { row } = draft
    let at = wordStarts[came] as number
    const end = wordStarts[came + 1] as number
    this.#field(rowWords[at++] as number)
    if ((flags & rowFlag.recipient) !== 0) this.#field(rowWords[at++] as number)
    if ((flags & rowFlag.place) !== 0) this.#field(rowWords[at++] as number)
    row.uint(end - at)
    for (; at < end; at += 1) this.#tag(rowWords[at] as number)
    row.range(batch.facts.written, factStarts[came] as number, factStarts[came + 1] as number)
    draft.endRow()
  }

  #field(word: number): void {
    const { row, codes } = this.draft
    const number = this.#numbers[word] as number
    if (number > 0) {
      row.uint((codes[number - 1] as number) + 1)
      return
    }
    const { keys, starts } = this.batch.words
    const [from, end] = [(starts[word] as number) + 1, starts[word + 1] as number]
    row.u8(0)
    row.uint(end - from)
    row.range(keys, from, end)
  }

  #tag(word: number): void {
    const { row, codes, formNumbers } = this.draft
    const number = this.#numbers[word] as number
    if (number < plainTag) {
      row.uint((codes[number - 1] as number) + 1 + formNumbers.count)
      return
    }
    const { keys, starts } = this.batch.words
    const [start, end] = [starts[word] as number, starts[word + 1] as number]
    const value = valueStart(keys, start, end)
    const shape = ((number >>> 8) & 0xff) as ValueShape
    const form = number & 0xff
    row.u8(form)
    if (form === 0) {
      const name = nameStart(keys, start)
      row.uint(value - name)
      row.range(keys, name, value)
      row.u8(shape)
    }
    writeShaped(row, shape, keys, value, end)
  }
}
