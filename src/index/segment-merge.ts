import { VarReader } from '../format/varbytes.js'
import { type Form, FormCounter } from './forms.js'
import type { LateCodes } from './late-codes.js'
import { leftOut, MergeOrder, type MergeSource, type RowNumbers, stepsPerPause } from './merge-order.js'
import { MergeWords } from './merge-words.js'
import { rowFlag } from './row-record.js'
import type { Segment } from './segment.js'
import { SegmentDraft, type WrittenSegment } from './segment-draft.js'
import { skipShaped, type ValueShape } from './shapes.js'

/** Segments that are merged at once, at most: each takes memory for a block of its words. */
export const sourcesMax = 32

/**
 * Merges segments into a new one at `path`: every row once, in the order of the chain. Does some of the work each time that it is
 * requested. Memory: four bytes for each row and eight for each word with a number, of all segments, twelve for
 * each word that comes out of a row (at most 2^21), and some MiB. On an error, and where it is ended early (`return`), nothing
 * is left of the new segment.
 */
export function* mergeSegments(
  sources: readonly MergeSource[],
  path: string,
): Generator<void, WrittenSegment> {
  if (sources.length === 0 || sources.length > sourcesMax) {
    throw new RangeError(`${sources.length} segments cannot be merged at once`)
  }
  for (const { segment } of sources) segment.file.readThrough()
  const order = new MergeOrder(sources)
  yield* order.run()
  const draft = new SegmentDraft(path, order.count)
  try {
    const words = new MergeWords(sources, order, draft)
    yield* words.run()
    draft.beginRows(mergedForms(sources))
    yield* writeRows(sources, order, words, draft)
    draft.beginIds()
    yield* writeIds(order, draft)
    draft.beginKeys()
    yield* writeKeys(sources, draft)
    return draft.finish()
  } finally {
    draft.drop()
  }
}

function mergedForms(sources: readonly MergeSource[]): Form[] {
  const counter = new FormCounter()
  for (const { segment } of sources) {
    for (const { name, shape, count } of segment.forms) counter.add(name, shape, count)
  }
  return counter.forms()
}

function* writeRows(
  sources: readonly MergeSource[],
  order: MergeOrder,
  words: MergeWords,
  draft: SegmentDraft,
): Generator<void> {
  const rewriters = sources.map(({ segment }, at) => {
    const [numbers, late] = [words.numbers[at], words.late[at]]
    if (numbers === undefined || late === undefined) throw new RangeError(`no words of segment ${at}`)
    late.settle()
    return new RowRewriter(segment, numbers, late, draft)
  })
  const next = sources.map(() => 0)
  let at = 0
  for (let number = 0; number < order.count; number += 1) {
    if (number % stepsPerPause === 0) yield
    // Rows that follow each other are most often of one segment.
    for (let tried = 0; tried <= sources.length; tried += 1) {
      const numbers = order.numbers[at] as RowNumbers
      let row = next[at] as number
      while (row < numbers.rows && numbers.isLeftOut(row)) row += 1
      next[at] = row
      if (row < numbers.rows && numbers.of(row) === number) break
      at = (at + 1) % sources.length
    }
    const row = next[at] as number
    next[at] = row + 1
    const rewriter = rewriters[at]
    if (rewriter === undefined || order.numbers[at]?.of(row) !== number)
      throw new Error(`row ${number} is lost`)
    rewriter.write(row)
  }
}

function* writeIds(order: MergeOrder, draft: SegmentDraft): Generator<void> {
  let steps = 0
  for (const { at, prefix, row } of order.ids()) {
    const number = (order.numbers[at] as RowNumbers).of(row)
    if (number !== leftOut) draft.ids.add(prefix, number)
    steps += 1
    if (steps % stepsPerPause === 0) yield
  }
}

