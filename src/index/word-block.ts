import type { CheckedFile } from './checked-file.js'
import { besideMax, type RowList } from './row-list.js'
import { readHex, readLetters } from './shapes.js'
import { blockWords, kind, lengthEscape, sharedEscape, wordForm } from './word-block-writer.js'
import { valueStart, withDashes } from './word-key.js'

const noRows: readonly number[] = []

/** One block of words, read whole. */
export class WordBlock {
  count = 0
  /** How many of its words have a number. */
  coded = 0
  /** The texts, one behind the other: word `at` from `starts[at]` to `starts[at + 1]`. */
  texts: Buffer = Buffer.allocUnsafeSlow(16 * 1024)
  readonly starts: Int32Array = new Int32Array(blockWords + 1)
  readonly rowCounts: Float64Array = new Float64Array(blockWords)
  /** Position of its list in the file; -1: the rows are beside it. */
  readonly places: Float64Array = new Float64Array(blockWords)
  readonly rows: Uint32Array = new Uint32Array(blockWords * besideMax)
  readonly #kinds = new Uint8Array(blockWords)
  #bare: Buffer = Buffer.allocUnsafeSlow(16 * 1024)
  readonly #bareStarts = new Int32Array(blockWords + 1)
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #position = 0

  constructor(private readonly rowBytes: number) {}

  /** All of the word stands here; else it begins with the text, and no other word of the segment does. */
  isWhole(word: number): boolean {
    return ((this.#kinds[word] as number) & kind.whole) !== 0
  }

  /** Rows name it by a number. */
  isCoded(word: number): boolean {
    return ((this.#kinds[word] as number) & kind.coded) !== 0
  }

  list(word: number): RowList {
    const place = this.places[word] as number
    const count = this.rowCounts[word] as number
    const first = word * besideMax
    return { place, count, rows: place < 0 ? [...this.rows.subarray(first, first + count)] : noRows }
  }

  /**
   * Reads the block that begins at `position` of the file, in the section up to `end`: no more than so many words of it, and none
   * behind the `codedMax`th that has a number.
   */
  load(
    file: CheckedFile,
    position: number,
    end: number,
    words: number = blockWords,
    codedMax: number = blockWords,
  ): void {
    const lengthMax = Math.min(position + 5, end)
    this.#at = file.at(position, lengthMax)
    this.#bytes = file.bytes
    const before = this.#at
    const size = this.#uint()
    const start = position + this.#at - before
    this.#at = file.at(start, start + size)
    this.#bytes = file.bytes
    this.#position = position
    const wordsMax = Math.min(this.#u8(), words)
    const form = this.#u8()
    const all = this.#uint()
    this.#room(2 * all + 256)
    const bare = this.#bare
    for (let byte = 0; byte < all; byte += 1) bare[byte] = this.#bytes[this.#at + byte] as number
    this.#at += all
    this.coded = 0
    let [used, count] = [0, 0]
    for (; count < wordsMax && this.coded < codedMax; count += 1) {
      used = this.#word(count, used, all, form)
      if (this.isCoded(count)) this.coded += 1
    }
    this.count = count
    if (form === wordForm.uuid) this.#putDashes(all)
    else {
      const { texts } = this
      this.texts = this.#bare
      this.#bare = texts.length < this.texts.length ? Buffer.allocUnsafeSlow(this.texts.length) : texts
      this.starts.set(this.#bareStarts)
    }
  }

  /** One word behind `used` bytes of texts. */
  #word(word: number, used: number, all: number, form: number): number {
    const head = this.#u8()
    let shared = (head >> 1) & 7
    if (shared === sharedEscape) shared += this.#uint()
    let length = head >> 4
    if (length === lengthEscape) length += this.#uint()
    const common = all + shared
    this.#room(used + common + length + 8)
    const bare = this.#bare
    const from = word === 0 ? 0 : (this.#bareStarts[word - 1] as number)
    // Few bytes are copied faster one by one.
    if (word > 0) for (let byte = 0; byte < common; byte += 1) bare[used + byte] = bare[from + byte] as number
    const to = used + common
    const bytes = this.#bytes
    const at = this.#at
    if (form === wordForm.plain) {
      for (let byte = 0; byte < length; byte += 1) bare[to + byte] = bytes[at + byte] as number
      this.#at += length
    } else if (form === wordForm.letters) {
      readLetters(bytes, at, length, bare, to)
      this.#at += Math.ceil((length * 6) / 8)
    } else {
      readHex(bytes, at, length, bare, to)
      this.#at += (length + 1) >> 1
    }
    this.#bareStarts[word] = used
    this.#bareStarts[word + 1] = to + length
    this.#payload(word, (head & 1) === 1)
    return to + length
  }

  #payload(word: number, isSimple: boolean): void {
    const first = word * besideMax
    this.places[word] = -1
    if (isSimple) {
      let row = 0
      for (let byte = 0; byte < this.rowBytes; byte += 1) row |= this.#u8() << (8 * byte)
      this.rows[first] = row
      this.rowCounts[word] = 1
      this.#kinds[word] = 0
      return
    }
    const bits = this.#u8()
    this.#kinds[word] = bits
    const beside = (bits >> 1) & 7
    let row = 0
    for (let at = 0; at < beside; at += 1) {
      row += this.#uint()
      this.rows[first + at] = row
    }
    this.rowCounts[word] = beside > 0 ? beside : this.#uint()
    if (beside === 0) this.places[word] = this.#position - this.#uint()
  }

  #putDashes(all: number): void {
    const { count } = this
    const used = this.#bareStarts[count] as number
    if (this.texts.length < used + 4 * count) this.texts = Buffer.allocUnsafeSlow(2 * (used + 4 * count))
    const first = this.#bareStarts[1] as number
    const value = valueStart(this.#bare, 0, Math.min(all, first))
    let end = 0
    for (let word = 0; word < count; word += 1) {
      const [from, to] = [this.#bareStarts[word] as number, this.#bareStarts[word + 1] as number]
      this.starts[word] = end
      end = withDashes(this.#bare, from, to, from + value, this.texts, end)
      this.starts[word + 1] = end
    }
  }

  #room(size: number): void {
    if (size <= this.#bare.length) return
    const larger = Buffer.allocUnsafeSlow(2 * size)
    this.#bare.copy(larger)
    this.#bare = larger
  }

  #u8(): number {
    const byte = this.#bytes[this.#at]
    if (byte === undefined) throw new RangeError('a block of words ends early')
    this.#at += 1
    return byte
  }

  #uint(): number {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.#u8()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }
}
