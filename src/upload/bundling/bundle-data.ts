import { type FileHandle, open } from 'node:fs/promises'
import { encodeBundleHeader } from '../../format/bundle.js'
import { chunkSizeMax, chunkSizes } from '../../format/chunk.js'
import { isRefusal } from '../../format/refusal.js'
import { DataRootHasher } from '../../proof/data-root.js'
import type { MerkleTree } from '../../proof/merkle.js'
import { cutLogError, logFileName } from '../../store/segments/log-file.js'
import type { AcceptedItem } from '../records/uploads.js'
import { checkOf } from './item-check.js'

const pieceBytes = 2 ** 20

/** Pieces of at most so many bytes are put together, up to so many. */
const smallBytes = 16_384
const gatheredBytes = 65_536

/** Between two items of one stretch: the head of a record, and what is known of its item. */
const gapMaxBytes = 8192

/** Items that lie one behind the other in one file of the log. */
interface Stretch {
  readonly items: AcceptedItem[]
  /** Behind the last of them. */
  end: number
}

function* stretchesOf(items: readonly AcceptedItem[]): Generator<Stretch> {
  let stretch: Stretch | undefined
  let file = 0
  for (const item of items) {
    const { offset, sizeBytes } = item.place
    const gap = stretch === undefined ? 0 : offset - stretch.end
    if (stretch !== undefined && item.place.file === file && gap >= 0 && gap <= gapMaxBytes) {
      stretch.items.push(item)
      stretch.end = offset + sizeBytes
      continue
    }
    if (stretch !== undefined) yield stretch
    stretch = { items: [item], end: offset + sizeBytes }
    file = item.place.file
  }
  if (stretch !== undefined) yield stretch
}

interface Wanted {
  readonly offset: number
  readonly size: number
}

/** Reads files of the log: one is open, and up to a mebibyte of it is in memory. */
class LogReader {
  readonly #buffer = Buffer.allocUnsafeSlow(pieceBytes)
  #handle: FileHandle | undefined
  #file = -1
  #start = 0
  #end = 0

  constructor(private readonly folder: string) {}

  /** The first of the wanted bytes; undefined: they are not in memory. */
  held(file: number, { offset, size }: Wanted): Uint8Array | undefined {
    if (file !== this.#file || offset < this.#start || offset >= this.#end) return undefined
    const at = offset - this.#start
    return this.#buffer.subarray(at, Math.min(at + size, this.#end - this.#start))
  }

  /** The same, out of the file, and with it what lies before `end`. Valid until the next call. */
  async read(file: number, wanted: Wanted, end: number): Promise<Uint8Array> {
    if (file !== this.#file) {
      await this.close()
      this.#handle = await open(`${this.folder}/${logFileName(file)}`, 'r')
      this.#file = file
    }
    const length = Math.min(pieceBytes, end - wanted.offset)
    const read = await this.#handle?.read(this.#buffer, 0, length, wanted.offset)
    this.#start = wanted.offset
    this.#end = wanted.offset + (read?.bytesRead ?? 0)
    const piece = this.held(file, wanted)
    if (piece === undefined) throw cutLogError(file)
    return piece
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    this.#file = -1
    this.#end = 0
    await handle?.close()
  }
}

/**
 * Joins small pieces, because each piece costs its reader a promise and a turn. That is more than copying and hashing a kibibyte.
 */
class Gathered {
  readonly #buffer = Buffer.allocUnsafeSlow(gatheredBytes)
  size = 0

  /** Copies a piece; false: it is no small one, or there is no room left. */
  take(piece: Uint8Array): boolean {
    if (piece.length > smallBytes || this.size + piece.length > gatheredBytes) return false
    this.#buffer.set(piece, this.size)
    this.size += piece.length
    return true
  }

