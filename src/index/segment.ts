import { CheckedFile, DamagedSegment, type OpenMapped, unlessDamaged } from './checked-file.js'
import { type Footer, readFooter, sections } from './footer.js'
import { decodeForms, type Form } from './forms.js'
import { type Group, GroupTable } from './groups.js'
import { IdTable } from './id-table.js'
import { type RowList, RowListReader } from './row-list.js'
import { RowReader } from './row-reader.js'
import { rowBytesOf } from './segment-draft.js'
import { compareIds, type SegmentRow } from './segment-row.js'
import { tagKey, valueStart } from './word-key.js'
import { WordTable } from './word-table.js'

/** Bytes of the key of a row: height u32, place in the block u24, the first nine bytes of the id; big-endian. */
const keyBytes = 16
const keyIdBytes = 9
/** Looks for an address where it should lie; of some 50,000 the first ends within about a hundred of it, the next within ten. */
const aimedLooks = 4

/**
 * A segment of the index: rows in the order of the chain, which never change, and what finds them. Any thread reads it by itself,
 * from mapped memory. Its rows are numbered from 0 on. All that reads throws a DamagedSegment where bytes are not those that were
 * written.
 */
export class Segment {
  readonly ids: IdTable
  readonly groups: GroupTable
  readonly words: WordTable
  readonly rows: RowReader

  private constructor(
    readonly file: CheckedFile,
    readonly footer: Footer,
    /** Undefined: they cannot be read, and no row without them. */
    private readonly knownForms: readonly Form[] | undefined,
    /** The page of a damaged copy of the footer, if there is one. */
    private readonly damagedEnd: number | undefined,
  ) {
    this.ids = new IdTable(file, footer)
    this.groups = new GroupTable(file, footer)
    this.words = new WordTable(file, footer, rowBytesOf(footer.rowCount))
    this.rows = new RowReader(file, footer, this.groups, this.words, knownForms)
  }

  /** Undefined where there is no such file. Throws a DamagedSegment, and an Error on a segment of another version. */
  static open(path: string, openFile?: OpenMapped): Segment | undefined {
    const file = CheckedFile.open(path, openFile)
    if (file === undefined) return undefined
    try {
      const { footer, damagedEnd } = readFooter(file)
      file.search([
        ...(footer.tops < footer.end ? [] : [[footer.wordBlocks, footer.rows] as const]),
        [footer.groups, footer.ids],
        [footer.forms, footer.keys],
        [footer.tops, footer.end],
      ])
      const forms = unlessDamaged(() => formsIn(file, footer))
      return new Segment(file, footer, forms, damagedEnd)
    } catch (error) {
      file.close()
      throw error
    }
  }

  get count(): number {
    return this.footer.rowCount
  }

  /** Names and shapes of values that stand in rows. */
  get forms(): readonly Form[] {
    return this.knownForms ?? formsIn(this.file, this.footer)
  }

  /** Bytes of each section, and of the checksums. */
  sizes(): Readonly<Record<string, number>> {
    const ends = [...sections.slice(1).map((name) => this.footer[name]), this.footer.end]
    const each = sections.map((name, at): [string, number] => [
      name,
      (ends[at] as number) - this.footer[name],
    ])
    return Object.fromEntries([...each, ['checksums', this.file.sizeBytes - this.footer.end]])
  }

  /** The row with this number, whole. */
  row(row: number, takesTags = true): SegmentRow {
    return this.rows.row(row, takesTags)
  }

  /** Whether where a row begins was not read before. */
  isNew(row: number): boolean {
    return this.rows.isNew(row)
  }

  /**
   * Begins to read all that these rows need, so that it reads at once what it would read one by one. Never throws a
   * DamagedSegment: perhaps nobody reads the row.
   */
  ahead(rows: Uint32Array): void {
    unlessDamaged(() => this.rows.ahead(rows))
  }

  /** The number of the row with this id (32 bytes); -1 where there is none. */
  find(id: Uint8Array): number {
    return this.footer.rowCount === 0 ? -1 : this.ids.find(id, (row) => this.compareId(row, id))
  }

  /** Below zero where the id of a row comes before this one. */
  compareId(row: number, id: Uint8Array): number {
    this.rows.load(row)
    return compareIds(this.rows.bytes, this.rows.idAt, id, 0)
  }

  /** The id of a row: bytes of its own. */
  idOf(row: number): Buffer {
    this.rows.load(row)
    return Buffer.from(this.rows.bytes.subarray(this.rows.idAt, this.rows.idAt + 32))
  }

  /** The key of a row: its place in the chain. */
  keyOf(row: number): Buffer {
    const { height, place } = this.groups.of(row)
    this.rows.load(row)
    const key = Buffer.allocUnsafe(keyBytes)
    key.writeUInt32BE(height, 0)
    key.writeUIntBE(place, 4, 3)
    this.rows.bytes.copy(key, keyBytes - keyIdBytes, this.rows.idAt, this.rows.idAt + keyIdBytes)
    return key
  }

