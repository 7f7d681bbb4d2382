import type { ItemPlace } from '../../catalog/attributes.js'
import type { Id } from '../../format/id.js'
import { type ItemHeader, itemHeaderSizeMax, parseItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { unknownEverywhere } from '../refusals.js'
import type { BundleDirectory, DirectoryEntry, ReadBundle } from './bundle-directory.js'
import { type Bundle, Directories, topBundle } from './directories.js'
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

/** Levels of bundles that are gone through where an offset leads: each costs two readings, so more than a search can go into. */
const ledDepthMax = 32

/** Where to look first; never believed. */
export interface Guide {
  /** Root first. */
  readonly path?: readonly Id[] | undefined
  /** Where the whole item begins in the root's data. */
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
    private readonly directories = new Directories(),
    private readonly client?: string,
  ) {
    this.#headersLeft = limits.headersMax
  }

  /**
   * The item's header and place. Guided by an offset or a path where there is one; searched depth first where the guide is
   * missing or wrong. `unknown`: it is not in this root, or not within the limits.
   */
  async locate(guide: Guide): Promise<LocatedItem | Refusal> {
    const top = topBundle(this.root)
    const { itemOffset, path } = guide
    const { depthMax } = this.limits
    if (itemOffset !== undefined) {
      const found = await this.#guided(top, ledDepthMax, (directory, { start }, read) =>
        directory.covering(itemOffset - start, read),
      )
      if (!isRefusal(found) || isFailure(found)) return found
    }
    if (path !== undefined && path.length > 1) {
      const found = await this.#guided(top, depthMax, async (directory, bundle, read) => {
        const next = path[bundle.path.length]
        return next === undefined ? undefined : directory.find(next, read)
      })
      if (!isRefusal(found) || isFailure(found)) return found
    }
    return this.#search(top)
  }

  /** Goes down through the entry that `leads` gives on each level, until the item is among the entries. */
  async #guided(
    top: Bundle,
    depthMax: number,
    leads: (
      directory: BundleDirectory,
      bundle: Bundle,
      read: ReadBundle,
    ) => Promise<DirectoryEntry | Refusal | undefined>,
  ): Promise<LocatedItem | Refusal> {
    let bundle = top
    for (let depth = 0; depth < depthMax; depth += 1) {
      const directory = await this.#open(bundle)
      if (isRefusal(directory)) return directory
      const read = bundleReader(this.root, bundle, this.signal)
      const hit = await directory.find(this.id, read)
      if (hit !== undefined) return isRefusal(hit) ? hit : this.#found(bundle, hit)
      if (directory.cut !== undefined) return directory.cut
      const lead = await leads(directory, bundle, read)
      if (lead === undefined) return unknownEverywhere()
      const inner = isRefusal(lead) ? lead : await this.#enter(bundle, lead)
      if (isRefusal(inner)) return inner
      bundle = inner.bundle
    }
    return unknownEverywhere()
  }

  /**
   * All that bytes `from` to `to` (exclusive) of the root lie in, root first: each bundle, and an item that is no bundle. A block
   * of any of them holds for these bytes, so it is a refusal where not all can be seen (nested too deep, entries that cannot be
   * read, bytes of two items): what cannot be judged is not served.
   */
  async around(from: number, to: number): Promise<readonly Id[] | Refusal> {
    this.#headersLeft = ledDepthMax
    let bundle = topBundle(this.root)
    while (bundle.path.length <= ledDepthMax) {
      const { path, start } = bundle
      const directory = await this.#open(bundle)
      if (isRefusal(directory))
        return isFailure(directory) || directory.refused === 'too-large' ? directory : path
      const read = bundleReader(this.root, bundle, this.signal)
      const entry = await directory.covering(from - start, read)
      if (entry === undefined) return directory.cut ?? path
      if (isRefusal(entry)) return entry
      if (to - start > entry.offset + entry.sizeBytes) return unknownEverywhere()
      const inner = await this.#enter(bundle, entry)
      // What lies there is not the item that is listed, so nothing lies in that.
      if (isRefusal(inner)) return isFailure(inner) ? inner : [...path, entry.id]
      if (from < inner.bundle.start) return inner.bundle.path
      bundle = inner.bundle
    }
    return unknownEverywhere()
  }

  /** Depth first: an item's neighbours are looked into only when it is not among them. */
  async #search(bundle: Bundle): Promise<LocatedItem | Refusal> {
    const directory = await this.#open(bundle)
    if (isRefusal(directory)) return directory
    const read = bundleReader(this.root, bundle, this.signal)
    const hit = await directory.find(this.id, read)
    if (hit !== undefined) return isRefusal(hit) ? hit : this.#found(bundle, hit)
    if (directory.cut !== undefined) return directory.cut
    if (bundle.path.length >= this.limits.depthMax) return unknownEverywhere()
    return this.#searchInside(bundle, directory, read)
  }

  /** Looks into the bundles among the first entries. Which of them are bundles is remembered with the directory. */
  async #searchInside(
    bundle: Bundle,
    directory: BundleDirectory,
    read: ReadBundle,
  ): Promise<LocatedItem | Refusal> {
    const wanted = Math.min(this.#headersLeft, directory.count)
    const { bundles } = directory
    const isExamined = bundles !== undefined && bundles.examined >= wanted
    const others = isExamined ? bundles.entries : await directory.first(wanted, read)
    if (isRefusal(others)) return others
    const entries: DirectoryEntry[] = []
    for (const [at, entry] of others.entries()) {
      if (this.#headersLeft <= 0) return unknownEverywhere()
      const inner = await this.#enter(bundle, entry)
      if (isRefusal(inner) && isFailure(inner)) return inner
      if (!isRefusal(inner) && isBundle(inner.header.tags)) {
        entries.push(entry)
        const found = await this.#search(inner.bundle)
        if (!isRefusal(found) || isFailure(found)) return found
      }
      if (!isExamined) directory.bundles = { examined: at + 1, entries }
    }
    return unknownEverywhere()
  }

  #open(bundle: Bundle): Promise<BundleDirectory | Refusal> {
    const { root, limits, signal, client } = this
    return this.directories.open({ root, limits, signal, client }, bundle)
  }

  /** The payload of an entry as a bundle, and the entry's header. */
  async #enter(
    bundle: Bundle,
    entry: DirectoryEntry,
  ): Promise<{ bundle: Bundle; header: ItemHeader } | Refusal> {
    if (this.#headersLeft <= 0) return unknownEverywhere()
    this.#headersLeft -= 1
    const busy = await this.directories.turn(this.client)
    if (busy !== undefined) return busy
    return innerBundle(this.root, bundle, entry, this.signal)
  }

  async #found(bundle: Bundle, entry: DirectoryEntry): Promise<LocatedItem | Refusal> {
    return itemAt(this.root, bundle, entry, this.signal)
  }
}

/** Reads a bundle out of its root. */
export function bundleReader(root: RootBytes, { start }: Bundle, signal: AbortSignal): ReadBundle {
  return (from, to) => readAll(root, start + from, start + to, signal)
}

/** The payload of an entry as a bundle, and the entry's header. */
export async function innerBundle(
  root: RootBytes,
  bundle: Bundle,
  entry: DirectoryEntry,
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
  entry: DirectoryEntry,
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
