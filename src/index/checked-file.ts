import { crc32 } from 'node:zlib'
import { mappedBy, openMapped } from '../../native/mapped/mapped.js'
import { openFallback } from '../../native/mapped/mapped-fallback.js'
import type { MappedFile } from '../../native/mapped/mapped-file.js'

/** Bytes that have one checksum. */
export const pageBytes = 4096
const windowBytes = 2 ** 30

/** Opens a file that is read from memory, or its fallback. */
export type OpenMapped = (path: string) => MappedFile | undefined

/** A page of a segment is not what was written: nothing of it may be believed. */
export class DamagedSegment extends Error {
  override readonly name = 'DamagedSegment'

  constructor(
    readonly path: string,
    /** Of the file, from 0 on. */
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
  /** By page: 1 where it was compared with its checksum. No byte of another page may be believed, or read: its disk may fail. */
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
  /** What `at` speaks of: valid until its next call. */
  bytes: Buffer = Buffer.alloc(0)
  readonly #windows: (Buffer | undefined)[] = []
  readonly #page: Buffer = Buffer.allocUnsafeSlow(pageBytes)
  #sums: Buffer = Buffer.alloc(0)
  #end = 0
  #sound = new Uint8Array(0)

  private constructor(
    readonly path: string,
    private readonly file: MappedFile,
    /** The file has no memory that stays. */
    private readonly copies: boolean,
  ) {}

  /** Undefined where there is no such file. Throws on other failures of the disk. */
  static open(path: string, openFile: OpenMapped = openMapped): CheckedFile | undefined {
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
    return this.file.copy(start, copy) ? copy : undefined
  }

  /** From here on pages, which end at `end`, are compared with these sums (u32 little-endian each). */
  checkBy(sums: Buffer, end: number): void {
    this.#sums = sums
    this.#end = end
    this.#sound = new Uint8Array(sums.length / 4)
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
