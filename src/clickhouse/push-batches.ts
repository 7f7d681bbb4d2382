import { type RowParts, rowsBetween } from '../catalog/index-parts.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { Row } from '../catalog/row.js'
import type { LiveSegment } from '../catalog/segment-rows.js'
import type { Group } from '../index/groups.js'
import type { Segment } from '../index/segment.js'
import type { StableHeights } from './heights.js'
import { RowBinaryWriter } from './row-binary.js'
import { SegmentEncoder } from './segment-encoder.js'
import { type BlockParts, blockParts, ownerKeyMaxBytes, writeRow } from './stable-row.js'
import type { TextPlace } from './word-cache.js'

export interface PushLimits {
  /** A batch has so many rows or bytes, and a few more. */
  readonly rows: number
  readonly bytes: number
}

/** Rows as the tables take them. */
export interface Batch {
  readonly bytes: Buffer
  readonly rows: number
  /** Rows of it for which the tables have no room. */
  readonly leftOut: number
  /** Up to this height everything is in this batch and those before it; absent where the batch ends within a height. */
  readonly whole?: number
}

const keysKept = 50_000
/** Rows of a segment after which it is seen whether the batch is full; it is seen earlier where they have this many bytes. */
const [rowsEach, bytesEach] = [1024, 4 * 2 ** 20]
const none = Buffer.alloc(0)
const noText = new Uint8Array(1)

/** What rows have of their block: as it is, and as RowBinary. */
interface Block {
  readonly height: number
  readonly parts: BlockParts
  readonly text: Uint8Array
}

/**
 * Makes batches out of the rows of the index: those of segments without an object for each, those of the tables one by one. Only
 * what lies between two heights is of one state, so rows may change places in the index while batches are written.
 */
export class PushBatches {
  readonly #encoders = new Map<Segment, SegmentEncoder>()
  readonly #keys = new Map<string, Uint8Array>()
  #block: Block | undefined
  #root: { readonly height: number; readonly index: number; readonly text: Uint8Array } | undefined
  readonly #out = new RowBinaryWriter(1 << 22)
  #rows = 0
  #leftOut = 0
  #insertedSeconds = 0

  constructor(
    private readonly index: ChainIndex,
    private readonly now: () => number,
    private readonly limits: PushLimits,
  ) {}

  /** The rows of these heights. The index may not be refreshed by others between the parts of one height. */
  *make({ from, to }: StableHeights): Generator<Batch> {
    // An earlier run may have ended within a row.
    this.#begin()
    for (let next = from; next <= to; ) {
      this.index.refresh()
      this.#insertedSeconds = Math.floor(this.now() / 1000)
      this.#block = undefined
      this.#root = undefined
      const parts = this.index.parts()
      this.#forgetAllBut(parts)
      const last = this.#lastHeight(parts, next, to)
      for (const _ of this.#rowsOf(parts, { from: next, to: last })) {
        if (this.#rows >= this.limits.rows || this.#out.size >= this.limits.bytes) yield this.#cut()
      }
      yield this.#cut(last)
      next = last + 1
    }
  }

  #cut(whole?: number): Batch {
    const batch = {
      bytes: this.#out.written,
      rows: this.#rows,
      leftOut: this.#leftOut,
      ...(whole === undefined ? {} : { whole }),
    }
    this.#begin()
    return batch
  }

