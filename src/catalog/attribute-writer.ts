import { type Id, idBytes } from '../format/id.js'
import { present } from '../store/lmdb.js'
import { attributesIn, decodeBlob, encodeAttributes, encodeBlob } from './catalog-record.js'
import { distrusted, isFullyProven, merge } from './merge.js'
import type { CatalogTables } from './tables.js'

/** Writes what is known of ids: only the keeper, inside its transaction. */
export class AttributeWriter {
  constructor(private readonly tables: CatalogTables) {}

  /** What stood on a block that is no longer on the chain is not final, wherever it comes to stand. */
  forgetHeight(id: Id): void {
    const key = idBytes(id)
    const record = this.tables.attributes.view(key)
    const known = record === undefined ? undefined : attributesIn(id, record)
    if (known?.height === undefined) return
    const { height: _height, ...rest } = known
    this.tables.attributes.put(key, encodeAttributes(rest))
    if (!isFullyProven(rest)) this.tables.unsettled.put(key, present)
  }

  /** Merges what was learned of an id. */
  learn(learned: Parameters<typeof merge>[1]): void {
    const key = idBytes(learned.id)
    const record = this.tables.attributes.view(key)
    const merged = merge(record === undefined ? undefined : attributesIn(learned.id, record), learned)
    this.tables.attributes.put(key, encodeAttributes(merged))
    if (isFullyProven(merged)) this.tables.unsettled.remove(key)
    else this.tables.unsettled.put(key, present)
    if (merged.digest !== undefined) this.#hold(merged.id, merged.digest)
  }

  /** The blob is found by its digest through one id that has it: the first one, until it comes to mean other bytes. */
  #hold(id: Id, digest: Uint8Array): void {
    const record = this.tables.blobs.view(digest)
    if (record === undefined) return
    const blob = decodeBlob(record)
    if (blob.holder === id || (blob.holder !== undefined && this.#hasDigest(blob.holder, digest))) return
    this.tables.blobs.put(digest, encodeBlob({ ...blob, holder: id }))
  }

  #hasDigest(id: Id, digest: Uint8Array): boolean {
    const record = this.tables.attributes.view(idBytes(id))
    const known = record === undefined ? undefined : attributesIn(id, record)?.digest
    return known !== undefined && Buffer.compare(known, digest) === 0
  }

  /** The digest of an id proved wrong. */
  distrust(id: Id): void {
    const key = idBytes(id)
    const record = this.tables.attributes.view(key)
    const known = record === undefined ? undefined : attributesIn(id, record)
    const left = known === undefined ? undefined : distrusted(known)
    if (left === undefined) this.tables.attributes.remove(key)
    else this.tables.attributes.put(key, encodeAttributes(left))
    this.tables.unsettled.remove(key)
  }

  /** Nothing is known of an id any more, unless it was verified or is in a block. */
  forget(id: Id): void {
    const key = idBytes(id)
    const record = this.tables.attributes.view(key)
    const known = record === undefined ? undefined : attributesIn(id, record)
    if (known === undefined || known.verified || known.height !== undefined) return
    this.tables.attributes.remove(key)
    this.tables.unsettled.remove(key)
  }
}