function* writeKeys(sources: readonly MergeSource[], draft: SegmentDraft): Generator<void> {
  const next = sources.map(() => 0)
  for (let steps = 1; ; steps += 1) {
    if (steps % stepsPerPause === 0) yield
    let least: { address: Buffer; key: Buffer } | undefined
    const heads = sources.map(({ segment }, at) =>
      (next[at] as number) < segment.footer.keyCount ? segment.ownerKeyAt(next[at] as number) : undefined,
    )
    for (const head of heads) {
      if (head !== undefined && (least === undefined || head.address.compare(least.address) < 0)) least = head
    }
    if (least === undefined) return
    for (const [at, head] of heads.entries()) {
      if (head?.address.equals(least.address) === true) next[at] = (next[at] as number) + 1
    }
    draft.ownerKey(least.address, least.key)
  }
}

/** Writes rows of one segment into another one: only the codes of words differ. */
class RowRewriter {
  readonly #forms: readonly number[]
  /** Indexed by the code in the segment: the code in the new one. */
  readonly #codes: Uint32Array
  readonly #read = new VarReader(Buffer.alloc(0))
  #row = 0
  /** Where the next word of the row begins. */
  #place = 0

  constructor(
    private readonly segment: Segment,
    /** Indexed by the number of a word: its number in the new segment. */
    numbers: Uint32Array,
    private readonly late: LateCodes,
    private readonly draft: SegmentDraft,
  ) {
    this.#forms = segment.forms.map(({ name, shape }) => draft.formNumbers.of(name, shape))
    const { codedCount, shortCount } = segment.footer
    this.#codes = new Uint32Array(shortCount + codedCount)
    for (let code = 0; code < this.#codes.length; code += 1) {
      this.#codes[code] = draft.codes[numbers[segment.rows.numberOf(code)] as number] as number
    }
  }

  write(number: number): void {
    const { draft, segment } = this
    const { rows } = segment
    const { height, place, seenSeconds } = segment.groups.of(number)
    rows.load(number)
    const { flags, bytes, idAt } = rows
    const read = this.#read.reset(bytes, rows.read.at)
    const end = rows.end
    draft.beginRow(height, place, seenSeconds + rows.seenDifference)
    draft.head(flags & ~rowFlag.seen, bytes, idAt)
    this.#row = number
    this.#place = 0
    this.#field(read)
    if ((flags & rowFlag.recipient) !== 0) this.#field(read)
    if ((flags & rowFlag.place) !== 0) this.#field(read)
    const tags = read.uint()
    draft.row.uint(tags)
    for (let left = tags; left > 0; left -= 1) this.#tag(read)
    draft.row.range(bytes, read.at, end)
    draft.endRow()
  }

  #field(read: VarReader): void {
    const { row } = this.draft
    const code = read.uint()
    this.#place += 1
    if (code > 0) {
      row.uint((this.#codes[code - 1] as number) + 1)
      return
    }
    const start = read.at
    read.pass(read.uint())
    const late = this.late.numberOf(this.#row, this.#place - 1)
    if (late >= 0) {
      row.uint((this.draft.codes[late] as number) + 1)
      return
    }
    row.u8(0)
    row.range(read.bytes, start, read.at)
  }

  #tag(read: VarReader): void {
    const { segment, draft } = this
    const { row, formNumbers } = draft
    const code = read.uint()
    this.#place += 1
    const { forms } = segment
    if (code > forms.length) {
      row.uint((this.#codes[code - 1 - forms.length] as number) + 1 + formNumbers.count)
      return
    }
    const known = forms[code - 1]
    const name = known === undefined ? read.block() : known.name
    const shape = known === undefined ? (read.u8() as ValueShape) : known.shape
    const late = this.late.numberOf(this.#row, this.#place - 1)
    if (late >= 0) {
      row.uint((draft.codes[late] as number) + 1 + formNumbers.count)
      skipShaped(read, shape)
      return
    }
    const form = known === undefined ? formNumbers.of(name, shape) : (this.#forms[code - 1] as number)
    row.u8(form)
    if (form === 0) {
      row.block(name)
      row.u8(shape)
    }
    const start = read.at
    skipShaped(read, shape)
    row.range(read.bytes, start, read.at)
  }
}
