import { crc32 } from 'node:zlib'
import { mappedBy, openScattered } from '../../native/mapped/mapped.js'
import { openFallback } from '../../native/mapped/mapped-fallback.js'
import type { MappedFile } from '../../native/mapped/mapped-file.js'

/** Bytes that have one checksum. */
export const pageBytes = 4096
const windowBytes = 2 ** 30
/** So much is read at once of parts that are searched, and where pages are first read one behind the other. */
const togetherBytes = 2 ** 20
/** After so many pages behind each other the next ones are expected, at so many places of a file. */
const runPages = 4
const streamsMax = 8

/** Pages that are read one behind the other: the last one, how many, and where what is wanted of the disk already ends. */
interface Stream {
  last: number
  run: number
  end: number
}

/** Opens a file that is read from memory, or its fallback. */
export type OpenMapped = (path: string) => MappedFile | undefined

/** A page of a segment is not what was written: nothing of it may be believed. */
export class DamagedSegment extends Error {
  override readonly name = 'DamagedSegment'

  constructor(
    readonly path: string,
    /** Number of the page in the file, from 0 on. */
    readonly page: number,
    what = 'does not have its checksum',
  ) {
    super(`${path}: page ${page} ${what}`)
  }
}

/** A part of a file in mapped memory, for who reads single bytes of it often. Valid until the file is closed. */
export interface MappedPart {
  readonly bytes: Uint8Array
  /** Where it begins in `bytes`. */
  readonly at: number
  /** Indexed by page: 1 where it was compared with its checksum. No byte of another page may be believed, or read. */
  readonly sound: Uint8Array
  /** The page that `bytes` begin with. */
  readonly page: number
}

/** What it reads; undefined where a damaged page is needed for it. */
export function unlessDamaged<Found>(read: () => Found): Found | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof DamagedSegment) return undefined
    throw error
  }
}

/**
 * A file that is read from mapped memory, whose pages of 4 KiB have CRC-32s: each page is compared with its own before the first
 * byte of it is believed, once for as long as the file is open. Without the addon, each read copies.
 */
export class CheckedFile {
  /** Pages that were compared with their checksums, again and again included. */
  checks = 0
  /** What `at` speaks of: valid until its next call. */
  bytes: Buffer = Buffer.alloc(0)
  readonly #windows: (Buffer | undefined)[] = []
  readonly #page: Buffer = Buffer.allocUnsafeSlow(pageBytes)
  #sums: Buffer = Buffer.alloc(0)
  #end = 0
  #sound = new Uint8Array(0)
  /** Parts that are searched, as pairs of places. */
  #searched: readonly (readonly [start: number, end: number])[] = []
  /** Places where pages are checked one behind the other, the last ones that were begun. */
  readonly #streams: Stream[] = []
  #begun = 0

  private constructor(
    readonly path: string,
    private readonly file: MappedFile,
    /** The file has no memory that stays. */
    private readonly copies: boolean,
  ) {}

  /** Undefined where there is no such file. Throws on other failures of the disk. */
  static open(path: string, openFile: OpenMapped = openScattered): CheckedFile | undefined {
    const file = openFile(path)
    const copies = mappedBy === 'fallback' || openFile === openFallback
    return file === undefined ? undefined : new CheckedFile(path, file, copies)
  }

  get sizeBytes(): number {
    return this.file.sizeBytes
  }

  /** Bytes that no checksum of a page speaks for, copied; undefined where they cannot be read. */
  unchecked(start: number, end: number): Buffer | undefined {
    if (start < 0 || end < start || end > this.file.sizeBytes) return undefined
    const copy = Buffer.allocUnsafeSlow(end - start)
    this.file.ahead(Float64Array.of(start, end))
    return this.file.copy(start, copy) ? copy : undefined
  }

  /** From here on pages, which end at `end`, are compared with these sums (u32 little-endian each). */
  checkBy(sums: Buffer, end: number): void {
    this.#sums = sums
    this.#end = end
    this.#sound = new Uint8Array(sums.length / 4)
  }

  /** These parts are searched: what lies around a place is wanted soon. */
  search(parts: readonly (readonly [start: number, end: number])[]): void {
    this.#searched = parts
  }

  /**
   * Begins to read all of these places, `bytesEach` from each on, at once, and does not wait: those whose pages were not read
   * before. False where there are none. Where all were read, a look at four of them says whether they are still in memory.
   */
  ahead(places: Float64Array, bytesEach: number): boolean {
    return this.aheadTo(
      places,
      places.map((place) => place + bytesEach),
    )
  }

  /** The same, each place up to an end of its own (exclusive). */
  aheadTo(places: Float64Array, ends: Float64Array): boolean {
    const { length } = places
    let count = 0
    const ranges = new Float64Array(2 * length)
    const add = (at: number): void => {
      ranges[2 * count] = places[at] as number
      ranges[2 * count + 1] = ends[at] as number
      count += 1
    }
    for (let at = 0; at < length; at += 1) {
      if (!(this.isKnown(places[at] as number) && this.isKnown((ends[at] as number) - 1))) add(at)
    }
    if (count === 0 && this.#isGone(places, ends)) for (let at = 0; at < length; at += 1) add(at)
    if (count > 0) this.file.ahead(ranges.subarray(0, 2 * count))
    return count > 0
  }

  /** Whether places that were read are not in memory any more, by a look at four of them. */
  #isGone(places: Float64Array, ends: Float64Array): boolean {
    const { length } = places
    const size = this.file.sizeBytes
    const looks = length === 0 ? [] : [0, Math.floor(length / 3), Math.floor((2 * length) / 3), length - 1]
    return looks.some((look) => {
      const place = Math.min(places[look] as number, size - 1)
      return !this.file.isResident(place, Math.min(size, Math.max(place, ends[look] as number)), false)
    })
  }

