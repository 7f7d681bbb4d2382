import type { Cell } from '../actor/shared.js'
import { type Id, idBytes, idOfBytes } from '../format/id.js'
import { isDamage, openEnvironment } from '../store/lmdb.js'
import type { Attributes } from './attributes.js'
import type { Catalog } from './catalog-messages.js'
import { attributesIn, type BlobRecord, blobSizeIn, decodeBlob, readTouchKey } from './catalog-record.js'
import type { Generations, ShardRun } from './generations.js'
import { findJudged, type JudgedItem, listJudged } from './judged-items.js'
import { type CatalogTables, lastTouchMs, openCatalogTables, readBlobBytes } from './tables.js'

/** A blob in the order of last use. */
export interface TouchedBlob {
  readonly digest: Uint8Array
  readonly touchedMs: number
}

/**
 * The catalog as any thread reads it: synchronous, straight from the memory map. What a damaged page of the database led to is
 * not known: what is requested is fetched anew.
 */
export class LmdbCatalog implements Catalog {
  readonly #tables: CatalogTables
  #seen = Number.NaN
  #blobBytes = 0

  /** `path` is the folder of the environment, opened by `open`; `generations` is the table that the keeper writes. */
  constructor(
    path: string,
    private readonly generations: Generations,
    open = openEnvironment,
  ) {
    this.#tables = openCatalogTables(path, open)
  }

  /** LMDB keeps one snapshot for a turn; a commit that was announced must be seen within the turn. */
  #refresh(): void {
    const commits = this.generations.commits
    if (commits === this.#seen) return
    this.#tables.environment.refresh()
    this.#seen = commits
  }

  /** Reports an error of a damaged page, so that reading goes on; throws any other error. */
  #report(error: unknown): void {
    if (!isDamage(error)) throw error
    this.generations.reportDamage()
    this.#tables.environment.refresh()
  }

  /** What `read` finds; `otherwise` where a page that it needs is damaged. */
  #orElse<Found>(otherwise: Found, read: () => Found): Found {
    this.#refresh()
    try {
      return read()
    } catch (error) {
      this.#report(error)
      return otherwise
    }
  }

  attributes(id: Id): Attributes | undefined {
    this.#refresh()
    try {
      const record = this.#tables.attributes.view(idBytes(id))
      return record === undefined ? undefined : attributesIn(id, record)
    } catch (error) {
      this.#report(error)
      return undefined
    }
  }

  blobSize(digest: Uint8Array): number | undefined {
    this.#refresh()
    try {
      const record = this.#tables.blobs.view(digest)
      return record === undefined ? undefined : blobSizeIn(record)
    } catch (error) {
      this.#report(error)
      return undefined
    }
  }

  judged(bundle: Uint8Array, id: Id, place: JudgedItem['place']): Uint8Array | undefined {
    this.#refresh()
    try {
      return findJudged(this.#tables.judged, bundle, id, place)
    } catch (error) {
      this.#report(error)
      return undefined
    }
  }

  /** All items that were judged in the bundle on disk with this digest. */
  judgedIn(bundle: Uint8Array): JudgedItem[] {
    return this.#orElse([], () => [...listJudged(this.#tables.judged, bundle)])
  }

  holder(digest: Uint8Array): Id | undefined {
    return this.blob(digest)?.holder
  }

  generation(id: Id): number {
    return this.generations.of(id)
  }

  /** `Generations.changed` */
  changedShards(seen: Int32Array): ShardRun[] {
    return this.generations.changed(seen)
  }

  generationCell(id: Id): Cell {
    return this.generations.cellOf(id)
  }

  /** The record of a blob, if the store holds it. */
  blob(digest: Uint8Array): BlobRecord | undefined {
    return this.#orElse(undefined, () => {
      const record = this.#tables.blobs.view(digest)
      return record === undefined ? undefined : decodeBlob(record)
    })
  }

  /** Blobs on record in the order of their digests, from behind `after` on. */
  blobsBehind(
    after: Uint8Array | undefined,
    limit: number,
  ): { readonly digest: Uint8Array; readonly holder: Id | undefined }[] {
    const entries = this.#orElse([], () => this.#tables.blobs.from(after, limit + 1))
    const held = entries.map(({ key, value }) => ({ digest: key, holder: decodeBlob(value).holder }))
    const isNew = (digest: Uint8Array): boolean => after === undefined || Buffer.compare(digest, after) !== 0
    return held.filter(({ digest }) => isNew(digest)).slice(0, limit)
  }

  /** Bytes of all blobs on record; where they cannot be read any more, those that were read last. */
  blobBytes(): number {
    this.#blobBytes = this.#orElse(this.#blobBytes, () => readBlobBytes(this.#tables))
    return this.#blobBytes
  }

  /** Number and bytes of the blobs on record. */
  usage(): { readonly blobs: number; readonly bytes: number } {
    return { blobs: this.#orElse(0, () => this.#tables.blobs.count()), bytes: this.blobBytes() }
  }

  /** Blobs that were used longest ago, the oldest first. */
  leastTouched(limit: number): TouchedBlob[] {
    return this.#orElse([], () =>
      this.#tables.touches.from(undefined, limit).map((entry) => readTouchKey(entry.key)),
    )
  }

  /** When a blob was used last, by the keeper's time; undefined where there is none. */
  lastTouchMs(): number | undefined {
    return this.#orElse(undefined, () => lastTouchMs(this.#tables))
  }

  /** Ids with something left to prove, in id order, from behind `after`. */
  unsettled(after: Id | undefined, limit: number): Id[] {
    const start = after === undefined ? undefined : idBytes(after)
    const entries = this.#orElse([], () => this.#tables.unsettled.from(start, limit + 1))
    const ids = entries.map((entry) => idOfBytes(entry.key))
    return ids.filter((id) => id !== after).slice(0, limit)
  }

  async close(): Promise<void> {
    await this.#tables.environment.close()
  }
}
