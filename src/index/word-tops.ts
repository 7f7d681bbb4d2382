import type { CheckedFile } from './checked-file.js'
import type { Footer } from './footer.js'
import type { SectionSpool } from './segment-output.js'
import { compareBytes } from './word-key.js'

/**
 * For each 64th block of words what a search compares, close together, so that it reads few pages:
 *
 *     words with numbers in front of the block u32 (little-endian), length of the text u8, the first 35 bytes of the text of its
 *     first word, zeros
 */
export const blocksPerTop = 64
const topBytes = 40
const textAt = 5
const textMax = topBytes - textAt

/** Writes the top of a block: the text of its first word, and how many words with numbers are in front of it. */
export function writeTop(out: SectionSpool, codedBefore: number, text: Uint8Array): void {
  const top = Buffer.alloc(topBytes)
  const length = Math.min(text.length, textMax)
  top.writeUInt32LE(codedBefore, 0)
  top[4] = length
  top.set(text.subarray(0, length), textAt)
  out.bytes(top)
}

/** The tops of a segment. Older segments have none. */
export class WordTops {
  readonly #count: number

  constructor(
    private readonly file: CheckedFile,
    private readonly footer: Footer,
  ) {
    this.#count = Math.floor((footer.end - footer.tops) / topBytes)
  }

  /**
   * The number of blocks whose first word does not come behind `key` lies between these two (inclusive). A text that is cut
   * off may be the same as what the key begins with: then the blocks have to say.
   */
  around(key: Uint8Array): [low: number, high: number] {
    const before = this.#first(0, (top) => this.#compare(top, key) >= 0)
    const behind = this.#first(before, (top) => this.#compare(top, key) > 0)
    return [
      before === 0 ? 0 : (before - 1) * blocksPerTop + 1,
      behind === this.#count ? this.footer.wordBlockCount : behind * blocksPerTop,
    ]
  }

  /** The last block with no more words with numbers in front of it than this lies between these two (inclusive). */
  aroundNumber(number: number): [low: number, high: number] {
    const behind = this.#first(0, (top) => {
      const at = this.#at(top)
      return this.file.bytes.readUInt32LE(at) > number
    })
    return [
      Math.max(0, behind - 1) * blocksPerTop,
      (behind === this.#count ? this.footer.wordBlockCount : behind * blocksPerTop) - 1,
    ]
  }

  /** The first top from `from` on that is so; all behind it are. */
  #first(from: number, isSo: (top: number) => boolean): number {
    // Mostly it is the first one, where that was found by another search.
    if (from > 0 && from < this.#count && isSo(from)) return from
    let [low, high] = [from, this.#count]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isSo(middle)) high = middle
      else low = middle + 1
    }
    return low
  }

  #at(top: number): number {
    const start = this.footer.tops + top * topBytes
    return this.file.at(start, start + topBytes)
  }

  /** Compares as much of the first word of a block as a top has with as much of a key. */
  #compare(top: number, key: Uint8Array): number {
    const at = this.#at(top)
    const { bytes } = this.file
    const end = at + textAt + (bytes[at + 4] as number)
    return compareBytes(bytes, at + textAt, end, key, 0, Math.min(key.length, textMax))
  }
}
