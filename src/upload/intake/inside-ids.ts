import { bundleCountSize, bundleEntrySize, readBundleCount } from '../../format/bundle.js'
import { readBundleNumber } from '../../format/bundle-table.js'
import { idBytes } from '../../format/id.js'
import { type ItemHeader, itemHeaderSizeMax, parseItemHeader } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { isBundle } from '../../source/roots/learned.js'

/** Puts bytes of a file from `at` on into the buffer; resolves with how many there were. */
export type ReadAt = (buffer: Uint8Array, at: number) => Promise<number>

/** A bundle that lies in a file. */
export interface BundlePlace {
  /** Where its payload begins. */
  readonly start: number
  /** Behind its last byte. */
  readonly end: number
}

export interface InsideIds {
  /** 32 bytes each. */
  readonly ids: readonly Uint8Array[]
  /** Entries of tables that were read for them. */
  readonly entries: number
  /** One of them is blocked (`isBlocked`). */
  readonly hasBlocked: boolean
}

/** Entries that one step reads. */
const entriesAtOnce = 256
/** A header of an item mostly has less; that of a small item is read together with the items behind it. */
const [headBytes, aheadBytes] = [4096, 65_536]
const headerMax = itemHeaderSizeMax()
/** Deeper bundles are opened by no gateway. */
const depthMax = 10

/**
 * The ids of all items in a bundle, at every level, in steps. Only tables and headers are read, so memory and time do not depend
 * on payloads; of each level a piece of the table and one of the items is in memory. An item has the id of its own signature,
 * whatever its entry says: nobody can name an item that he does not have. What cannot be read is left out. Returns whether a
 * bundle lies deeper than any gateway looks: what is in it was not read.
 */
export function insideIds(
  readAt: ReadAt,
  place: BundlePlace,
  isBlocked: (header: ItemHeader) => boolean = () => false,
): AsyncGenerator<InsideIds, boolean> {
  return idsOf({ readAt, isBlocked }, place, depthMax)
}

interface Reading {
  readonly readAt: ReadAt
  readonly isBlocked: (header: ItemHeader) => boolean
}

async function* idsOf(
  reading: Reading,
  { start, end }: BundlePlace,
  depth: number,
): AsyncGenerator<InsideIds, boolean> {
  const { readAt } = reading
  const [table, items] = [new Window(readAt, end), new Window(readAt, end)]
  const limits = { itemsMax: Number.MAX_SAFE_INTEGER, sizeBytes: end - start }
  const first = await table.bytes(start, bundleCountSize, bundleCountSize)
  const count = first.length < bundleCountSize ? 0 : readBundleCount(first, limits)
  if (isRefusal(count)) return false
  let [ids, entries, isTooDeep, hasBlocked]: [Uint8Array[], number, boolean, boolean] = [[], 0, false, false]
  let itemAt = start + bundleCountSize + count * bundleEntrySize
  for (let index = 0; index < count && itemAt < end; index += 1) {
    const entryAt = start + bundleCountSize + index * bundleEntrySize
    const sizeBytes = readBundleNumber(await table.bytes(entryAt, bundleEntrySize, aheadBytes), 0)
    if (sizeBytes === undefined) break
    const itemEnd = Math.min(itemAt + sizeBytes, end)
    const header = await headerAt(items, itemAt, itemEnd)
    entries += 1
    if (header !== undefined) {
      ids.push(idBytes(header.id))
      hasBlocked ||= reading.isBlocked(header)
    }
    if (header !== undefined && isBundle(header.tags)) {
      if (depth === 1) isTooDeep = true
      else {
        const inside = { start: itemAt + header.headerSize, end: itemEnd }
        isTooDeep = (yield* idsOf(reading, inside, depth - 1)) || isTooDeep
      }
    }
    itemAt = itemEnd
    if (entries < entriesAtOnce) continue
    yield { ids, entries, hasBlocked }
    ids = []
    entries = 0
  }
  if (entries > 0) yield { ids, entries, hasBlocked }
  return isTooDeep
}

async function headerAt(items: Window, at: number, end: number) {
  const isSmall = end - at < headBytes
  for (const wanted of [headBytes, headerMax]) {
    const bytes = await items.bytes(at, Math.min(wanted, end - at), isSmall ? aheadBytes : wanted)
    const header = parseItemHeader(bytes)
    if (header !== 'more') return isRefusal(header) ? undefined : header
  }
  return undefined
}

/** A piece of a file in memory. */
class Window {
  #at = 0
  #bytes: Buffer<ArrayBufferLike> = Buffer.alloc(0)

  constructor(
    private readonly readAt: ReadAt,
    private readonly end: number,
  ) {}

  /** So many bytes from `at` on, less where the file ends: a view, valid until the next call. Reads `ahead` where it reads. */
  async bytes(at: number, wanted: number, ahead: number): Promise<Buffer> {
    const from = at - this.#at
    if (from >= 0 && from + wanted <= this.#bytes.length) return this.#bytes.subarray(from, from + wanted)
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(Math.max(wanted, ahead), this.end - at)))
    let filled = 0
    while (filled < buffer.length) {
      const count = await this.readAt(buffer.subarray(filled), at + filled)
      if (count === 0) break
      filled += count
    }
    this.#at = at
    this.#bytes = buffer.subarray(0, filled)
    return this.#bytes.subarray(0, wanted)
  }
}
