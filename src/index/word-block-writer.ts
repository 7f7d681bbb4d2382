import type { VarWriter } from '../format/varbytes.js'
import { besideMax } from './row-list.js'
import { areHex, areLetters, writeHex, writeLetters } from './shapes.js'
import { sharedBytes, valueStart, withoutDashes } from './word-key.js'

/** Words of a block. */
export const blockWords = 16

/** How the texts of a block stand behind what all share: as they are, as hexadecimal digits, as UUIDs, as letters. */
export const wordForm = { plain: 0, hex: 1, uuid: 2, letters: 3 } as const

/** Bits of a word that is not one row with a text that is cut. */
export const kind = { whole: 1, coded: 16 } as const

/** A word and its rows. */
export interface WordToWrite {
  readonly text: Uint8Array
  /** Where it begins in `text`. */
  readonly start: number
  /** Rows name it by a number. */
  readonly isCoded: boolean
  readonly count: number
  /** Place of the list of its rows; -1: they are in `rows`, which has room for `besideMax`. */
  readonly place: number
  readonly rows: Uint32Array
}

/** An escape: the number in front does not have enough bits. */
export const sharedEscape = 7
export const lengthEscape = 15

/**
 * One block of words, while it fills:
 *
 *     bytes of what follows (LEB128), words u8, form u8, shared by all (length, bytes), and for each word:
 *     bit 0: one row, its text cut; bits 1 to 3: shared with the word before; bits 4 to 7: length of what follows
 *     (the highest number of either: the rest behind it as LEB128), text, then the row (`rowBytes`); or:
 *     bit 0: whole; bit 4: has a number; bits 1 to 3: rows that follow as LEB128 (each but the first less the one before), or 0:
 *     number of rows and bytes from the place of their list to the block
 */
export class WordBlockWriter {
  count = 0
  #text: Buffer = Buffer.allocUnsafeSlow(16 * 1024)
  #used = 0
  #squeezed: Buffer = Buffer.allocUnsafeSlow(16 * 1024)
  readonly #starts = new Int32Array(blockWords + 1)
  readonly #squeezedStarts = new Int32Array(blockWords + 1)
  readonly #kinds = new Uint8Array(blockWords)
  readonly #counts = new Float64Array(blockWords)
  readonly #places = new Float64Array(blockWords)
  readonly #rows = new Uint32Array(blockWords * besideMax)

  constructor(private readonly rowBytes: number) {}

