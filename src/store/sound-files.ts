import type { FileState } from './file-stamp.js'

/**
 * Numbers of a place: 64 bits of the digest, the size, the stamp, and one that is not used, so that no place lies in two cache
 * lines.
 */
const placeNumbers = 8
/** A digest has its choice among so many places. */
const choices = 8
/** Files that the table has room for: at 32 bytes each 64 MiB of addresses, of which only what is used takes memory. */
const usualPlaces = 2 ** 21

/** Bytes of memory for `places` files, a power of two of 8 or more. */
export function soundBytes(places = usualPlaces): number {
  return places * placeNumbers * 4
}

/**
 * The files that this process hashed and found to match their names, for all threads. So each file is hashed once, and no message
 * is needed. Any thread writes. An evicted entry is hashed again at its next reader.
 *
 * Two threads that write the same cell at once may mix two entries. A mixture matches no other file, because all seven numbers
 * must be equal, and they come from checked files.
 */
export class SoundFiles {
  readonly #numbers: Int32Array
  readonly #mask: number
  /** Which of its places a digest pushes out next. */
  #turn = 0

  /** `memory` is the same on every thread. */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(soundBytes(2 ** 12))) {
    this.#numbers = new Int32Array(memory)
    const sets = this.#numbers.length / placeNumbers / choices
    if (!Number.isInteger(Math.log2(sets))) throw new RangeError('a table of sound files of no usual size')
    this.#mask = sets - 1
  }

  /** Was the file with this stamp and size hashed, and was `digest` its SHA-256? */
  has(digest: Uint8Array, sizeBytes: number, stamp: FileState): boolean {
    const one = word(digest, 0)
    const two = word(digest, 4)
    const numbers = this.#numbers
    const start = (word(digest, 8) & this.#mask) * choices * placeNumbers
    for (let at = start; at < start + choices * placeNumbers; at += placeNumbers) {
      if (
        numbers[at] === one &&
        numbers[at + 1] === two &&
        numbers[at + 2] === (sizeBytes | 0) &&
        numbers[at + 3] === stamp.inodeLow &&
        numbers[at + 4] === stamp.inodeHigh &&
        numbers[at + 5] === stamp.modifiedLow &&
        numbers[at + 6] === stamp.modifiedHigh
      )
        return true
    }
    return false
  }

  /** The file with this stamp and size was hashed, and `digest` is its SHA-256. */
  add(digest: Uint8Array, sizeBytes: number, stamp: FileState): void {
    const one = word(digest, 0)
    const two = word(digest, 4)
    const numbers = this.#numbers
    const start = (word(digest, 8) & this.#mask) * choices * placeNumbers
    let place = -1
    for (let choice = 0; choice < choices; choice += 1) {
      const at = start + choice * placeNumbers
      const isOwn = numbers[at] === one && numbers[at + 1] === two
      // Another file of the same digest takes the place of the one before.
      if (isOwn) place = at
      else if (place < 0 && isFree(numbers, at)) place = at
      if (isOwn) break
    }
    if (place < 0) {
      place = start + this.#turn * placeNumbers
      this.#turn = (this.#turn + 1) % choices
    }
    numbers[place] = one
    numbers[place + 1] = two
    numbers[place + 2] = sizeBytes | 0
    numbers[place + 3] = stamp.inodeLow
    numbers[place + 4] = stamp.inodeHigh
    numbers[place + 5] = stamp.modifiedLow
    numbers[place + 6] = stamp.modifiedHigh
  }
}

/** No file has an inode of 0. */
function isFree(numbers: Int32Array, at: number): boolean {
  return numbers[at + 3] === 0 && numbers[at + 4] === 0
}

function word(digest: Uint8Array, at: number): number {
  return digest[at]! | (digest[at + 1]! << 8) | (digest[at + 2]! << 16) | (digest[at + 3]! << 24)
}
