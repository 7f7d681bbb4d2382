import type { Tag } from '../format/tag.js'
import { VarReader } from '../format/varbytes.js'
import { Recent } from '../store/recent.js'
import { type CheckedFile, DamagedSegment, pageBytes } from './checked-file.js'
import type { Footer } from './footer.js'
import type { Form } from './forms.js'
import type { GroupTable } from './groups.js'
import { readFacts, rowFlag, rowsPerStart, startBytes, unzigzag } from './row-record.js'
import type { SegmentRow } from './segment-row.js'
import { readShaped, shapeMax, type ValueShape } from './shapes.js'
import { compareBytes, fieldKey, nameStart, tagKey, valueStart, wordField } from './word-key.js'
import type { WordTable } from './word-table.js'

/** Words that a reader keeps at hand, half of them tags; longer ones are read each time. */
const wordsKept = 20_000
const shortMax = 256
const none = Buffer.alloc(0)

/** Stands for forms that cannot be read. */
const unreadable: readonly Form[] = []

/** Reads the rows of a segment. One at a time: `load` says which, and the rest is of that one. */
export class RowReader {
  flags = 0
  /** When it was first seen, less that of its group. */
  seenDifference = 0
  /** Its bytes, where the id begins in them, and where the row ends. */
  bytes: Buffer = none
  idAt = 0
  end = 0
  /** Place among the words of the row of what `keyStarting` found: owner, recipient and bundle where there is one, tags. */
  foundAt = -1
  /** Stands behind the id, at the words; whoever reads them reads them in order. */
  readonly read: VarReader = new VarReader(none)
  readonly #fields = new Recent<number, Buffer>(wordsKept / 2)
  readonly #tags = new Recent<number, Tag>(wordsKept / 2)
  /** The row behind the one that was loaded last, or the first one, and where it begins. */
  #nextRow = 0
  #next: number
  #size = 0
  /** The last row of which a page was read for the first time: its words were perhaps not read yet either. */
  #newRow = -1
  readonly #forms: readonly Form[]

  constructor(
    private readonly file: CheckedFile,
    private readonly footer: Footer,
    private readonly groups: GroupTable,
    private readonly words: WordTable,
    /** Undefined: they cannot be read. */
    forms: readonly Form[] | undefined,
  ) {
    this.#next = footer.rows
    this.#forms = forms ?? unreadable
  }

  load(row: number): void {
    const { file, footer } = this
    const { checks } = file
    if (!(row >= 0 && row < footer.rowCount)) throw new RangeError(`a segment has no row ${row}`)
    let position = this.#next
    if (row !== this.#nextRow) {
      const entry = footer.starts + Math.floor(row / rowsPerStart) * startBytes
      const from = file.at(entry, entry + startBytes)
      position = file.bytes.readUIntLE(from, startBytes)
      for (let left = row % rowsPerStart; left > 0; left -= 1) position = this.#bodyAt(position) + this.#size
    }
    const start = this.#bodyAt(position)
    this.#nextRow = row + 1
    this.#next = start + this.#size
    const at = file.at(start, start + this.#size)
    if (file.checks !== checks) this.#newRow = row
    this.bytes = file.bytes
    this.flags = file.bytes[at] as number
    this.idAt = at + 1
    this.end = at + this.#size
    this.read.reset(file.bytes, at + 33)
    this.seenDifference = (this.flags & rowFlag.seen) === 0 ? 0 : unzigzag(this.read.uint())
  }

  /** Loads a row whose words are read, which takes the forms. */
  #loadWords(row: number): void {
    if (this.#forms === unreadable) {
      const { file, footer } = this
      throw new DamagedSegment(
        file.path,
        Math.floor(footer.forms / pageBytes),
        'has forms that cannot be read',
      )
    }
    this.load(row)
  }

