import { amountOf } from '../format/amount.js'
import { signatureTypes } from '../format/item-fields.js'
import type { VarReader } from '../format/varbytes.js'
import type { Form } from '../index/forms.js'
import { rowFlag } from '../index/row-record.js'
import type { Segment } from '../index/segment.js'
import { putLength, putShaped, shapedGrowth, shapedRoom, shapeMax, type ValueShape } from '../index/shapes.js'
import type { RowBinaryWriter } from './row-binary.js'
import { decimalMax, indexMax } from './stable-row.js'
import { isContentType, type TextPlace, WordCache } from './word-cache.js'

/** What a row is written with, besides what the segment has of it. Texts are RowBinary: behind their length. */
export interface EncodedSurroundings {
  /** `block_indep_hash`, `block_timestamp` and `block_previous_block`. */
  readonly block: Uint8Array
  /** Id of the transaction that holds the item, or the row's own; empty where the index does not have it. */
  readonly root: Uint8Array
  readonly insertedSeconds: number
}

/** The public key (RowBinary) of this address (behind its length, too). */
export type KeyOf = (owner: TextPlace) => Uint8Array

const nothing = new Uint8Array(1)
/** Amounts of fewer bytes fit always. */
const amountBytesMin = 8
const lengthBytes = 5

const piece = (): TextPlace => ({ bytes: nothing, from: 0, to: 1 })

/** How a tag begins whose name stands in a form, and not in the row. */
interface FormStart {
  readonly name: Uint8Array
  readonly shape: ValueShape
  readonly isType: boolean
}

/**
 * Writes rows of a segment as the tables have them: what `writeRow` writes, without an object for each row. One at a time, and
 * bytes go from the file into the batch.
 */
export class SegmentEncoder {
  readonly #words: WordCache
  readonly #forms: readonly FormStart[]
  readonly #owner = piece()
  readonly #recipient = piece()
  readonly #parent = piece()
  readonly #anchor = piece()
  readonly #dataRoot = piece()
  readonly #quantity = piece()
  readonly #reward = piece()
  readonly #one = piece()
  /** The tags of the row, and where the Content-Type stands among them. */
  #tags = new Uint8Array(2 ** 16)
  #tagsEnd = 0
  #tagCount = 0
  #typeFrom = -1
  #typeTo = 0
  #size = 0
  #signatureType = -1
  #rootOffset = 0
  #parentOffset = 0
  #headerSize = 0
  #format = 0
  #weaveEnd = 0

  constructor(
    private readonly segment: Segment,
    private readonly keyOf: KeyOf,
  ) {
    this.#words = new WordCache(segment)
    this.#forms = segment.forms.map(startOf)
  }

  /** Loads a row; the others are about it. */
  load(row: number): void {
    this.segment.rows.load(row)
  }

  /** The id of the row that was loaded, behind its length. */
  id(): Uint8Array {
    const { bytes, idAt } = this.segment.rows
    const id = new Uint8Array(33)
    id[0] = 32
    id.set(bytes.subarray(idAt, idAt + 32), 1)
    return id
  }