  /** The first row at or behind this key; `count` where all are before it. */
  lowerBound(key: Uint8Array): number {
    const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength)
    const [height, place] = [bytes.readUInt32BE(0), bytes.readUIntBE(4, 3)]
    const number = this.groups.lowerBound(height, place)
    if (number === this.groups.count) return this.count
    const group = this.groups.group(number)
    return group.height === height && group.place === place ? this.#within(group, bytes) : group.first
  }

  #within(group: Group, key: Buffer): number {
    let [low, high] = [group.first, group.end]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (Buffer.compare(this.keyOf(middle), key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Rows of the word with this key (word-key.ts); undefined where there is none. */
  list(key: Uint8Array): RowList | undefined {
    const found = this.words.find(key)
    if (found === undefined) return undefined
    if (!found.mayBe) return found.list
    const row = firstOf(found.list, this)
    this.ahead(Uint32Array.of(row))
    return this.rows.keyStarting(row, key)?.length === key.length ? found.list : undefined
  }

  reader(list: RowList): RowListReader {
    return new RowListReader(this.file, list, this.footer.wordBlocks)
  }

  /**
   * Rows of all tags of this name whose value begins with `start`: value (bytes of its own) and rows of each, in the order of the
   * values, until `look` says that it has seen enough.
   */
  tags(name: Uint8Array, start: Uint8Array, look: (value: Buffer, list: RowList) => boolean): void {
    const wanted = tagKey(name, start)
    const before = this.words.floor(wanted)
    this.words.scan(before ?? { block: 0, word: 0 }, (words, word) => {
      const [from, to] = [words.starts[word] as number, words.starts[word + 1] as number]
      const size = Math.min(to - from, wanted.length)
      const order = Buffer.compare(words.texts.subarray(from, from + size), wanted.subarray(0, size))
      if (order > 0) return false
      if (order < 0) return true
      const isWhole = words.isWhole(word)
      if (isWhole && to - from < wanted.length) return true
      const list = words.list(word)
      const text = words.texts.subarray(from, to)
      const key = isWhole ? Buffer.from(text) : this.rows.keyStarting(firstOf(list, this), text)
      if (key === undefined)
        throw new DamagedSegment(this.file.path, 0, 'has a word that its row does not have')
      if (key.length < wanted.length || !key.subarray(0, wanted.length).equals(wanted)) return true
      return look(key.subarray(valueStart(key, 0, key.length)), list)
    })
  }

  /**
   * The public key with this address (32 bytes), if it is here: a copy. Addresses are hashes and so evenly spread: the first
   * looks go where it should lie. Where somebody has chosen them otherwise, halving ends the search.
   */
  ownerKey(address: Uint8Array): Buffer | undefined {
    const { file, footer } = this
    const wanted = startOf(address, 0)
    let [low, high, least, most] = [0, footer.keyCount, 0, 2 ** 32]
    for (let look = 0; low < high; look += 1) {
      const part = look < aimedLooks ? (wanted + 0.5 - least) / (most - least) : 0.5
      const middle = low + Math.floor((high - low) * part)
      const start = this.#keyStart(middle)
      const at = file.at(start, start + 32)
      const order = compareIds(file.bytes, at, address, 0)
      if (order === 0) return this.ownerKeyAt(middle).key
      if (order < 0) [low, least] = [middle + 1, startOf(file.bytes, at)]
      else [high, most] = [middle, startOf(file.bytes, at) + 1]
    }
    return undefined
  }

  /** The public keys by their addresses, in the order of these: copies. */
  ownerKeyAt(number: number): { readonly address: Buffer; readonly key: Buffer } {
    const { file, footer } = this
    const start = this.#keyStart(number)
    const at = file.at(start, Math.min(start + 37, footer.keyStarts))
    const address = Buffer.from(file.bytes.subarray(at, at + 32))
    let [next, size] = [at + 32, 0]
    for (let scale = 1; ; scale *= 0x80) {
      const byte = file.bytes[next] as number
      next += 1
      size += (byte & 0x7f) * scale
      if (byte < 0x80) break
    }
    const from = start + next - at
    const keyAt = file.at(from, from + size)
    return { address, key: Buffer.from(file.bytes.subarray(keyAt, keyAt + size)) }
  }

  /** Where the address and the key with this number are. */
  #keyStart(number: number): number {
    const entry = this.footer.keyStarts + number * 5
    const at = this.file.at(entry, entry + 5)
    return this.footer.keys + this.file.bytes.readUIntLE(at, 5)
  }

  /** Compares pages from `from` to before `to` with their checksums: the damaged ones. The last one may be of a footer. */
  *damaged(from = 0, to: number = Number.MAX_SAFE_INTEGER): Generator<number> {
    const { file, damagedEnd } = this
    for (let page = from; page < Math.min(to, file.pages); page += 1) if (!file.isSound(page)) yield page
    if (to >= file.pages && damagedEnd !== undefined) yield damagedEnd
  }

  close(): void {
    this.file.close()
  }
}

function formsIn(file: CheckedFile, { forms, shortCodes, formCount }: Footer): readonly Form[] {
  const at = formCount === 0 ? 0 : file.at(forms, shortCodes)
  return decodeForms(file.bytes.subarray(at, at + shortCodes - forms), formCount)
}

/** The first four bytes of an address. */
function startOf(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) * 2 ** 24 +
    ((bytes[at + 1] as number) << 16) +
    ((bytes[at + 2] as number) << 8) +
    (bytes[at + 3] as number)
  )
}

function firstOf(list: RowList, segment: Segment): number {
  if (list.place < 0) return list.rows[0] as number
  const reader = segment.reader(list)
  reader.load(0)
  return reader.rows[0] as number
}