  /** Adds a word behind all others: the first `size` bytes of its text. */
  add({ text, start, count, place, rows, isCoded }: WordToWrite, isWhole: boolean, size: number): void {
    if (this.#used + size > this.#text.length) {
      const larger = Buffer.allocUnsafeSlow(2 * (this.#used + size))
      this.#text.copy(larger, 0, 0, this.#used)
      this.#text = larger
      this.#squeezed = Buffer.allocUnsafeSlow(larger.length)
    }
    for (let at = 0; at < size; at += 1) this.#text[this.#used + at] = text[start + at] as number
    this.#used += size
    const at = this.count
    this.#kinds[at] = (isWhole ? kind.whole : 0) | (isCoded ? kind.coded : 0)
    this.#counts[at] = count
    this.#places[at] = place
    const beside = count <= besideMax ? count : 0
    for (let row = 0; row < beside; row += 1) this.#rows[at * besideMax + row] = rows[row] as number
    this.count += 1
    this.#starts[this.count] = this.#used
  }

  /** The text of its first word. */
  get first(): Uint8Array {
    return this.#text.subarray(0, this.#starts[1])
  }

  /** Writes the block, which will begin at `position` of the file, and begins the next one. */
  end(out: VarWriter, position: number): void {
    const { form, texts, starts } = this.#formed()
    const last = this.count - 1
    const all =
      last === 0
        ? (starts[1] as number)
        : sharedBytes(
            texts,
            0,
            starts[1] as number,
            texts,
            starts[last] as number,
            starts[last + 1] as number,
          )
    out.u8(this.count)
    out.u8(form)
    out.uint(all)
    out.range(texts, 0, all)
    for (let word = 0; word <= last; word += 1) {
      const [from, to] = [(starts[word] as number) + all, starts[word + 1] as number]
      const before = word === 0 ? from : (starts[word - 1] as number) + all
      const shared = word === 0 ? 0 : sharedBytes(texts, before, from - all, texts, from, to)
      this.#entry(out, word, shared, to - from - shared)
      if (form === wordForm.plain) out.range(texts, from + shared, to)
      else if (form === wordForm.letters) writeLetters(out, texts, from + shared, to)
      else writeHex(out, texts, from + shared, to)
      this.#payload(out, word, position)
    }
    this.count = 0
    this.#used = 0
  }

  #isSimple(word: number): boolean {
    return this.#kinds[word] === 0 && this.#counts[word] === 1
  }

  #entry(out: VarWriter, word: number, shared: number, length: number): void {
    const [few, short] = [Math.min(shared, sharedEscape), Math.min(length, lengthEscape)]
    out.u8((this.#isSimple(word) ? 1 : 0) | (few << 1) | (short << 4))
    if (few === sharedEscape) out.uint(shared - sharedEscape)
    if (short === lengthEscape) out.uint(length - lengthEscape)
  }

  #payload(out: VarWriter, word: number, position: number): void {
    const first = word * besideMax
    if (this.#isSimple(word)) {
      const row = this.#rows[first] as number
      for (let byte = 0; byte < this.rowBytes; byte += 1) out.u8((row >>> (8 * byte)) & 0xff)
      return
    }
    const count = this.#counts[word] as number
    const beside = count <= besideMax ? count : 0
    out.u8((this.#kinds[word] as number) | (beside << 1))
    for (let at = 0; at < beside; at += 1) {
      const before = at === 0 ? 0 : (this.#rows[first + at - 1] as number)
      out.uint((this.#rows[first + at] as number) - before)
    }
    if (beside > 0) return
    out.uint(count)
    out.uint(position - (this.#places[word] as number))
  }

  /** The texts in the form that takes the fewest bytes. */
  #formed(): { form: number; texts: Buffer; starts: Int32Array } {
    const [texts, starts, last] = [this.#text, this.#starts, this.count - 1]
    const first = starts[1] as number
    const from = starts[last] as number
    const all = last === 0 ? first : sharedBytes(texts, 0, first, texts, from, starts[last + 1] as number)
    const plain = { form: wordForm.plain, texts, starts }
    const value = valueStart(texts, 0, first)
    if (this.#each(all, areHex)) return { ...plain, form: wordForm.hex }
    // A last dash may not be cut off from what it tells apart.
    if (all >= value && value < first && this.#squeeze(value)) {
      const squeezed = { form: wordForm.uuid, texts: this.#squeezed, starts: this.#squeezedStarts }
      return squeezed
    }
    return this.#each(all, areLetters) ? { ...plain, form: wordForm.letters } : plain
  }

  #each(all: number, are: (bytes: Uint8Array, from: number, to: number) => boolean): boolean {
    for (let word = 0; word < this.count; word += 1) {
      const start = this.#starts[word] as number
      if (!are(this.#text, start + all, this.#starts[word + 1] as number)) return false
    }
    return true
  }

  /** Leaves out the dashes of UUIDs; false where not all are such texts, or would no longer be in order. */
  #squeeze(value: number): boolean {
    let end = 0
    for (let word = 0; word < this.count; word += 1) {
      const [from, to] = [this.#starts[word] as number, this.#starts[word + 1] as number]
      this.#squeezedStarts[word] = end
      end = withoutDashes(this.#text, from, to, from + value, this.#squeezed, end)
      if (end < 0) return false
      this.#squeezedStarts[word + 1] = end
      if (!areHex(this.#squeezed, (this.#squeezedStarts[word] as number) + value, end)) return false
    }
    return true
  }
}