  /**
   * Writes the row that was loaded, all columns in order. `place`: its place in the block as a segment has it. False: nothing was
   * written, because the tables have no room for its place or for the amount.
   */
  write(
    out: RowBinaryWriter,
    height: number,
    place: number,
    groupSeconds: number,
    about: EncodedSurroundings,
  ): boolean {
    const { rows } = this.segment
    const index = Math.floor(place / 2)
    this.#read(rows.read, rows.flags)
    if (index > indexMax || isTooMuch(this.#quantity) || isTooMuch(this.#reward)) return false
    out.u32(height)
    out.u16(index)
    out.u8(place % 2)
    out.u8(32)
    out.range(rows.bytes, rows.idAt, rows.idAt + 32)
    put(out, this.#anchor)
    put(out, this.#owner)
    put(out, this.#recipient)
    putAmount(out, this.#quantity)
    putAmount(out, this.#reward)
    out.u64(this.#size)
    if (this.#typeFrom < 0) out.u8(0)
    else out.range(this.#tags, this.#typeFrom, this.#typeTo)
    out.u8(this.#format)
    put(out, this.#dataRoot)
    put(out, this.#parent)
    out.range(about.block, 0, about.block.length)
    out.u64(groupSeconds + rows.seenDifference)
    out.u32(about.insertedSeconds)
    this.#writePlaces(out, (rows.flags & rowFlag.place) !== 0, about.root)
    out.length(this.#tagCount)
    out.range(this.#tags, 0, this.#tagsEnd)
    out.u32(this.#tagCount)
    return true
  }

  /** The columns from `offset` to `root_parent_offset`. */
  #writePlaces(out: RowBinaryWriter, hasPlace: boolean, root: Uint8Array): void {
    const type = Math.max(this.#signatureType, 0)
    const form = hasPlace ? signatureTypes.get(type) : undefined
    const start = hasPlace ? this.#parentOffset : 0
    const signatureAt = form === undefined ? 0 : start + 2
    out.u64(hasPlace ? start : this.#weaveEnd)
    out.u64(hasPlace ? this.#headerSize + this.#size : 0)
    out.u64(hasPlace ? start + this.#headerSize : 0)
    out.u64(form === undefined ? 0 : signatureAt + form.signatureSize)
    out.u64(form?.ownerSize ?? 0)
    // RSA keys are longer than the tables take.
    const key = this.#signatureType < 0 || this.#signatureType === 1 ? nothing : this.keyOf(this.#owner)
    out.range(key, 0, key.length)
    out.u64(signatureAt)
    out.u64(form?.signatureSize ?? 0)
    out.u32(type)
    out.range(root, 0, root.length)
    out.u64(hasPlace ? Math.max(0, this.#rootOffset - this.#parentOffset) : 0)
  }

  /** Reads what stands behind the id. */
  #read(read: VarReader, flags: number): void {
    this.#field(read, this.#owner)
    if ((flags & rowFlag.recipient) === 0) clear(this.#recipient)
    else this.#field(read, this.#recipient)
    if ((flags & rowFlag.place) === 0) clear(this.#parent)
    else this.#field(read, this.#parent)
    this.#tagsEnd = 0
    this.#typeFrom = -1
    this.#tagCount = read.uint()
    for (let left = this.#tagCount; left > 0; left -= 1) this.#tag(read)
    this.#size = read.uint()
    pass(read, this.#anchor)
    this.#signatureType = read.uint() - 1
    if ((flags & rowFlag.place) !== 0) {
      this.#rootOffset = read.uint()
      this.#parentOffset = (flags & rowFlag.nested) === 0 ? this.#rootOffset : read.uint()
      this.#headerSize = read.uint()
    }
    const hasTransfer = (flags & rowFlag.transfer) !== 0
    this.#format = hasTransfer ? read.uint() : 0
    for (const part of [this.#quantity, this.#reward, this.#dataRoot]) {
      if (hasTransfer) pass(read, part)
      else clear(part)
    }
    this.#weaveEnd = hasTransfer ? read.uint() : 0
  }

  #field(read: VarReader, into: TextPlace): void {
    const code = read.uint()
    if (code === 0) pass(read, into)
    else this.#words.field(code - 1, into)
  }

  #tag(read: VarReader): void {
    const code = read.uint()
    const form = this.#forms[code - 1]
    if (form !== undefined) this.#value(read, form)
    else if (code === 0) {
      const from = read.at
      const nameAt = read.skip()
      const { bytes, at } = read
      const name = bytes.subarray(from, at)
      const shape = read.u8()
      if (shape > shapeMax) throw new RangeError(`no shape of a value has the number ${shape}`)
      const isType = isContentType(bytes.subarray(nameAt, at))
      this.#value(read, { name, shape: shape as ValueShape, isType })
    } else this.#coded(code - 1 - this.#forms.length)
  }

  /** A tag whose value stands in the row. */
  #value(read: VarReader, { name, shape, isType }: FormStart): void {
    const bytesMax = name.length + shapedGrowth * (this.segment.rows.end - read.at) + shapedRoom
    const tags = this.#roomFor(bytesMax)
    const from = this.#tagsEnd
    for (let at = 0; at < name.length; at += 1) tags[from + at] = name[at] as number
    this.#tagsEnd = putShaped(read, shape, tags, from + name.length)
    if (isType) this.#noteType(from + name.length)
  }

  #coded(code: number): void {
    const one = this.#one
    this.#words.tag(code, one)
    const { typeAt } = this.#words
    const { bytes, from, to } = one
    const tags = this.#roomFor(to - from)
    const start = this.#tagsEnd
    for (let at = from; at < to; at += 1) tags[start + at - from] = bytes[at] as number
    this.#tagsEnd += to - from
    if (typeAt >= 0) this.#noteType(start + typeAt - from)
  }

  /** The value of the first tag called Content-Type counts. */
  #noteType(from: number): void {
    if (this.#typeFrom >= 0) return
    this.#typeFrom = from
    this.#typeTo = this.#tagsEnd
  }

  #roomFor(bytes: number): Uint8Array {
    const needed = this.#tagsEnd + bytes
    if (needed > this.#tags.length) {
      const larger = new Uint8Array(Math.max(needed, this.#tags.length * 2))
      larger.set(this.#tags.subarray(0, this.#tagsEnd))
      this.#tags = larger
    }
    return this.#tags
  }
}

function startOf({ name, shape }: Form): FormStart {
  const start = new Uint8Array(name.length + lengthBytes)
  const at = putLength(start, 0, name.length)
  start.set(name, at)
  return { name: start.subarray(0, at + name.length), shape, isType: isContentType(name) }
}

/** The bytes that come next stand behind their length in the row, as RowBinary has them. */
function pass(read: VarReader, into: TextPlace): void {
  into.bytes = read.bytes
  into.from = read.at
  read.skip()
  into.to = read.at
}

function clear(into: TextPlace): void {
  into.bytes = nothing
  into.from = 0
  into.to = 1
}

function put(out: RowBinaryWriter, { bytes, from, to }: TextPlace): void {
  out.range(bytes, from, to)
}

/** Amounts are short: their length is one byte. */
function putAmount(out: RowBinaryWriter, { bytes, from, to }: TextPlace): void {
  out.amount(bytes, from + 1, to)
}

function isTooMuch({ bytes, from, to }: TextPlace): boolean {
  if (to - from - 1 <= amountBytesMin) return false
  return to - from > 17 || amountOf(bytes.subarray(from + 1, to)) > decimalMax
}
