import type { ItemPlace } from '../../catalog/attributes.js'
import {
  type BundleEntry,
  BundleTable,
  bundleCountSize,
  bundleEntrySize,
  readBundleCount,
} from '../../format/bundle.js'
import type { Id } from '../../format/id.js'
import { type ItemHeader, itemHeaderSizeMax, parseItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { unknownEverywhere } from '../refusals.js'
import { type Directories, directoryItemsMax } from './directories.js'
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

/** A bundle: the root's data, or the payload of an item in it. */
interface Bundle {
  readonly id: Id
  /** Where it starts in the root's data. */
  readonly start: number
  readonly sizeBytes: number
  /** Root first, itself last. */
  readonly path: readonly Id[]
}

const entriesMax = 1_000_000

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

  /** Reads the entries of a bundle's header until `visit` returns true. */
  async #scan(bundle: Bundle, visit: (entry: BundleEntry) => boolean): Promise<Refusal | undefined> {
    const { start, sizeBytes } = bundle
    const known = this.directories?.find(this.root, start)
    if (known !== undefined) {
      const wanted = known.byId.get(this.id)
      for (const entry of wanted === undefined ? known.entries : [wanted]) if (visit(entry)) break
      return undefined
    }
    if (sizeBytes < bundleCountSize) return unknownEverywhere()
    const first = await readAll(this.root, start, start + bundleCountSize, this.signal)
    if (isRefusal(first)) return first
    const count = readBundleCount(first, { itemsMax: entriesMax, sizeBytes })
    if (isRefusal(count)) return count
    const headerBytes = count * bundleEntrySize
    if (headerBytes > this.limits.headerMaxBytes)
      return refuse('too-large', 'upstream', 'the bundle header is too large')
    const isKept = this.directories !== undefined && this.root.proven && count <= directoryItemsMax
    const entries: BundleEntry[] = []
    let isFound = false
    const table = new BundleTable(count)
    let rest: Uint8Array = new Uint8Array(0)
    const from = start + bundleCountSize
    for await (const piece of this.root.stream(from, from + headerBytes, this.signal)) {
      if (isRefusal(piece)) return isFound ? undefined : piece
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      let at = 0
      for (; at + bundleEntrySize <= bytes.length; at += bundleEntrySize) {
        const entry = table.read(bytes, at)
        if (isRefusal(entry)) return isFound ? undefined : entry
        if (table.end > sizeBytes)
          return isFound
            ? undefined
            : refuse('malformed', 'upstream', 'an item ends after the end of its bundle')
        if (isKept) entries.push(entry)
        isFound ||= visit(entry)
        // To its end only where it is short, and will be needed for its neighbours.
        if (isFound && !isKept) return undefined
      }
      rest = Buffer.from(bytes.subarray(at))
    }
    if (isKept) this.directories?.keep(this.root, start, entries)
    return undefined
  }

  /** The payload of an entry as a bundle, and the entry's header. */
  async #enter(
    bundle: Bundle,
    entry: BundleEntry,
  ): Promise<{ bundle: Bundle; header: ItemHeader } | Refusal> {
    if (this.#headersLeft <= 0) return unknownEverywhere()
    this.#headersLeft -= 1
    const start = bundle.start + entry.offset
    const header = await readItemHeader(this.root, entry.id, start, entry.sizeBytes, this.signal)
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

  async #found(bundle: Bundle, entry: BundleEntry): Promise<LocatedItem | Refusal> {
    const rootItemOffset = bundle.start + entry.offset
    const header = await readItemHeader(this.root, entry.id, rootItemOffset, entry.sizeBytes, this.signal)
    if (isRefusal(header)) return header
    const place: ItemPlace = {
      rootId: this.root.id,
      parentId: bundle.id,
      path: bundle.path,
      rootItemOffset,
      parentItemOffset: entry.offset,
      itemSize: entry.sizeBytes,
      headerSize: header.headerSize,
    }
    return { header, place }
  }
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
