import { closeSync, fdatasyncSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { syncNow } from '../store/synced.js'
import { pageBytes } from './checked-file.js'

/** What is written at once: whole pages. */
const pieceBytes = 64 * pageBytes
const fewBytes = 160

/** The file of a segment while it is written, in order, each page with its checksum. It has its name when it is whole. */
export class SegmentOutput {
  #piece: Buffer = Buffer.allocUnsafeSlow(pieceBytes)
  #filled = 0
  #written = 0
  #sums: Uint32Array = new Uint32Array(1024)
  #pages = 0
  readonly #draft: string
  readonly #fd: number
  #isOpen = true

  constructor(readonly path: string) {
    this.#draft = `${path}.draft`
    this.#fd = openSync(this.#draft, 'w', 0o600)
  }

  /** Where the next byte will stand in the file. */
  get position(): number {
    return this.#written + this.#filled
  }

  u8(value: number): void {
    if (this.#filled === pieceBytes) this.#flush()
    this.#piece[this.#filled] = value
    this.#filled += 1
  }

  write(bytes: Uint8Array, from = 0, to: number = bytes.length): void {
    for (let at = from; at < to; ) {
      if (this.#filled === pieceBytes) this.#flush()
      const count = Math.min(to - at, pieceBytes - this.#filled)
      const piece = this.#piece
      const target = this.#filled
      // Few bytes are copied faster one by one.
      if (count > fewBytes) piece.set(bytes.subarray(at, at + count), target)
      else for (let byte = 0; byte < count; byte += 1) piece[target + byte] = bytes[at + byte] as number
      this.#filled += count
      at += count
    }
  }

  #flush(): void {
    for (let at = 0; at < this.#filled; at += pageBytes) {
      const page = this.#piece.subarray(at, Math.min(at + pageBytes, this.#filled))
      if (this.#pages === this.#sums.length) {
        const larger = new Uint32Array(this.#sums.length * 2)
        larger.set(this.#sums)
        this.#sums = larger
      }
      this.#sums[this.#pages] = crc32(page)
      this.#pages += 1
    }
    this.#put(this.#piece.subarray(0, this.#filled))
    this.#written += this.#filled
    this.#filled = 0
  }

  #put(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length; ) from += writeSync(this.#fd, bytes, from)
  }

  /** Ends the pages; their checksums, u32 little-endian each. What follows has none. */
  endPages(): Buffer {
    this.#flush()
    const sums = Buffer.allocUnsafeSlow(this.#pages * 4)
    for (let page = 0; page < this.#pages; page += 1) sums.writeUInt32LE(this.#sums[page] as number, page * 4)
    return sums
  }

  /** Writes the end of the file, behind the pages, and gives it its name once all of it is on the disk. */
  finish(end: Uint8Array): number {
    this.#put(end)
    fdatasyncSync(this.#fd)
    closeSync(this.#fd)
    this.#isOpen = false
    renameSync(this.#draft, this.path)
    syncNow(dirname(this.path))
    return this.#written + end.length
  }

  /** Removes what was written. After `finish` it does nothing. */
  drop(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    closeSync(this.#fd)
    rmSync(this.#draft, { force: true })
  }
}

/** A small part of a segment that is written while a large one is: it waits in a file of its own. */
export class SectionSpool {
  readonly #piece: Buffer = Buffer.allocUnsafeSlow(16 * pageBytes)
  #filled = 0
  readonly #path: string
  readonly #fd: number
  #isOpen = true

  /** Beside the segment at `path`. */
  constructor(path: string, name: string) {
    this.#path = `${path}.${name}.draft`
    this.#fd = openSync(this.#path, 'w+', 0o600)
  }

  /** An unsigned integer of `size` bytes (at most 6), little-endian. */
  uint(value: number, size: number): void {
    if (this.#filled + size > this.#piece.length) this.#flush()
    this.#piece.writeUIntLE(value, this.#filled, size)
    this.#filled += size
  }

  /** Few bytes. */
  bytes(some: Uint8Array): void {
    if (this.#filled + some.length > this.#piece.length) this.#flush()
    this.#piece.set(some, this.#filled)
    this.#filled += some.length
  }

  #flush(): void {
    for (let from = 0; from < this.#filled; ) {
      from += writeSync(this.#fd, this.#piece, from, this.#filled - from)
    }
    this.#filled = 0
  }

  /** Appends all of it to a segment, and removes it. */
  moveTo(out: SegmentOutput): void {
    this.#flush()
    for (let at = 0; ; ) {
      const got = readSync(this.#fd, this.#piece, 0, this.#piece.length, at)
      if (got === 0) break
      out.write(this.#piece, 0, got)
      at += got
    }
    this.drop()
  }

  drop(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    closeSync(this.#fd)
    rmSync(this.#path, { force: true })
  }
}
