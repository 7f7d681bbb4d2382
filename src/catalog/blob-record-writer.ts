import { type Clock, notBefore } from '../actor/clock.js'
import { present } from '../store/lmdb.js'
import { decodeBlob, encodeBlob, isInSegment, touchKey } from './catalog-record.js'
import { addBlobBytes, type CatalogTables, lastTouchMs } from './tables.js'

/** Writes which blobs are on disk, and when each was used last: only the keeper, inside its transaction. */
export class BlobRecordWriter {
  /** The time of uses: by it blobs are evicted in order, whatever the system's clock does. */
  readonly #useMs: () => number

  /** `touchEveryMs`: a last use is written only when it moved by so much. */
  constructor(
    private readonly tables: CatalogTables,
    clock: Clock,
    private readonly touchEveryMs: number,
  ) {
    this.#useMs = notBefore(clock, lastTouchMs(tables) ?? 0)
  }

  /** A blob is in the store now. `isSmall`: in a segment, which has its own order of uses. */
  keep(digest: Uint8Array, sizeBytes: number, isSmall: boolean): void {
    const record = this.tables.blobs.view(digest)
    const before = record === undefined ? undefined : decodeBlob(record)
    if (before !== undefined && isInSegment(before) === isSmall) {
      this.touch(digest)
      return
    }
    // It moves from a file into a segment, or back.
    if (before !== undefined) this.drop(digest)
    const now = this.#useMs()
    const touchedMs = isSmall ? 0 : now
    const holder = before?.holder
    const blob = { sizeBytes, createdMs: before?.createdMs ?? now, touchedMs }
    this.tables.blobs.put(digest, encodeBlob({ ...blob, ...(holder === undefined ? {} : { holder }) }))
    if (isSmall) return
    this.tables.touches.put(touchKey(now, digest), present)
    addBlobBytes(this.tables, sizeBytes)
  }

  /** A blob in a file was used. */
  touch(digest: Uint8Array): void {
    const record = this.tables.blobs.view(digest)
    if (record === undefined) return
    const blob = decodeBlob(record)
    if (isInSegment(blob)) return
    const now = this.#useMs()
    if (now - blob.touchedMs < this.touchEveryMs) return
    this.tables.touches.remove(touchKey(blob.touchedMs, digest))
    this.tables.touches.put(touchKey(now, digest), present)
    this.tables.blobs.put(digest, encodeBlob({ ...blob, touchedMs: now }))
  }

  /** A blob leaves the store. `touchedMs`: its place in the order of uses, which may be all that is left of it. */
  drop(digest: Uint8Array, touchedMs?: number): void {
    const record = this.tables.blobs.view(digest)
    const blob = record === undefined ? undefined : decodeBlob(record)
    if (blob !== undefined) {
      this.tables.blobs.remove(digest)
      if (!isInSegment(blob)) {
        this.tables.touches.remove(touchKey(blob.touchedMs, digest))
        addBlobBytes(this.tables, -blob.sizeBytes)
      }
    }
    if (touchedMs !== undefined) this.tables.touches.remove(touchKey(touchedMs, digest))
  }
}
