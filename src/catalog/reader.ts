import { type Id, idBytes, idOfBytes } from '../format/id.js'
import type { Attributes } from './attributes.js'
import type { Generations } from './generations.js'
import type { Catalog } from './protocol.js'
import { attributesIn, type BlobRecord, blobSizeIn, decodeBlob, readTouchKey } from './record.js'
import { type CatalogTables, lastTouchMs, openCatalogTables, readBlobBytes } from './tables.js'

/** A blob in the order of last use. */
export interface TouchedBlob {
  readonly digest: Uint8Array
  readonly touchedMs: number
}

/** The catalog as any thread reads it: synchronous, straight from the memory map. */
export class LmdbCatalog implements Catalog {
  readonly #tables: CatalogTables
  #seen = Number.NaN

  /** `path` is the folder of the environment, `generations` the table that the keeper writes. */
  constructor(
    path: string,
    private readonly generations: Generations,
  ) {
    this.#tables = openCatalogTables(path)
  }

  /** LMDB keeps one snapshot for a turn; a commit that was announced must be seen within the turn. */
  #refresh(): void {
    const commits = this.generations.commits
    if (commits === this.#seen) return
    this.#tables.environment.refresh()
    this.#seen = commits
  }

  attributes(id: Id): Attributes | undefined {
    this.#refresh()
    const record = this.#tables.attributes.view(idBytes(id))
    return record === undefined ? undefined : attributesIn(id, record)
  }

  blobSize(digest: Uint8Array): number | undefined {
    this.#refresh()
    const record = this.#tables.blobs.view(digest)
    return record === undefined ? undefined : blobSizeIn(record)
  }

  holder(digest: Uint8Array): Id | undefined {
    return this.blob(digest)?.holder
  }

  generation(id: Id): number {
    return this.generations.of(id)
  }

  /** The record of a blob, if the store holds it. */
  blob(digest: Uint8Array): BlobRecord | undefined {
    this.#refresh()
    const record = this.#tables.blobs.view(digest)
    return record === undefined ? undefined : decodeBlob(record)
  }

  /** Bytes of all blobs on record. */
  blobBytes(): number {
    this.#refresh()
    return readBlobBytes(this.#tables)
  }

  /** Number and bytes of the blobs on record. */
  usage(): { readonly blobs: number; readonly bytes: number } {
    this.#refresh()
    return { blobs: this.#tables.blobs.count(), bytes: readBlobBytes(this.#tables) }
  }

  /** Blobs that were used longest ago, the oldest first. */
  leastTouched(limit: number): TouchedBlob[] {
    this.#refresh()
    return this.#tables.touches.from(undefined, limit).map((entry) => readTouchKey(entry.key))
  }

  /** When a blob was used last, by the keeper's time; undefined where there is none. */
  lastTouchMs(): number | undefined {
    this.#refresh()
    return lastTouchMs(this.#tables)
  }

  /** Ids with something left to prove, in id order, from behind `after`. */
  unsettled(after: Id | undefined, limit: number): Id[] {
    this.#refresh()
    const start = after === undefined ? undefined : idBytes(after)
    const ids = this.#tables.unsettled.from(start, limit + 1).map((entry) => idOfBytes(entry.key))
    return ids.filter((id) => id !== after).slice(0, limit)
  }

  async close(): Promise<void> {
    await this.#tables.environment.close()
  }
}
