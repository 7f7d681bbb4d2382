import { closeSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import type { RowTag } from '../catalog/row.js'
import { VarReader, VarWriter } from '../format/varbytes.js'
import { Recent } from '../store/recent.js'

/** Bytes that are written at once. */
const blockBytes = 256 * 1024
/** Tags whose places are at hand: the same few are in most rows. */
const knownMax = 20_000

/** Names and values of tags in a file of its own, so that records of a fixed size can name them. */
export class TagSpool {
  readonly #file: number
  readonly #known = new Recent<string, number>(knownMax)
  readonly #block = new VarWriter()
  #written = 0
  #isOpen = true

  /** Throws errors of the disk, like all that follows. */
  constructor(private readonly path: string) {
    this.#file = openSync(path, 'wx+', 0o600)
  }

  /** Keeps a tag: its place. `hash` distinguishes it from all others. */
  put(hash: string, { name, value }: RowTag): number {
    const known = this.#known.get(hash)
    if (known !== undefined) return known
    const place = this.#written + this.#block.size
    this.#block.uint(name.length + value.length)
    this.#block.block(name)
    this.#block.raw(value)
    if (this.#block.size >= blockBytes) this.#flush()
    this.#known.set(hash, place)
    return place
  }

  #flush(): void {
    const bytes = this.#block.written
    for (let at = 0; at < bytes.length; ) {
      at += writeSync(this.#file, bytes, at, bytes.length - at, this.#written + at)
    }
    this.#written += bytes.length
    this.#block.reset()
  }

  /** The tag at a place. */
  at(place: number): RowTag {
    if (this.#block.size > 0) this.#flush()
    const size = new VarReader(this.#read(place, 8)).uint()
    // Two lengths of at most eight bytes, and what they are of.
    const read = new VarReader(this.#read(place, 16 + size))
    read.uint()
    const name = Buffer.from(read.block())
    return { name, value: Buffer.from(read.raw(size - name.length)) }
  }

  #read(place: number, size: number): Buffer {
    const bytes = Buffer.alloc(size)
    let at = 0
    for (let read = 1; read > 0 && at < size; at += read) {
      read = readSync(this.#file, bytes, at, size - at, place + at)
    }
    return bytes
  }

  /** Removes the file. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    closeSync(this.#file)
    rmSync(this.path, { force: true })
  }
}
