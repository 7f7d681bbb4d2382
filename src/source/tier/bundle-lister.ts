import type { Clock } from '../../actor/clock.js'
import type { Attributes } from '../../catalog/attributes.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { isBundle } from '../roots/learned.js'
import type { ListingPublisher } from './listing-publisher.js'
import { entriesUsualMax, objectName, type PackEntry } from './pack-format.js'
import type { TierRecords } from './tier-records.js'

export interface BundleListerParts {
  readonly records: TierRecords
  readonly publisher: ListingPublisher
  readonly catalog: Pick<LmdbCatalog, 'attributes' | 'judgedIn'>
  readonly isForbidden: (id: Id, digest: Uint8Array) => boolean
  readonly clock: Clock
}

/** A bundle is opened after it was stored: its items are looked for so long after, again and again. */
export const listAfterMs: readonly number[] = [15_000, 60_000, 300_000, 1_800_000]

const batchMax = 16

/**
 * Lists where the items of a bundle lie that is in the store: items of a stored bundle are no content of their own on disk, and
 * would not be found in the store. Their bytes are not put twice.
 */
export class BundleLister {
  constructor(
    private readonly parts: BundleListerParts,
    private readonly afterMs = listAfterMs,
  ) {}

  /** A content that is put, or is in the store: a bundle's items are listed later. */
  note({ id, header, isTransaction }: Attributes): void {
    const isRoot = isTransaction === true && header !== undefined && isBundle(header.tags)
    if (!isRoot || this.parts.records.bundle(id) !== undefined) return
    this.parts.records.setBundle(id, { dueMs: this.parts.clock.now() + (this.afterMs[0] ?? 0), tries: 0 })
  }

  /** Lists what is due. A refusal: the store could not be reached; the rest waits. Throws where the disk refuses. */
  async run(signal: AbortSignal): Promise<Refusal | undefined> {
    const { records, clock } = this.parts
    for (const { id, tries } of records.dueBundles(clock.now(), batchMax)) {
      const listed = await this.#list(id, signal)
      if (isRefusal(listed)) return listed
      const pauseMs = this.afterMs[tries + 1]
      records.setBundle(
        id,
        pauseMs === undefined ? undefined : { dueMs: clock.now() + pauseMs, tries: tries + 1 },
      )
    }
    return undefined
  }

  async #list(bundleId: Id, signal: AbortSignal): Promise<Refusal | undefined> {
    const { records, catalog, publisher, isForbidden } = this.parts
    const digest = catalog.attributes(bundleId)?.digest
    const place = records.place(bundleId)
    if (digest === undefined || !records.has(bundleId)) return undefined
    const pack = place?.pack ?? objectName(bundleId)
    const base = place === undefined ? 0 : place.offset + place.dataStart
    let entries: PackEntry[] = []
    const put = async (): Promise<Refusal | undefined> => {
      if (entries.length === 0) return undefined
      const published = await publisher.publish({ pack, entries }, signal)
      entries = []
      return isRefusal(published) ? published : undefined
    }
    for (const { id, place: within, digest: ofItem } of catalog.judgedIn(digest)) {
      if (records.has(id) || isForbidden(id, ofItem)) continue
      const { rootItemOffset: itemOffset, itemSize, headerSize } = within
      const root = { id: bundleId, itemOffset }
      const where = { offset: base + itemOffset, sizeBytes: itemSize, dataStart: headerSize }
      entries.push({ id, ...where, contentType: '', root })
      const refusal = entries.length < entriesUsualMax ? undefined : await put()
      if (refusal !== undefined) return refusal
    }
    return put()
  }
}
