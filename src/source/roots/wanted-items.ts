import type { BundleEntry } from '../../format/bundle.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { type Bundle, scanEntries, topBundle } from './bundle-entries.js'
import type { Directories } from './directories.js'
import {
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
    private readonly directories?: Directories,
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
    const hits: BundleEntry[] = []
    const entries: BundleEntry[] = []
    const failed = await scanEntries({ root, limits, signal, directories }, bundle, (entry) => {
      // One of them may be a bundle with entries of them.
      if (this.#left.delete(entry.id)) hits.push(entry)
      if (entries.length < entriesMax) entries.push(entry)
      return this.#left.size === 0
    })
    for (const entry of hits) {
      const item = await itemAt(root, bundle, entry, signal)
      if (!isRefusal(item)) this.found.set(entry.id, item)
      else if (isFailure(item)) return item
    }
    if (failed !== undefined || bundle.path.length >= limits.depthMax) return failed
    return this.#inside(bundle, entries)
  }

  /** Goes into the bundles inside: those that a guide leads through first. */
  async #inside(bundle: Bundle, entries: readonly BundleEntry[]): Promise<Refusal | undefined> {
    const led = new Set(this.#left.size === 0 ? [] : entries.filter((entry) => this.#leads(bundle, entry)))
    for (const entry of [...led, ...entries.filter((one) => !led.has(one))]) {
      if (this.#left.size === 0 || this.#headersLeft <= 0) return undefined
      this.#headersLeft -= 1
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

  #leads(bundle: Bundle, { id, offset, sizeBytes }: BundleEntry): boolean {
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