  /** What was taken, valid until the next piece is. */
  give(): Uint8Array {
    const all = this.#buffer.subarray(0, this.size)
    this.size = 0
    return all
  }
}

/** The data of a bundle: a header, and windows of the log. Nothing is copied to disk. */
export class BundleData {
  readonly header: Uint8Array
  readonly sizeBytes: number
  /** Where each item begins. */
  readonly offsets: readonly number[]

  constructor(
    private readonly items: readonly AcceptedItem[],
    private readonly logFolder: string,
  ) {
    this.header = encodeBundleHeader(items.map(({ id, place }) => ({ id, sizeBytes: place.sizeBytes })))
    let at = this.header.length
    this.offsets = items.map(({ place }) => {
      const start = at
      at += place.sizeBytes
      return start
    })
    this.sizeBytes = at
  }

  /**
   * All bytes in order, in pieces that are valid until the next one. Rejects where a file is gone or cut. `unfit`: gets each item
   * whose bytes are not those that were accepted; without it nothing is compared. `from`: position of the first byte, where
   * nothing is compared.
   */
  async *pieces(unfit?: (item: AcceptedItem) => void, from = 0): AsyncGenerator<Uint8Array, undefined> {
    if (from < this.header.length) yield this.header.subarray(from)
    const behind = this.items.filter((_, at) => (this.offsets[at + 1] ?? this.sizeBytes) > from)
    /** Bytes of the first of these that are left out. */
    let skipped = Math.max(0, from - (this.offsets[this.items.length - behind.length] ?? from))
    const reader = new LogReader(this.logFolder)
    const gathered = new Gathered()
    try {
      for (const stretch of stretchesOf(behind)) {
        for (const item of stretch.items) {
          const { place } = item
          const check = unfit && checkOf(item)
          let done = skipped
          skipped = 0
          while (done < place.sizeBytes) {
            const left = { offset: place.offset + done, size: place.sizeBytes - done }
            // What lies in memory is not waited for: of small items there are many.
            const piece = reader.held(place.file, left) ?? (await reader.read(place.file, left, stretch.end))
            done += piece.length
            check?.update(piece)
            if (gathered.take(piece)) continue
            if (gathered.size > 0) yield gathered.give()
            if (!gathered.take(piece)) yield piece
          }
          if (check?.isRight() === false) unfit?.(item)
        }
      }
      if (gathered.size > 0) yield gathered.give()
    } finally {
      await reader.close()
    }
    return undefined
  }

  /** The tree over its chunks: the data is read once. `unfit`: as for `pieces`. */
  async tree(unfit?: (item: AcceptedItem) => void): Promise<MerkleTree> {
    const hasher = new DataRootHasher(this.sizeBytes)
    for await (const piece of this.pieces(unfit)) hasher.update(piece)
    const tree = hasher.finish()
    if (isRefusal(tree)) throw new Error(tree.message)
    return tree
  }

  /**
   * The non-empty chunks in order, from that number on, each valid until the next one. They share memory, because a bundle has up
   * to 8192, and only garbage collection would free a buffer for each.
   */
  async *chunks(from = 0): AsyncGenerator<{ readonly index: number; readonly bytes: Uint8Array }, undefined> {
    const sizes = [...chunkSizes(this.sizeBytes)]
    const start = sizes.slice(0, from).reduce((sum, size) => sum + size, 0)
    let index = from
    const room = Buffer.allocUnsafeSlow(chunkSizeMax)
    let gathered = room.subarray(0, sizes[index] ?? 0)
    let filled = 0
    for await (const piece of this.pieces(undefined, start)) {
      for (let at = 0; at < piece.length; ) {
        const part = piece.subarray(at, at + gathered.length - filled)
        gathered.set(part, filled)
        filled += part.length
        at += part.length
        if (filled < gathered.length) continue
        yield { index, bytes: gathered }
        index += 1
        gathered = room.subarray(0, sizes[index] ?? 0)
        filled = 0
      }
    }
    return undefined
  }
}
