import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { ItemHeader } from '../format/item.js'
import { isRefusal } from '../format/refusal.js'
import { DataRootHasher } from '../proof/data-root.js'
import { ItemVerifier } from '../proof/item.js'
import { isMissing } from '../store/blobs.js'

/**
 * Heavy hashing over files: what the fetcher asks of others, so that its own thread keeps moving bytes. A file that is not there
 * proves nothing; each rejects where the disk fails.
 */
export interface BlobProver {
  /** SHA-256 of the file; undefined where there is none. */
  digest(path: string): Promise<Uint8Array | undefined>
  /** Data root of the file cut in the usual way; undefined where it is not `sizeBytes` long, or not there. */
  dataRoot(path: string, sizeBytes: number): Promise<Uint8Array | undefined>
  /** Whether the file is the payload that the item's owner signed; undefined where there is none. */
  isPayload(path: string, header: ItemHeader): Promise<boolean | undefined>
}

/** Four chunks: they are hashed two at once. */
const pieceBytes = 1024 * 1024

/** False: there is no such file. Told as a value, since errors lose their code between threads. */
async function feed(path: string, take: (piece: Uint8Array) => void): Promise<boolean> {
  try {
    for await (const piece of createReadStream(path, { highWaterMark: pieceBytes })) take(piece as Buffer)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** Hashes on the calling thread: for tests, and inside the pool. */
export class InlineProver implements BlobProver {
  async digest(path: string): Promise<Uint8Array | undefined> {
    const hash = createHash('sha256')
    const there = await feed(path, (piece) => hash.update(piece))
    return there ? hash.digest() : undefined
  }

  async dataRoot(path: string, sizeBytes: number): Promise<Uint8Array | undefined> {
    const hasher = new DataRootHasher(sizeBytes)
    if (!(await feed(path, (piece) => hasher.update(piece)))) return undefined
    const tree = hasher.finish()
    return isRefusal(tree) ? undefined : tree.root
  }

  async isPayload(path: string, header: ItemHeader): Promise<boolean | undefined> {
    const verifier = new ItemVerifier(header)
    if (!(await feed(path, (piece) => verifier.update(piece)))) return undefined
    return verifier.finish() === true
  }
}