  /** Where a row begins behind its length, which is in `#size`. */
  #bodyAt(position: number): number {
    const { file, footer } = this
    if (position >= footer.starts) {
      throw new DamagedSegment(file.path, Math.floor(position / pageBytes), 'has no such row')
    }
    const at = file.at(position, Math.min(position + 5, footer.starts))
    const { bytes } = file
    let [next, size] = [at, 0]
    for (let scale = 1; ; scale *= 0x80) {
      const byte = bytes[next] as number
      next += 1
      size += (byte & 0x7f) * scale
      if (byte < 0x80) break
    }
    this.#size = size
    return position + next - at
  }

  /** The number of the word with this code. */
  numberOf(code: number): number {
    const { file, footer } = this
    if (code >= footer.shortCount) return code - footer.shortCount
    const entry = footer.shortCodes + code * 4
    const at = file.at(entry, entry + 4)
    return file.bytes.readUInt32LE(at)
  }

  /** The next word of an owner, recipient or bundle. */
  #field(): Buffer {
    const code = this.read.uint()
    if (code === 0) return this.read.block()
    const recent = this.#fields.get(code)
    if (recent !== undefined) return recent
    const field = this.words.key(this.numberOf(code - 1)).subarray(1)
    if (field.length <= shortMax) this.#fields.set(code, field)
    return field
  }

  /** The next tag. */
  #tag(): Tag {
    const read = this.read
    const code = read.uint()
    const form = this.#forms[code - 1]
    if (form !== undefined) return { name: form.name, value: readShaped(read, form.shape) }
    if (code === 0) {
      const name = read.block()
      return { name, value: readShaped(read, readShape(read)) }
    }
    return this.#tags.get(code) ?? this.#tagOf(code)
  }

  /** Goes behind the next tag; no word is looked up. */
  #passTag(): void {
    const read = this.read
    const code = read.uint()
    const form = this.#forms[code - 1]
    if (code === 0) read.block()
    if (form !== undefined) readShaped(read, form.shape)
    else if (code === 0) readShaped(read, readShape(read))
  }

  /** The tag with a number: rows share it. */
  #tagOf(code: number): Tag {
    const key = this.words.key(this.numberOf(code - 1 - this.#forms.length))
    const value = valueStart(key, 0, key.length)
    const tag = { name: key.subarray(nameStart(key, 0), value), value: key.subarray(value) }
    if (key.length <= shortMax) this.#tags.set(code, tag)
    return tag
  }

  /** Whether the page where a row begins, about, was not read before. */
  isNew(row: number): boolean {
    const { file, footer } = this
    const entry = footer.starts + Math.floor(row / rowsPerStart) * startBytes
    if (!file.areKnown(entry, entry + startBytes)) return true
    const at = file.at(entry, entry + startBytes)
    return !file.isKnown(file.bytes.readUIntLE(at, startBytes))
  }

  /** Begins to read these rows and their words, each at once. Nothing happens where they seem to be in memory. */
  ahead(rows: Uint32Array): void {
    const { file, footer } = this
    const entries = Float64Array.from(
      rows,
      (row) => footer.starts + Math.floor(row / rowsPerStart) * startBytes,
    )
    const areStartsThere = !file.ahead(entries, 2 * startBytes)
    const placeOf = (entry: number): number => {
      if (entry + startBytes > footer.groups) return footer.starts
      const at = file.at(entry, entry + startBytes)
      return file.bytes.readUIntLE(at, startBytes)
    }
    const places = entries.map(placeOf)
    if (!file.ahead(places, 1) && areStartsThere) return
    file.aheadTo(
      places,
      entries.map((entry) => placeOf(entry + startBytes)),
    )
    this.#wantWords(rows)
  }

  /** Begins to read the words of these rows at once. */
  #wantWords(rows: Iterable<number>): void {
    // What is only wanted early must not hide what can be read.
    if (this.words.skipsDamage) return
    const words = new Set<number>()
    for (const row of rows) this.#words(row, words)
    this.words.ahead([...words])
  }

  /** The numbers of the words of a row. */
  #words(row: number, into: Set<number>): void {
    this.#loadWords(row)
    const { flags, read } = this
    const forms = this.#forms
    const add = (code: number): void => void into.add(this.numberOf(code))
    const fields = 1 + ((flags & rowFlag.recipient) === 0 ? 0 : 1) + ((flags & rowFlag.place) === 0 ? 0 : 1)
    for (let left = fields; left > 0; left -= 1) {
      const code = read.uint()
      if (code === 0) read.block()
      else if (this.#fields.get(code) === undefined) add(code - 1)
    }
    for (let left = read.uint(); left > 0; left -= 1) {
      const code = read.uint()
      const form = forms[code - 1]
      if (form !== undefined) readShaped(read, form.shape)
      else if (code === 0) {
        read.block()
        readShaped(read, readShape(read))
      } else if (this.#tags.get(code) === undefined) add(code - 1 - forms.length)
    }
  }

  /** The row, whole, or without its tags; byte fields are its own. */
  row(row: number, takesTags = true): SegmentRow {
    this.#loadWords(row)
    if (this.#newRow === row && takesTags) {
      this.#wantWords([row])
      this.load(row)
      this.#newRow = -1
    }
    const { flags, read } = this
    // One copy, of which all fields are views.
    const own = Buffer.allocUnsafe(this.end - this.idAt)
    this.bytes.copy(own, 0, this.idAt, this.end)
    read.reset(own, read.at - this.idAt)
    const id = own.subarray(0, 32)
    const { height, place, seenSeconds } = this.groups.of(row)
    const owner = this.#field()
    const recipient = (flags & rowFlag.recipient) === 0 ? none : this.#field()
    const parent = (flags & rowFlag.place) === 0 ? none : this.#field()
    const tags: Tag[] = []
    for (let left = read.uint(); left > 0; left -= 1) {
      if (takesTags) tags.push(this.#tag())
      else this.#passTag()
    }
    const facts = readFacts(read, flags, parent)
    return {
      height,
      index: Math.floor(place / 2),
      isItem: place % 2 === 1,
      id,
      seenSeconds: seenSeconds + this.seenDifference,
      size: facts.size,
      owner,
      recipient,
      anchor: facts.anchor,
      tags,
      signatureType: facts.signatureType,
      signature: facts.signature,
      place: facts.place,
      transfer: facts.transfer,
      isUnjudged: (flags & rowFlag.unjudged) !== 0,
    }
  }

  /**
   * The key of the word without a number that the row has and that begins with these bytes; undefined where it has none. Bytes of
   * its own.
   */
  keyStarting(row: number, start: Uint8Array): Buffer | undefined {
    this.#loadWords(row)
    const { flags, read } = this
    const forms = this.#forms
    const fields = [
      wordField.owner,
      ...((flags & rowFlag.recipient) === 0 ? [] : [wordField.recipient]),
      ...((flags & rowFlag.place) === 0 ? [] : [wordField.parent]),
    ]
    this.foundAt = -1
    for (const of of fields) {
      this.foundAt += 1
      if (read.uint() !== 0) continue
      const bytes = read.block()
      if (start[0] === of && beginsWith(bytes, start.subarray(1))) return fieldKey(of, bytes)
    }
    if (start[0] !== wordField.tag) return undefined
    for (let left = read.uint(); left > 0; left -= 1) {
      this.foundAt += 1
      const code = read.uint()
      if (code > forms.length) continue
      const name = code === 0 ? read.block() : (forms[code - 1] as Form).name
      const shape = code === 0 ? readShape(read) : (forms[code - 1] as Form).shape
      const key = tagKey(name, readShaped(read, shape))
      if (beginsWith(key, start)) return key
    }
    return undefined
  }
}

function readShape(read: VarReader): ValueShape {
  const shape = read.u8()
  if (shape > shapeMax) throw new RangeError(`no shape of a value has the number ${shape}`)
  return shape as ValueShape
}

function beginsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return bytes.length >= start.length && compareBytes(bytes, 0, start.length, start, 0, start.length) === 0
}
