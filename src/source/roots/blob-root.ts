import type { Attributes, ItemPlace } from '../../catalog/attributes.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type { BlobStore, OpenBlob } from '../../store/blobs.js'
import { unknownEverywhere } from '../refusals.js'
import type { RootBytes } from './root-bytes.js'

const pieceBytes = 256 * 1024

/** A payload that is on disk as a blob, read as the data that holds others. */
export class BlobRoot implements RootBytes {
  readonly id: Id
  readonly sizeBytes: number
  readonly proven: boolean
  readonly trusted: boolean
  readonly outer?: ItemPlace

  constructor(
    { id, size, verified, trusted, place }: Attributes,
    /** SHA-256 on record, not compared with the bytes here. */
    readonly digest: Uint8Array,
    private readonly blob: OpenBlob,
  ) {
    this.id = id
    this.sizeBytes = size
    this.proven = verified
    this.trusted = trusted
    if (place !== undefined) this.outer = place
  }

  async *stream(start: number, end: number): AsyncGenerator<Uint8Array | Refusal, undefined> {
    const buffer = Buffer.allocUnsafe(Math.min(pieceBytes, end - start))
    for (let at = start; at < end; ) {
      // A new piece may overwrite the buffer: whoever takes pieces is done with one before asking for the next.
      const { handle, offset } = this.blob
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, end - at), offset + at)
      if (bytesRead === 0) {
        yield refuse('upstream', 'self', `the blob of ${this.id} is shorter than its record`)
        return undefined
      }
      yield buffer.subarray(0, bytesRead)
      at += bytesRead
    }
    return undefined
  }

  close(): Promise<void> {
    return this.blob.handle.close()
  }
}

/** Opens the payload of `id` where it is on disk; `unknown` where it is not. */
export async function openBlobRoot(
  id: Id,
  catalog: LmdbCatalog,
  store: BlobStore,
): Promise<BlobRoot | Refusal> {
  const known = catalog.attributes(id)
  if (known?.digest === undefined || catalog.blobSize(known.digest) === undefined) return unknownEverywhere()
  const blob = await store.open(known.digest)
  if (blob === undefined) return unknownEverywhere()
  return new BlobRoot(known, known.digest, blob)
}
