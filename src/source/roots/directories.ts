import type { BundleEntry } from '../../format/bundle.js'
import type { Id } from '../../format/id.js'
import type { RootBytes } from './root-bytes.js'

/** Bundles of more items are read anew each time: their first reader would wait for all of their directory. */
export const directoryItemsMax = 4096

/** Entries of all directories; each takes some 250 bytes. */
const entriesMax = 50_000

/** The items of one bundle, in order. */
export interface Directory {
  readonly entries: readonly BundleEntry[]
  readonly byId: ReadonlyMap<Id, BundleEntry>
}

/** Directories of bundles that were read before: each further item of one is found without going through it. */
export class Directories {
  readonly #known = new Map<string, Directory>()
  #entries = 0

  /** The directory of the bundle that starts at `start` in the root's data. */
  find(root: RootBytes, start: number): Directory | undefined {
    const key = keyOf(root, start)
    const found = this.#known.get(key)
    if (found === undefined) return undefined
    this.#known.delete(key)
    this.#known.set(key, found)
    return found
  }

  /** Only of proven bytes: what others say of a root may be another thing the next time. */
  keep(root: RootBytes, start: number, entries: readonly BundleEntry[]): void {
    const key = keyOf(root, start)
    if (!root.proven || entries.length > directoryItemsMax || this.#known.has(key)) return
    const byId = new Map<Id, BundleEntry>()
    for (const entry of entries) if (!byId.has(entry.id)) byId.set(entry.id, entry)
    this.#known.set(key, { entries, byId })
    this.#entries += entries.length
    for (const [oldest, { entries: gone }] of this.#known) {
      if (this.#entries <= entriesMax) break
      this.#known.delete(oldest)
      this.#entries -= gone.length
    }
  }
}

function keyOf({ id, sizeBytes }: RootBytes, start: number): string {
  return `${id} ${sizeBytes} ${start}`
}
