import { join } from 'node:path'
import { mappedBy, openMapped } from '../../native/mapped/mapped.js'
import type { MappedFile } from '../../native/mapped/mapped-file.js'

/**
 * Sorted runs: files of records of one size, sorted, never changed once they are there. What grows in random order (ids,
 * hashes) is far cheaper to keep so than in a B-tree, where every new entry changes another page. A record is some 32-bit
 * numbers; all of them together are its order. Which files count is recorded in LMDB (`RunList`), so that a new file and what it
 * holds become true in one transaction.
 *
 * A file holds only what was true once: whoever reads looks up in LMDB whether it still is.
 */
export interface RunShape {
  /** The start of the files' names. */
  readonly name: string
  /** 32-bit numbers of a record; a power of two, so that windows of a file begin with a record. */
  readonly width: number
  /** Records are found by their first two numbers, which are spread evenly. */
  readonly isHashed: boolean
}

/** The files that count, the oldest first. */
export interface RunList {
  /** Number that the next file gets. */
  readonly next: number
  /** Number of a file, and how many records it has. */
  readonly files: readonly (readonly [number: number, records: number])[]
}

export const noRuns: RunList = { next: 1, files: [] }

/** The list as it stands in LMDB. */
export function encodeRunList(list: RunList): Buffer {
  return Buffer.from(JSON.stringify(list))
}

/** Reads a list of runs (JSON); an empty one where there is none. */
export function decodeRunList(bytes: Uint8Array | undefined): RunList {
  return bytes === undefined ? noRuns : (JSON.parse(Buffer.from(bytes).toString()) as RunList)
}

/** The file with this number in the folder of runs. */
export function runPath(folder: string, shape: RunShape, number: number): string {
  return join(folder, `${shape.name}-${number}`)
}

/** What the addon maps at once, and what its fallback reads at once. */
const windowBytes = mappedBy === 'addon' ? 2 ** 30 : 2 ** 14

/** One file, as this thread sees it. */
export class RunFile {
  readonly count: number
  /** The window that was looked at last: records `from` to `to` (exclusive). */
  words: Uint32Array = new Uint32Array(0)
  #from = 0
  #to = 0
  readonly #windowRecords: number
  readonly #windows: Uint32Array[] = []

  constructor(
    private readonly file: MappedFile,
    readonly width: number,
  ) {
    this.count = file.sizeBytes / (width * 4)
    this.#windowRecords = windowBytes / (width * 4)
  }

  /** Position in `words` of the first number of a record. `words` is valid until the next call. */
  at(record: number): number {
    if (record < this.#from || record >= this.#to) this.#load(Math.floor(record / this.#windowRecords))
    return (record - this.#from) * this.width
  }

  #load(index: number): void {
    this.#from = index * this.#windowRecords
    this.#to = Math.min(this.#from + this.#windowRecords, this.count)
    const start = index * windowBytes
    const known = this.#windows[index]
    if (known !== undefined) {
      this.words = known
      return
    }
    const view = this.file.view(start, Math.min(start + windowBytes, this.file.sizeBytes))
    if (mappedBy === 'addon') {
      this.words = new Uint32Array(view.buffer, view.byteOffset, view.length / 4)
      this.#windows[index] = this.words
    } else this.words = new Uint32Array(Uint8Array.prototype.slice.call(view).buffer)
  }

  close(): void {
    this.words = new Uint32Array(0)
    this.#windows.length = 0
    this.file.close()
  }

  /** The first record at or behind `key`, which has as many numbers as are compared. */
  lowerBound(key: ArrayLike<number>): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const at = this.at(middle)
      if (isBelow(this.words, at, key)) low = middle + 1
      else high = middle
    }
    return low
  }

  /**
   * The first record whose first number is at least `first`, found quickly where first numbers are spread evenly: guesses
   * where it is, and brackets it.
   */
  guess(first: number): number {
    let low = 0
    let high = this.count
    let lowFirst = 0
    let highFirst = 2 ** 32
    while (high - low > 8) {
      const share = highFirst > lowFirst ? (first - lowFirst) / (highFirst - lowFirst) : 0
      const at = Math.min(Math.max(low + Math.floor((high - low) * share), low), high - 1)
      const margin = 2 * Math.ceil(Math.sqrt(high - low))
      const value = this.#first(at)
      if (value < first) {
        low = at + 1
        lowFirst = value
        const behind = Math.min(at + margin, high - 1)
        const found = this.#first(behind)
        if (found >= first) {
          high = behind
          highFirst = found
        } else {
          low = behind + 1
          lowFirst = found
        }
      } else {
        high = at
        highFirst = value
        const before = Math.max(at - margin, low)
        const found = before < at ? this.#first(before) : first
        if (found < first) {
          low = before + 1
          lowFirst = found
        } else {
          high = before
          highFirst = found
        }
      }
    }
    while (low < high && this.#first(low) < first) low += 1
    return low
  }

  #first(record: number): number {
    const at = this.at(record)
    return this.words[at] as number
  }
}