  #begin(): void {
    this.#out.reset()
    this.#rows = 0
    this.#leftOut = 0
  }

  /** Encoders keep files open. */
  #forgetAllBut({ segments }: RowParts): void {
    const live = new Set(segments.map(({ segment }) => segment))
    for (const segment of this.#encoders.keys()) if (!live.has(segment)) this.#encoders.delete(segment)
  }

  /** Up to which height there are rows for one batch, about. */
  #lastHeight(parts: RowParts, from: number, to: number): number {
    const last = this.#lastInSegments(parts, from, to)
    let [count, before] = [0, from]
    for (const height of parts.tableHeights(from, last)) {
      if (count >= this.limits.rows && height > before) return before
      count += 1
      before = height
    }
    return last
  }

  #lastInSegments({ segments }: RowParts, from: number, to: number): number {
    const firsts = segments.map((live) => rowsBetween(live, from, from)[0])
    const rows = (height: number): number =>
      segments.reduce(
        (sum, live, at) => sum + Math.max(0, rowsBetween(live, height, height)[1] - (firsts[at] as number)),
        0,
      )
    let [low, high, step] = [from, from, 1]
    while (high < to && rows(high) < this.limits.rows) {
      low = high
      high = Math.min(to, high + step)
      step *= 2
    }
    // `low` has too few, `high` may have too many.
    while (high - low > 1) {
      const middle = (low + high) >>> 1
      if (rows(middle) <= this.limits.rows) low = middle
      else high = middle
    }
    return rows(high) <= this.limits.rows ? high : low
  }

  /** Writes all rows, and stops after each few of them. */
  *#rowsOf(parts: RowParts, { from, to }: StableHeights): Generator<void> {
    for (const live of parts.segments) {
      const [first, end] = rowsBetween(live, from, to)
      for (let row = first; row < end; ) {
        row = this.#putSegment(live, row, Math.min(row + rowsEach, end))
        yield
      }
    }
    for (const row of parts.tables(from, to)) {
      if (!this.#put(row)) this.#leftOut += 1
      else this.#rows += 1
      yield
    }
  }

  /** Writes rows up to `end`, or fewer where they are long. Returns where the next ones begin. */
  #putSegment(live: LiveSegment, first: number, end: number): number {
    const bytesMax = this.#out.size + bytesEach
    const { segment, isRemoved } = live
    const encoder = this.#encoderOf(segment)
    let group: Group | undefined
    let root: Uint8Array = noText
    let block: Uint8Array = noText
    for (let row = first; row < end; row += 1) {
      if (this.#out.size >= bytesMax) return row
      encoder.load(row)
      if (group === undefined || row >= group.end) {
        group = segment.groups.of(row)
        block = this.#blockAt(group.height).text
        root = group.place % 2 === 0 ? noText : this.#rootText(group.height, (group.place - 1) / 2)
      }
      if (isRemoved?.(row) === true) continue
      const { height, place, seenSeconds } = group
      if (place % 2 === 0) {
        root = encoder.id()
        this.#root = { height, index: place / 2, text: root }
      }
      const about = { block, root, insertedSeconds: this.#insertedSeconds }
      if (encoder.write(this.#out, height, place, seenSeconds, about)) this.#rows += 1
      else this.#leftOut += 1
    }
    return end
  }

  #encoderOf(segment: Segment): SegmentEncoder {
    const known = this.#encoders.get(segment)
    if (known !== undefined) return known
    const made = new SegmentEncoder(segment, (owner) => this.#keyText(owner))
    this.#encoders.set(segment, made)
    return made
  }

  #blockAt(height: number): Block {
    if (this.#block?.height === height) return this.#block
    const record = this.index.block(height)
    const parts = record === undefined ? { id: none, previous: none, timestamp: 0 } : blockParts(record)
    const out = new RowBinaryWriter(256)
    out.bytes(parts.id)
    out.u32(parts.timestamp)
    out.bytes(parts.previous)
    this.#block = { height, parts, text: out.written }
    return this.#block
  }

  /** Id of the transaction at this place, behind its length. It comes before its items mostly. */
  #rootText(height: number, index: number): Uint8Array {
    if (this.#root?.height !== height || this.#root.index !== index)
      this.#root = { height, index, text: textOf(this.index.transactionIn(height, index)?.id ?? none) }
    return this.#root.text
  }

  #put(row: Row): boolean {
    const { height, index, owner, signatureType } = row
    if (height === undefined) return false
    if (!row.isItem) this.#root = { height, index, text: textOf(row.id) }
    const about = {
      block: this.#blockAt(height).parts,
      root: this.#rootText(height, index).subarray(1),
      // RSA keys are longer than the tables take.
      ownerKey: signatureType === undefined || signatureType === 1 ? none : this.#keyOf(owner).subarray(1),
      insertedSeconds: this.#insertedSeconds,
    }
    return writeRow(this.#out, row, about)
  }

  #keyText({ bytes, from, to }: TextPlace): Uint8Array {
    return this.#keyOf(Buffer.from(bytes.buffer, bytes.byteOffset + from + 1, to - from - 1))
  }

  /** The public key of this address, behind its length. */
  #keyOf(owner: Buffer): Uint8Array {
    const name = owner.toString('latin1')
    const known = this.#keys.get(name)
    if (known !== undefined) return known
    const key = this.index.ownerKey(owner)
    const text = key === undefined || key.length > ownerKeyMaxBytes ? noText : textOf(key)
    if (this.#keys.size >= keysKept) this.#keys.clear()
    this.#keys.set(name, text)
    return text
  }
}

/** At most 127 bytes, behind their length. */
function textOf(bytes: Uint8Array): Uint8Array {
  const text = new Uint8Array(1 + bytes.length)
  text[0] = bytes.length
  text.set(bytes, 1)
  return text
}
