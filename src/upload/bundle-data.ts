import { open } from 'node:fs/promises'
import { encodeBundleHeader } from '../format/bundle.js'
import { chunkSizes } from '../format/chunk.js'
import { isRefusal } from '../format/refusal.js'
import { DataRootHasher } from '../proof/data-root.js'
import type { MerkleTree } from '../proof/merkle.js'
import { logFileName } from '../store/segments/log-file.js'
import type { AcceptedItem } from './uploads.js'

const pieceBytes = 2 ** 20

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

  /** All bytes in order, in pieces that are valid until the next one. Rejects where a file is gone or cut. */
  async *pieces(): AsyncGenerator<Uint8Array, undefined> {
    yield this.header
    const buffer = Buffer.allocUnsafeSlow(pieceBytes)
    for (const { place } of this.items) {
      const handle = await open(`${this.logFolder}/${logFileName(place.file)}`, 'r')
      try {
        for (let done = 0; done < place.sizeBytes; ) {
          const wanted = Math.min(pieceBytes, place.sizeBytes - done)
          const { bytesRead } = await handle.read(buffer, 0, wanted, place.offset + done)
          if (bytesRead === 0) throw new Error(`file ${place.file} of the log of uploads is cut`)
          yield buffer.subarray(0, bytesRead)
          done += bytesRead
        }
      } finally {
        await handle.close()
      }
    }
    return undefined
  }

  /** The tree over its chunks: the data is read once. */
  async tree(): Promise<MerkleTree> {
    const hasher = new DataRootHasher(this.sizeBytes)
    for await (const piece of this.pieces()) hasher.update(piece)
    const tree = hasher.finish()
    if (isRefusal(tree)) throw new Error(tree.message)
    return tree
  }

  /** The chunks with something in them, in order; each may be kept. */
  async *chunks(): AsyncGenerator<{ readonly index: number; readonly bytes: Uint8Array }, undefined> {
    const sizes = [...chunkSizes(this.sizeBytes)]
    let index = 0
    let gathered = Buffer.allocUnsafe(sizes[0] ?? 0)
    let filled = 0
    for await (const piece of this.pieces()) {
      for (let at = 0; at < piece.length; ) {
        const part = piece.subarray(at, at + gathered.length - filled)
        gathered.set(part, filled)
        filled += part.length
        at += part.length
        if (filled < gathered.length) continue
        yield { index, bytes: gathered }
        index += 1
        gathered = Buffer.allocUnsafe(sizes[index] ?? 0)
        filled = 0
      }
    }
    return undefined
  }
}