  /** Whether the page of this place was read, and had its checksum. */
  isKnown(place: number): boolean {
    return this.#sound[Math.floor(place / pageBytes)] === 1
  }

  /** Whether the pages of all bytes from `start` to before `end` were read, and had their checksums. */
  areKnown(start: number, end: number): boolean {
    for (let page = Math.floor(start / pageBytes); page * pageBytes < end; page += 1) {
      if (this.#sound[page] !== 1) return false
    }
    return true
  }

  /** Begins to read these bytes at once, where not all from `from` to before `to` were read before. */
  want(start: number, end: number, from: number = start, to: number = end): void {
    if (!this.areKnown(from, to)) this.file.ahead(Float64Array.of(start, end))
  }

  /** All of it is read soon, from its beginning to its end. */
  readThrough(): void {
    this.file.readThrough()
  }

  /** Begins to read what lies around a page that is read for the first time, where that is wanted soon. */
  #readAround(page: number): void {
    const place = page * pageBytes
    const part = this.#searched.find(([start, end]) => place + pageBytes > start && place < end)
    if (part !== undefined) {
      const from = Math.floor(place / togetherBytes) * togetherBytes
      if (this.file.isResident(place, Math.min(place + pageBytes, this.sizeBytes), false)) return
      this.file.ahead(Float64Array.of(Math.max(part[0], from), Math.min(part[1], from + togetherBytes)))
      return
    }
    const stream = this.#streams.find(({ last }) => last + 1 === page)
    if (stream === undefined) {
      this.#streams[this.#begun % streamsMax] = { last: page, run: 1, end: 0 }
      this.#begun += 1
      return
    }
    stream.last = page
    stream.run += 1
    if (stream.run < runPages || place + togetherBytes / 2 < stream.end) return
    this.file.ahead(Float64Array.of(Math.max(stream.end, place), place + togetherBytes))
    stream.end = place + togetherBytes
  }

  /** Where the bytes from `start` to `end` of the file begin in `bytes`. Throws a DamagedSegment. */
  at(start: number, end: number): number {
    const last = Math.floor((end - 1) / pageBytes)
    for (let page = Math.floor(start / pageBytes); page <= last; page += 1) {
      if (this.#sound[page] !== 1) this.check(page)
    }
    if (this.copies) return this.#copy(start, end)
    const index = Math.floor(start / windowBytes)
    if (end > (index + 1) * windowBytes) return this.#copy(start, end)
    this.bytes = this.#windows[index] ?? this.#window(index)
    return start - index * windowBytes
  }

  /** The bytes from `start` to `end` as they lie in memory; undefined where they do not, or not in one piece. */
  part(start: number, end: number): MappedPart | undefined {
    const index = Math.floor(start / windowBytes)
    if (this.copies || end > (index + 1) * windowBytes) return undefined
    const bytes = this.#windows[index] ?? this.#window(index)
    return {
      bytes,
      at: start - index * windowBytes,
      sound: this.#sound,
      page: (index * windowBytes) / pageBytes,
    }
  }

  /** Compares a page with its checksum. Throws a DamagedSegment. */
  check(page: number): void {
    const start = page * pageBytes
    if (page < 0 || page >= this.#sound.length) throw new DamagedSegment(this.path, page, 'is not there')
    this.#sound[page] = 0
    this.checks += 1
    this.#readAround(page)
    const bytes = this.#page.subarray(0, Math.min(pageBytes, this.#end - start))
    if (!this.file.copy(start, bytes)) throw new DamagedSegment(this.path, page, 'cannot be read')
    if (crc32(bytes) !== this.#sums.readUInt32LE(page * 4)) throw new DamagedSegment(this.path, page)
    this.#sound[page] = 1
  }

  /** Whether a page has its checksum, read once more. */
  isSound(page: number): boolean {
    try {
      this.check(page)
      return true
    } catch (error) {
      if (error instanceof DamagedSegment) return false
      throw error
    }
  }

  /** Pages that have a checksum. */
  get pages(): number {
    return this.#sound.length
  }

  #window(index: number): Buffer {
    const start = index * windowBytes
    const view = this.file.view(start, Math.min(start + windowBytes, this.file.sizeBytes))
    const window = Buffer.from(view.buffer, view.byteOffset, view.byteLength)
    this.#windows[index] = window
    return window
  }

  #copy(start: number, end: number): number {
    const copy = Buffer.allocUnsafeSlow(end - start)
    if (!this.file.copy(start, copy)) {
      throw new DamagedSegment(this.path, Math.floor(start / pageBytes), 'cannot be read')
    }
    this.bytes = copy
    return 0
  }

  close(): void {
    this.bytes = Buffer.alloc(0)
    this.#windows.length = 0
    this.file.close()
  }
}