function isBelow(words: Uint32Array, at: number, key: ArrayLike<number>): boolean {
  for (let word = 0; word < key.length; word += 1) {
    const difference = (words[at + word] as number) - (key[word] as number)
    if (difference !== 0) return difference < 0
  }
  return false
}

/** Looks at a record, `words` from `at` on. True: that was it, look no further. */
export type Look = (words: Uint32Array, at: number) => boolean

/** The runs of one kind, as one thread reads them. */
export class Runs {
  #files = new Map<number, RunFile>()
  #list: Uint8Array | undefined
  #isKnown = false
  /** Nobody else changes the list. */
  isOwn = false

  /** `list` reads the list in LMDB: a view. */
  constructor(
    readonly folder: string,
    readonly shape: RunShape,
    private readonly list: () => Uint8Array | undefined,
  ) {}

  /** A commit may have changed the list: it is read again before the next look. */
  refresh(): void {
    this.#isKnown = false
  }

  /** Looks at every record that begins with these two numbers, until one was it; not in the files of `without`, by number. */
  find(first: number, second: number, look: Look, without?: ReadonlySet<number>): boolean {
    if (!this.#isKnown) this.#follow()
    if (this.#search(first, second, look, without)) return true
    // Another process may have committed since; where the list is the same, it is not there.
    return !this.isOwn && this.#follow() && this.#search(first, second, look, without)
  }

  /** Looks at the records from `start` on, in order within each file, until `look` says that a file has no more. */
  scan(start: ArrayLike<number>, look: Look): void {
    this.#follow()
    for (const file of this.#files.values()) {
      for (let record = file.lowerBound(start); record < file.count; record += 1) {
        const at = file.at(record)
        if (look(file.words, at)) break
      }
    }
  }

  /** All files, for the writer and for checks: valid until the list changes. */
  files(): ReadonlyMap<number, RunFile> {
    this.#follow()
    return this.#files
  }

  /** Bytes of all files. */
  bytes(): number {
    return (
      decodeRunList(this.list()).files.reduce((sum, [, records]) => sum + records, 0) * this.shape.width * 4
    )
  }

  close(): void {
    for (const file of this.#files.values()) file.close()
    this.#files.clear()
    this.#list = undefined
    this.#isKnown = false
  }

  #search(first: number, second: number, look: Look, without?: ReadonlySet<number>): boolean {
    for (const [number, file] of this.#files) {
      if (without?.has(number) === true) continue
      for (let record = file.guess(first); record < file.count; record += 1) {
        const at = file.at(record)
        if (file.words[at] !== first) break
        if (file.words[at + 1] === second && look(file.words, at)) return true
      }
    }
    return false
  }

  /** Opens what the list names and lets go of the rest; true where the list was another. */
  #follow(): boolean {
    const found = this.list()
    this.#isKnown = true
    if (sameBytes(found, this.#list)) return false
    const list = found === undefined ? undefined : Buffer.from(found)
    const files = new Map<number, RunFile>()
    try {
      // The newest first: what is requested is most often new.
      for (const [number, records] of [...decodeRunList(list).files].reverse()) {
        files.set(number, this.#files.get(number) ?? this.#open(number, records))
      }
    } catch (error) {
      // The list is not taken over without its files: whoever asks next tries again, and nothing is called absent meanwhile.
      for (const [number, file] of files) if (!this.#files.has(number)) file.close()
      this.#isKnown = false
      throw error
    }
    for (const [number, file] of this.#files) if (!files.has(number)) file.close()
    this.#list = list
    this.#files = files
    return true
  }

  #open(number: number, records: number): RunFile {
    const path = runPath(this.folder, this.shape, number)
    const file = openMapped(path)
    if (file === undefined) throw new Error(`${path} is missing`)
    if (file.sizeBytes !== records * this.shape.width * 4) throw new Error(`${path} has the wrong size`)
    return new RunFile(file, this.shape.width)
  }
}

function sameBytes(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one === undefined || other === undefined ? one === other : Buffer.compare(one, other) === 0
}
