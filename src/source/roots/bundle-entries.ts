import {
  type BundleEntry,
  BundleTable,
  bundleCountSize,
  bundleEntrySize,
  readBundleCount,
} from '../../format/bundle.js'
import type { Id } from '../../format/id.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { unknownEverywhere } from '../refusals.js'
import { type Directories, directoryItemsMax } from './directories.js'
import { type RootBytes, readAll } from './root-bytes.js'

/** A bundle: the root's data, or the payload of an item in it. */
export interface Bundle {
  readonly id: Id
  /** Where it starts in the root's data. */
  readonly start: number
  readonly sizeBytes: number
  /** Root first, itself last. */
  readonly path: readonly Id[]
}

/** All of a root's data as a bundle. */
export function topBundle({ id, sizeBytes }: RootBytes): Bundle {
  return { id, start: 0, sizeBytes, path: [id] }
}

export interface EntriesParts {
  readonly root: RootBytes
  /** Larger bundle headers (64 bytes an item) are not read. */
  readonly limits: { readonly headerMaxBytes: number }
  readonly signal: AbortSignal
  readonly directories: Directories | undefined
}

const entriesMax = 1_000_000

/**
 * Reads the entries of a bundle's header until `visit` returns true. Where the directory is remembered and lists `only`, nothing
 * else is visited. A refusal: the header could not be read to the end, and `visit` had not returned true.
 */
export async function scanEntries(
  { root, limits, signal, directories }: EntriesParts,
  { start, sizeBytes }: Bundle,
  visit: (entry: BundleEntry) => boolean,
  only?: Id,
): Promise<Refusal | undefined> {
  const known = directories?.find(root, start)
  if (known !== undefined) {
    const wanted = only === undefined ? undefined : known.byId.get(only)
    for (const entry of wanted === undefined ? known.entries : [wanted]) if (visit(entry)) break
    return undefined
  }
  if (sizeBytes < bundleCountSize) return unknownEverywhere()
  const first = await readAll(root, start, start + bundleCountSize, signal)
  if (isRefusal(first)) return first
  const count = readBundleCount(first, { itemsMax: entriesMax, sizeBytes })
  if (isRefusal(count)) return count
  const headerBytes = count * bundleEntrySize
  if (headerBytes > limits.headerMaxBytes)
    return refuse('too-large', 'upstream', 'the bundle header is too large')
  const isKept = directories !== undefined && root.proven && count <= directoryItemsMax
  const entries: BundleEntry[] = []
  let isFound = false
  const table = new BundleTable(count)
  let rest: Uint8Array = new Uint8Array(0)
  const from = start + bundleCountSize
  for await (const piece of root.stream(from, from + headerBytes, signal)) {
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
  if (isKept) directories?.keep(root, start, entries)
  return undefined
}
