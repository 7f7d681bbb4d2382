import { bundleCountSize, bundleEntrySize, putBundleNumber, readBundleNumber } from './bundle-table.js'
import { joined } from './bytes.js'
import { Gathered } from './gathered.js'
import { type Id, idOfBytes } from './id.js'
import { type Refusal, refuse } from './refusal.js'

export { bundleCountSize, bundleEntrySize } from './bundle-table.js'

/** An entry of a bundle's table (bundle-table.ts). */
export interface BundleEntry {
  readonly id: Id
  /** Bytes of the whole item, header and payload. */
  readonly sizeBytes: number
  /** Where the item begins in the bundle. */
  readonly offset: number
}

export interface BundleHeader {
  readonly entries: readonly BundleEntry[]
  /** Bytes before the first item. */
  readonly headerSize: number
  /** Bytes of header and items together, as the header says. */
  readonly sizeBytes: number
}

export interface BundleLimits {
  /** Most items taken; each costs 40 bytes of memory while the bundle is read (`BundleTable`). */
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

/** Bytes of an entry in a `BundleTable`: its size as a double, and its id. */
const recordBytes = 40

/** The entries of a bundle's header as they come, each in 40 bytes: objects would take four times as much. */
export class BundleTable {
  /** Entries so far. */
  count = 0
  #end: number
  readonly #records: Gathered
  readonly #record = new Uint8Array(recordBytes)
  readonly #recordView = new DataView(this.#record.buffer)

  /** `count` items are announced. No memory is taken for entries that have not come. */
  constructor(count: number) {
    this.#end = bundleCountSize + count * bundleEntrySize
    this.#records = new Gathered(count * recordBytes)
  }

  /** Where the items read so far end: the bundle's size after the last one. */
  get end(): number {
    return this.#end
  }

  /** What it takes. */
  get memoryBytes(): number {
    return this.#records.roomBytes
  }

  /** Takes the 64 bytes at `at`. Refusal (malformed): the sizes overflow. */
  add(bytes: Uint8Array, at: number): Refusal | undefined {
    const sizeBytes = readBundleNumber(bytes, at)
    if (sizeBytes === undefined || this.#end + sizeBytes > Number.MAX_SAFE_INTEGER) {
      return malformed(`the sizes go beyond 2^53 at item ${this.count}`)
    }
    this.#recordView.setFloat64(0, sizeBytes)
    this.#record.set(bytes.subarray(at + 32, at + bundleEntrySize), 8)
    this.#records.add(this.#record)
    this.count += 1
    this.#end += sizeBytes
    return undefined
  }

  /** The entry of this number, whose item begins at `offset`; undefined: there is none. */
  entry(index: number, offset: number): BundleEntry | undefined {
    if (index >= this.count) return undefined
    const at = index * recordBytes
    const record = this.#records.bytes().subarray(at, at + recordBytes)
    const sizeBytes = new DataView(record.buffer, record.byteOffset).getFloat64(0)
    return { id: idOfBytes(record.subarray(8)), sizeBytes, offset }
  }

  /** All of them, in their order. */
  *entries(): Generator<BundleEntry, void, void> {
    let offset = bundleCountSize + this.count * bundleEntrySize
    for (let index = 0; index < this.count; index += 1) {
      const entry = this.entry(index, offset) as BundleEntry
      yield entry
      offset += entry.sizeBytes
    }
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
  for (let at = bundleCountSize; at < headerSize; at += bundleEntrySize) {
    const refusal = table.add(bytes, at)
    if (refusal !== undefined) return refusal
  }
  if (limits.sizeBytes !== undefined && table.end > limits.sizeBytes) {
    return malformed(`the items end at ${table.end}, past the bundle's ${limits.sizeBytes} bytes`)
  }
  return { entries: [...table.entries()], headerSize, sizeBytes: table.end }
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
