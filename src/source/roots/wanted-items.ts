import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { BundleDirectory, DirectoryEntry, ReadBundle } from './bundle-directory.js'
import { type Bundle, Directories, topBundle } from './directories.js'
import {
  bundleReader,
  type Guide,
  innerBundle,
  isFailure,
  itemAt,
  type LocatedItem,
  type LocationLimits,
} from './item-location.js'
import { isBundle } from './learned.js'
import type { RootBytes } from './root-bytes.js'

/** Entries that are remembered of one bundle. */
const entriesMax = 4096

/**
 * Finds many items of one root in one pass: each bundle header is read once, and items are read in the order in which they lie.
 * Guides are never believed: they say only which bundle inside is looked into first.
 */
export class WantedItems {
  readonly found = new Map<Id, LocatedItem>()
  readonly #left: Set<Id>
  readonly #ledThrough = new Set<Id>()
  readonly #offsets: Float64Array
  #headersLeft: number

  constructor(
    private readonly root: RootBytes,
    wanted: ReadonlyMap<Id, Guide>,
    private readonly limits: LocationLimits,
    private readonly signal: AbortSignal,
    private readonly directories = new Directories(),
  ) {
    this.#left = new Set(wanted.keys())
    this.#headersLeft = limits.headersMax
    const offsets: number[] = []
    for (const { path, itemOffset } of wanted.values()) {
      for (const id of path ?? []) this.#ledThrough.add(id)
      if (itemOffset !== undefined) offsets.push(itemOffset)
    }
    this.#offsets = Float64Array.from(offsets).sort()
  }

  /**
   * Resolves when `found` has all of them that are in the root, within the limits. A refusal: bytes could not be had, and says
   * nothing about those that were not found.
   */
  async locate(): Promise<Refusal | undefined> {
    const failed = await this.#visit(topBundle(this.root))
    return failed !== undefined && isFailure(failed) ? failed : undefined
  }

  async #visit(bundle: Bundle): Promise<Refusal | undefined> {
    const { root, limits, signal, directories } = this
    const directory = await directories.open({ root, limits, signal }, bundle)
    if (isRefusal(directory)) return directory
    const read = bundleReader(root, bundle, signal)
    const hits = await this.#among(directory, read)
    if (isRefusal(hits)) return hits
    for (const entry of hits) {
      const item = await itemAt(root, bundle, entry, signal)
      if (!isRefusal(item)) this.found.set(entry.id, item)
      else if (isFailure(item)) return item
    }
    const { cut } = directory
    if (cut !== undefined || bundle.path.length >= limits.depthMax || this.#left.size === 0) return cut
    const entries = await directory.first(entriesMax, read)
    return isRefusal(entries) ? entries : this.#inside(bundle, entries)
  }

  /** Entries of wanted items, in the order in which they lie. They are wanted no more. */
  async #among(directory: BundleDirectory, read: ReadBundle): Promise<DirectoryEntry[] | Refusal> {
    const hits: DirectoryEntry[] = []
    for (const id of this.#left) {
      const entry = await directory.find(id, read)
      if (isRefusal(entry)) return entry
      if (entry !== undefined) hits.push(entry)
    }
    for (const { id } of hits) this.#left.delete(id)
    return hits.sort((one, other) => one.offset - other.offset)
  }

  /** Goes into the bundles inside: those that a guide leads through first. */
  async #inside(bundle: Bundle, entries: readonly DirectoryEntry[]): Promise<Refusal | undefined> {
    const led = new Set(this.#left.size === 0 ? [] : entries.filter((entry) => this.#leads(bundle, entry)))
    for (const entry of [...led, ...entries.filter((one) => !led.has(one))]) {
      if (this.#left.size === 0 || this.#headersLeft <= 0) return undefined
      this.#headersLeft -= 1
      await this.directories.turn()
      const inner = await innerBundle(this.root, bundle, entry, this.signal)
      if (isRefusal(inner)) {
        if (isFailure(inner)) return inner
        continue
      }
      if (!isBundle(inner.header.tags)) continue
      const failed = await this.#visit(inner.bundle)
      if (failed !== undefined && isFailure(failed)) return failed
    }
    return undefined
  }

  #leads(bundle: Bundle, { id, offset, sizeBytes }: DirectoryEntry): boolean {
    if (this.#ledThrough.has(id)) return true
    const start = bundle.start + offset
    let [low, high] = [0, this.#offsets.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#offsets[middle] ?? 0) < start) low = middle + 1
      else high = middle
    }
    return (this.#offsets[low] ?? Number.POSITIVE_INFINITY) < start + sizeBytes
  }
}
