import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'

/** Heavy hashing over files: what the fetcher asks of others, so that its own thread keeps moving bytes. */
export interface BlobProver {
  /** SHA-256 of the file. Rejects where it cannot be read. */
  digest(path: string): Promise<Uint8Array>
}

/** Hashes on the calling thread: for tests, and inside the pool. */
export class InlineProver implements BlobProver {
  async digest(path: string): Promise<Uint8Array> {
    const hash = createHash('sha256')
    for await (const piece of createReadStream(path, { highWaterMark: 256 * 1024 }))
      hash.update(piece as Buffer)
    return hash.digest()
  }
}
