import { bundleCountSize, bundleEntrySize, putBundleNumber, readBundleNumber } from './bundle-table.js'
import { joined } from './bytes.js'
import { type Id, idOfBytes } from './id.js'
import { type Refusal, refuse } from './refusal.js'

export { bundleCountSize, bundleEntrySize } from './bundle-table.js'

/** An entry of a bundle's table (bundle-table.ts). */
export interface BundleEntry {
  readonly id: Id
  /** Of the whole item, header and payload. */
  readonly sizeBytes: number
  /** Of the item in the bundle. */
  readonly offset: number
  /** An earlier entry has the same id. */
  readonly duplicate: boolean
}

export interface BundleHeader {
  readonly entries: readonly BundleEntry[]
  /** Bytes before the first item. */
  readonly headerSize: number
  /** Bytes of header and items together, as the header says. */
  readonly sizeBytes: number
}

export interface BundleLimits {
  /** Most items taken; each costs some hundred bytes of memory here. */
  readonly itemsMax: number
  /** Bytes of the whole bundle where they are known: a header that says more is refused before it is read. */
  readonly sizeBytes?: number
}

export const standardBundleLimits: BundleLimits = { itemsMax: 1_000_000 }

function malformed(message: string): Refusal {
  return refuse('malformed', 'client', `bundle: ${message}`)
}

/** The number of items that the first 32 bytes say, if it can be true. */
export function readBundleCount(bytes: Uint8Array, limits: BundleLimits): number | Refusal {
  const count = readBundleNumber(bytes, 0)
  if (count === undefined || count > limits.itemsMax) return malformed(`more than ${limits.itemsMax} items`)
  if (limits.sizeBytes !== undefined && bundleCountSize + count * bundleEntrySize > limits.sizeBytes) {
    return malformed(`${count} items do not fit into ${limits.sizeBytes} bytes`)
  }
  return count
}

/** Reads entries one by one; keeps count of where the next item starts, and of the ids seen. */
export class BundleTable {
  #at: number
  readonly #seen = new Set<Id>()

  /** `count` items are announced. */
  constructor(count: number) {
    this.#at = bundleCountSize + count * bundleEntrySize
  }

  /** Where the items read so far end: the bundle's size after the last one. */
  get end(): number {
    return this.#at
  }

  /** Reads the 64 bytes at `at`. */
  read(bytes: Uint8Array, at: number): BundleEntry | Refusal {
    const sizeBytes = readBundleNumber(bytes, at)
    if (sizeBytes === undefined || this.#at + sizeBytes > Number.MAX_SAFE_INTEGER) {
      return malformed(`the sizes go beyond 2^53 at item ${this.#seen.size}`)
    }
    const id = idOfBytes(bytes.subarray(at + 32, at + 64))
    const entry = { id, sizeBytes, offset: this.#at, duplicate: this.#seen.has(id) }
    this.#seen.add(id)
    this.#at += sizeBytes
    return entry
  }
}

/**
 * Reads a bundle's header from its first bytes, as many as have come: `'more'` until all entries are there. Refuses more
 * items than the limits allow or than the bundle has room for, and sizes that overflow or exceed the bundle.
 */
export function parseBundleHeader(
  bytes: Uint8Array,
  limits: BundleLimits = standardBundleLimits,
): BundleHeader | 'more' | Refusal {
  if (bytes.length < bundleCountSize) return 'more'
  const count = readBundleCount(bytes, limits)
  if (typeof count !== 'number') return count
  const headerSize = bundleCountSize + count * bundleEntrySize
  if (bytes.length < headerSize) return 'more'
  const table = new BundleTable(count)
  const entries: BundleEntry[] = []
  for (let at = bundleCountSize; at < headerSize; at += bundleEntrySize) {
    const entry = table.read(bytes, at)
    if ('refused' in entry) return entry
    entries.push(entry)
  }
  if (limits.sizeBytes !== undefined && table.end > limits.sizeBytes) {
    return malformed(`the items end at ${table.end}, past the bundle's ${limits.sizeBytes} bytes`)
  }
  return { entries, headerSize, sizeBytes: table.end }
}

/** The header of a bundle of these items. */
export function encodeBundleHeader(
  items: readonly { readonly id: Id; readonly sizeBytes: number }[],
): Uint8Array {
  // One buffer for all: two for each of ten thousand items take longer than to hash what they are about.
  const header = Buffer.alloc(bundleCountSize + items.length * bundleEntrySize)
  putBundleNumber(header, items.length, 0)
  for (const [index, { id, sizeBytes }] of items.entries()) {
    const at = bundleCountSize + index * bundleEntrySize
    putBundleNumber(header, sizeBytes, at)
    header.write(id, at + 32, 'base64url')
  }
  return header
}

/** A bundle of whole items, each with its id. */
export function encodeBundle(items: readonly { readonly id: Id; readonly bytes: Uint8Array }[]): Uint8Array {
  const header = encodeBundleHeader(items.map((item) => ({ id: item.id, sizeBytes: item.bytes.length })))
  return joined(header, ...items.map((item) => item.bytes))
}
