import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { DataRootHasher } from '../../proof/data-root.js'
import { ItemVerifier } from '../../proof/item-verifier.js'
import { codeOf, type FilePart, isMissing } from '../../store/blobs.js'

/**
 * Heavy hashing over files: what the fetcher asks of others, so that its own thread keeps moving bytes. A file that is not there
 * proves nothing, and neither does one that cannot be read now (no descriptor is left, the disk fails): that is a refusal.
 */
export interface BlobProver {
  /** SHA-256 of the file; undefined where there is none. */
  digest(part: FilePart): Promise<Uint8Array | undefined | Refusal>
  /** Data root of the file cut in the usual way; undefined where it is not `sizeBytes` long, or not there. */
  dataRoot(part: FilePart, sizeBytes: number): Promise<Uint8Array | undefined | Refusal>
  /** Whether the file is the payload that the item's owner signed; undefined where there is none. */
  isPayload(part: FilePart, header: ItemHeader): Promise<boolean | undefined | Refusal>
}

/** Four chunks: they are hashed two at once. */
const pieceBytes = 1024 * 1024

/** True: `take` had all of the file. False: there is no such file. Told as values: errors lose their code between threads. */
async function feed(part: FilePart, take: (piece: Uint8Array) => void): Promise<boolean | Refusal> {
  const { path, offset = 0, sizeBytes } = part
  if (sizeBytes === 0) return true
  const span = sizeBytes === undefined ? { start: offset } : { start: offset, end: offset + sizeBytes - 1 }
  try {
    for await (const piece of createReadStream(path, { highWaterMark: pieceBytes, ...span })) {
      take(piece as Buffer)
    }
    return true
  } catch (error) {
    if (isMissing(error)) return false
    const code = codeOf(error)
    // A bug in `take` is none of the disk's.
    if (code === undefined) throw error
    return refuse('busy', 'self', `a file cannot be read: ${code}`)
  }
}

/** Hashes on the calling thread: for tests, and inside the pool. */
export class InlineProver implements BlobProver {
  async digest(part: FilePart): Promise<Uint8Array | undefined | Refusal> {
    const hash = createHash('sha256')
    const had = await feed(part, (piece) => hash.update(piece))
    if (isRefusal(had)) return had
    return had ? hash.digest() : undefined
  }

  async dataRoot(part: FilePart, sizeBytes: number): Promise<Uint8Array | undefined | Refusal> {
    const hasher = new DataRootHasher(sizeBytes)
    const had = await feed(part, (piece) => hasher.update(piece))
    if (isRefusal(had)) return had
    if (!had) return undefined
    const tree = hasher.finish()
    return isRefusal(tree) ? undefined : tree.root
  }

  async isPayload(part: FilePart, header: ItemHeader): Promise<boolean | undefined | Refusal> {
    const verifier = new ItemVerifier(header)
    const had = await feed(part, (piece) => verifier.update(piece))
    if (isRefusal(had)) return had
    if (!had) return undefined
    return verifier.finish() === true
  }
}
