import type { ItemPlace } from '../../catalog/attributes.js'
import type { BundleEntry } from '../../format/bundle.js'
import type { Id } from '../../format/id.js'
import { type ItemHeader, itemHeaderSizeMax, parseItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { unknownEverywhere } from '../refusals.js'
import { type Bundle, scanEntries } from './bundle-entries.js'
import type { Directories } from './directories.js'
import { isBundle } from './learned.js'
import { type RootBytes, readAll } from './root-bytes.js'

export interface LocationLimits {
  /** Bundles inside bundles are searched so deep. */
  readonly depthMax: number
  /** Item headers read for one search. */
  readonly headersMax: number
  /** Larger bundle headers (64 bytes an item) are not read. */
  readonly headerMaxBytes: number
}

/** Where to look first; never believed. */
export interface Guide {
  /** Root first. */
  readonly path?: readonly Id[] | undefined
  /** Of the whole item in the root's data. */
  readonly itemOffset?: number | undefined
}

export interface LocatedItem {
  readonly header: ItemHeader
  readonly place: ItemPlace
}

/** Finds one item in one root by reading bundle headers; owns the budget of one search. */
export class Locating {
  #headersLeft: number

  constructor(
    private readonly root: RootBytes,
    private readonly id: Id,
    private readonly limits: LocationLimits,
    private readonly signal: AbortSignal,
    private readonly directories?: Directories,
  ) {
    this.#headersLeft = limits.headersMax
  }

  /**
   * The item's header and place. Guided by an offset or a path where there is one; searched depth first where the guide is
   * missing or wrong. `unknown`: it is not in this root, or not within the limits.
   */
  async locate(guide: Guide): Promise<LocatedItem | Refusal> {
    const top: Bundle = { id: this.root.id, start: 0, sizeBytes: this.root.sizeBytes, path: [this.root.id] }
    const { itemOffset, path } = guide
    if (itemOffset !== undefined) {
      const found = await this.#guided(top, ({ offset, sizeBytes }, { start }) => {
        return start + offset <= itemOffset && itemOffset < start + offset + sizeBytes
      })
      if (!isRefusal(found) || isFailure(found)) return found
    }
    if (path !== undefined && path.length > 1) {
      const found = await this.#guided(top, (entry, bundle) => entry.id === path[bundle.path.length])
      if (!isRefusal(found) || isFailure(found)) return found
    }
    return this.#search(top)
  }

  /** Goes down through the entry that `leads` names on each level, until the item is among the entries. */
  async #guided(
    top: Bundle,
    leads: (entry: BundleEntry, bundle: Bundle) => boolean,
  ): Promise<LocatedItem | Refusal> {
    let bundle = top
    for (let depth = 0; depth < this.limits.depthMax; depth += 1) {
      let lead: BundleEntry | undefined
      let hit: BundleEntry | undefined
      const failed = await this.#scan(bundle, (entry) => {
        if (entry.id === this.id) hit = entry
        else if (lead === undefined && leads(entry, bundle)) lead = entry
        return hit !== undefined
      })
      if (hit !== undefined) return this.#found(bundle, hit)
      if (failed !== undefined) return failed
      if (lead === undefined) return unknownEverywhere()
      const inner = await this.#enter(bundle, lead)
      if (isRefusal(inner)) return inner
      bundle = inner.bundle
    }
    return unknownEverywhere()
  }

  /** Depth first: an item's neighbours are looked into only when it is not among them. */
  async #search(bundle: Bundle): Promise<LocatedItem | Refusal> {
    let hit: BundleEntry | undefined
    const others: BundleEntry[] = []
    const failed = await this.#scan(bundle, (entry) => {
      if (entry.id === this.id) hit = entry
      else if (others.length < this.#headersLeft) others.push(entry)
      return hit !== undefined
    })
    if (hit !== undefined) return this.#found(bundle, hit)
    if (failed !== undefined) return failed
    if (bundle.path.length >= this.limits.depthMax) return unknownEverywhere()
    for (const entry of others) {
      if (this.#headersLeft <= 0) break
      const inner = await this.#enter(bundle, entry)
      if (isRefusal(inner)) {
        if (isFailure(inner)) return inner
        continue
      }
      if (!isBundle(inner.header.tags)) continue
      const found = await this.#search(inner.bundle)
      if (!isRefusal(found) || isFailure(found)) return found
    }
    return unknownEverywhere()
  }

  #scan(bundle: Bundle, visit: (entry: BundleEntry) => boolean): Promise<Refusal | undefined> {
    const { root, id, limits, signal, directories } = this
    return scanEntries({ root, limits, signal, directories }, bundle, visit, id)
  }

  /** The payload of an entry as a bundle, and the entry's header. */
  async #enter(
    bundle: Bundle,
    entry: BundleEntry,
  ): Promise<{ bundle: Bundle; header: ItemHeader } | Refusal> {
    if (this.#headersLeft <= 0) return unknownEverywhere()
    this.#headersLeft -= 1
    return innerBundle(this.root, bundle, entry, this.signal)
  }

  async #found(bundle: Bundle, entry: BundleEntry): Promise<LocatedItem | Refusal> {
    return itemAt(this.root, bundle, entry, this.signal)
  }
}

/** The payload of an entry as a bundle, and the entry's header. */
export async function innerBundle(
  root: RootBytes,
  bundle: Bundle,
  entry: BundleEntry,
  signal: AbortSignal,
): Promise<{ bundle: Bundle; header: ItemHeader } | Refusal> {
  const start = bundle.start + entry.offset
  const header = await readItemHeader(root, entry.id, start, entry.sizeBytes, signal)
  if (isRefusal(header)) return header
  const { headerSize } = header
  const inner = {
    id: entry.id,
    start: start + headerSize,
    sizeBytes: entry.sizeBytes - headerSize,
    path: [...bundle.path, entry.id],
  }
  return { bundle: inner, header }
}

/** The item that an entry of a bundle's header names. */
export async function itemAt(
  root: RootBytes,
  bundle: Bundle,
  entry: BundleEntry,
  signal: AbortSignal,
): Promise<LocatedItem | Refusal> {
  const rootItemOffset = bundle.start + entry.offset
  const header = await readItemHeader(root, entry.id, rootItemOffset, entry.sizeBytes, signal)
  if (isRefusal(header)) return header
  const place: ItemPlace = {
    rootId: root.id,
    parentId: bundle.id,
    path: bundle.path,
    rootItemOffset,
    parentItemOffset: entry.offset,
    itemSize: entry.sizeBytes,
    headerSize: header.headerSize,
  }
  return { header, place }
}

/** Reads the header of the item of `itemSize` bytes that starts at `start`, and sees that it is `id`'s. */
export async function readItemHeader(
  root: RootBytes,
  id: Id,
  start: number,
  itemSize: number,
  signal: AbortSignal,
): Promise<ItemHeader | Refusal> {
  const end = Math.min(start + Math.min(itemSize, itemHeaderSizeMax()), root.sizeBytes)
  if (start >= end) return unknownEverywhere()
  const bytes = await readAll(root, start, end, signal)
  if (isRefusal(bytes)) return bytes
  const header = parseItemHeader(bytes)
  if (isRefusal(header)) return header
  if (header === 'more' || header.headerSize > itemSize) {
    return refuse('malformed', 'upstream', 'the item is cut off in its header')
  }
  return header.id === id ? header : unknownEverywhere()
}

/** A refusal that says nothing about where the item is: the bytes could not be had. */
export function isFailure({ refused }: Refusal): boolean {
  return refused !== 'unknown' && refused !== 'malformed' && refused !== 'too-large'
}
