import { type BigIntStats, closeSync, fstatSync, openSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import type { MappedFile } from './mapped-file.js'

/** Large enough that the calls do not count, small enough to stay in the second-level cache until the socket took it. */
const bufferBytes = 256 * 1024

/** What was fetched is remembered in pieces of this size. */
const pieceBytes = 2 * 1024 * 1024

const buffer = Buffer.allocUnsafeSlow(bufferBytes)

const readLater = promisify(read)

/**
 * Plain reads into one reused buffer. Without the addon it is not known whether a page is in memory, so a piece counts as
 * such once it was fetched: the first reader of a piece goes through the pool, the later ones trust the page cache.
 */
class FallbackFile implements MappedFile {
  readonly sizeBytes: number
  readonly inode: bigint
  readonly modifiedNs: bigint
  readonly #path: string
  readonly #fd: number
  readonly #fetched = new Set<number>()
  #fetching = 0
  #isClosed = false

  constructor(path: string, fd: number, found: BigIntStats) {
    this.#path = path
    this.#fd = fd
    this.sizeBytes = Number(found.size)
    this.inode = found.ino
    this.modifiedNs = found.mtimeNs
  }

  isResident(start: number, end: number): boolean {
    this.#check(start, end)
    for (let piece = Math.floor(start / pieceBytes); piece * pieceBytes < end; piece += 1) {
      if (!this.#fetched.has(piece)) return false
    }
    // As in the addon: bytes that the file was cut off in front of are not here, and cannot be fetched.
    return end <= fstatSync(this.#fd).size
  }

  /** As in the addon: a malformed range, or one outside of the file, throws. */
  #check(start: number, end: number): void {
    if (
      !(
        Number.isSafeInteger(start) &&
        Number.isSafeInteger(end) &&
        start >= 0 &&
        start <= end &&
        end <= this.sizeBytes
      )
    )
      throw new RangeError(`[${start}, ${end}) is not within ${this.sizeBytes} bytes`)
  }

  view(start: number, end: number): Uint8Array {
    this.#check(start, end)
    const length = Math.min(end - start, bufferBytes)
    const got = readSync(this.#fd, buffer, 0, length, start)
    if (got === 0) throw new Error(`${this.#path} has shrunk`)
    return buffer.subarray(0, got)
  }

  copy(start: number, target: Uint8Array): boolean {
    this.#check(start, start + target.length)
    try {
      for (let done = 0; done < target.length; ) {
        const got = readSync(this.#fd, target, done, target.length - done, start + done)
        if (got === 0) return false
        done += got
      }
      return true
    } catch {
      return false // as with the addon: the caller decides what a failing disk means
    }
  }

  ahead(): void {
    // Reads bring what they need themselves.
  }

  readThrough(): void {
    // The same.
  }

  async fetch(start: number, end: number): Promise<boolean> {
    this.#check(start, end)
    const first = Math.floor(start / pieceBytes)
    const last = Math.ceil(end / pieceBytes)
    const scratch = Buffer.allocUnsafeSlow(Math.min(bufferBytes, this.sizeBytes))
    if (this.#isClosed) return false
    // The same descriptor, so that a file that was removed meanwhile can be read on.
    this.#fetching += 1
    try {
      for (let at = first * pieceBytes; at < Math.min(last * pieceBytes, this.sizeBytes); ) {
        const { bytesRead } = await readLater(this.#fd, scratch, 0, scratch.length, at)
        if (bytesRead === 0) return false
        at += bytesRead
      }
    } catch {
      return false // the promise says so; the reader decides what a failing disk means
    } finally {
      this.#fetching -= 1
      this.#release()
    }
    for (let piece = first; piece < last; piece += 1) this.#fetched.add(piece)
    return true
  }

  close(): void {
    this.#isClosed = true
    this.#release()
  }

  /** Not while a read is under way: the number could be another file's by then. */
  #release(): void {
    if (this.#isClosed && this.#fetching === 0) closeSync(this.#fd)
  }
}

/** The file at `path` through plain reads; undefined where there is no such file. Throws on other failures of the disk. */
export function openFallback(path: string): MappedFile | undefined {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const found = fstatSync(fd, { bigint: true })
  if (found.isFile()) return new FallbackFile(path, fd, found)
  closeSync(fd)
  throw new Error(`${path} is not a regular file`)
}
