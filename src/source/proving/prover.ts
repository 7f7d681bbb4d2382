import { createHash } from 'node:crypto'
import { closeSync, createReadStream, openSync, readSync } from 'node:fs'
import { processorTime } from '../../actor/processor-time.js'
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
  /** The same of many small files, in order, and the processor time that it took. Refusal: the pool is busy. */
  arePayloads(claims: readonly PayloadClaim[]): Promise<JudgedPayloads | Refusal>
}

/** What an item's header says of its payload, without what is not signed. */
export type PayloadHeader = Omit<ItemHeader, 'tags'>

/** A file that may be the payload of an item. Both ends of the part are known. */
export interface PayloadClaim {
  readonly part: Required<FilePart>
  readonly header: PayloadHeader
}

export interface JudgedPayloads {
  readonly verdicts: readonly (boolean | undefined | Refusal)[]
  /** Milliseconds of processor time. */
  readonly ranMs: number
}

/** Four chunks: they are hashed two at once. */
const pieceBytes = 1024 * 1024

/** True: `take` had all of the file. False: there is no such file. Returned as values: errors lose their code between threads. */
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
    return unreadable(error)
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

  async arePayloads(claims: readonly PayloadClaim[]): Promise<JudgedPayloads> {
    const beganMs = processorTime.monotonic()
    const files = new OpenFiles()
    try {
      const verdicts = claims.map(({ part, header }) => {
        const bytes = files.read(part)
        if (bytes === undefined || isRefusal(bytes)) return bytes
        const verifier = new ItemVerifier({ ...header, tags: [] })
        verifier.update(bytes)
        return verifier.finish() === true
      })
      return { verdicts, ranMs: processorTime.monotonic() - beganMs }
    } finally {
      files.close()
    }
  }
}

/** Small parts of files, read at once. The file that was read last stays open: neighbours lie in one segment. */
class OpenFiles {
  #path: string | undefined
  #file = -1

  /** The bytes; undefined where the file is gone, or ends before. */
  read({ path, offset, sizeBytes }: Required<FilePart>): Uint8Array | undefined | Refusal {
    try {
      if (path !== this.#path) {
        this.close()
        this.#file = openSync(path, 'r')
        this.#path = path
      }
      const bytes = Buffer.allocUnsafe(sizeBytes)
      let count = 0
      while (count < sizeBytes) {
        const more = readSync(this.#file, bytes, count, sizeBytes - count, offset + count)
        if (more === 0) return undefined
        count += more
      }
      return bytes
    } catch (error) {
      if (isMissing(error)) return undefined
      return unreadable(error)
    }
  }

  close(): void {
    if (this.#file >= 0) closeSync(this.#file)
    this.#file = -1
    this.#path = undefined
  }
}

/** What an error of the system means for a file. A bug is none of the disk's: it is thrown on. */
function unreadable(error: unknown): Refusal {
  const code = codeOf(error)
  if (code === undefined) throw error
  return refuse('busy', 'self', `a file cannot be read: ${code}`)
}
