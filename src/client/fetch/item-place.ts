import { encodeBase64url } from '../../format/base64url.js'
import { bundleCountSize, bundleEntrySize, readBundleNumber } from '../../format/bundle-table.js'
import { readItemHead, type SignedHead } from '../item-layout.js'
import { untrue } from './gateways.js'
import type { ProvenData } from './proven-data.js'

/** Where an item's payload lies in its root transaction: followed through the indexes of the bundles, byte by byte proven. */
export interface ItemPayload {
  readonly header: SignedHead
  /** Offsets in the root's data. */
  readonly start: number
  readonly end: number
}

/** An index of a bundle is read in one go: 100,000 entries are 6.4 MB. */
const entriesMax = 100_000
/** No header is longer: the largest keys, and tags to their limit. */
const headBytesMax = 620_000
/** What is read of an item first: most headers are shorter. */
const headBytesUsual = 4096
const nestingMax = 16

function numberAt(bytes: Uint8Array, at: number): number {
  return readBundleNumber(bytes, at) ?? Number.POSITIVE_INFINITY
}

/** Finds an item: `path` are the ids from the root's first bundle inside down to the item itself. */
export async function findItem(
  data: ProvenData,
  path: readonly string[],
  signal?: AbortSignal,
): Promise<ItemPayload> {
  if (path.length === 0 || path.length > nestingMax) throw untrue('the item lies in no bundle')
  let place: ItemPayload | undefined
  for (const id of path) {
    const within = { start: place?.start ?? 0, end: place?.end ?? data.transaction.dataSize }
    place = await findInBundle(data, within, id, signal)
  }
  return place as ItemPayload
}

async function findInBundle(
  data: ProvenData,
  within: { readonly start: number; readonly end: number },
  id: string,
  signal: AbortSignal | undefined,
): Promise<ItemPayload> {
  const missing = untrue(`the bundle in ${data.transaction.id} does not list ${id}`)
  const tableStart = within.start + bundleCountSize
  if (tableStart > within.end) throw missing
  const count = numberAt(await data.bytes(within.start, tableStart, signal), 0)
  let start = tableStart + bundleEntrySize * count
  if (count > entriesMax || start > within.end) throw missing
  const index = await data.bytes(tableStart, start, signal)
  for (let at = 0; at < index.length; at += bundleEntrySize) {
    const size = numberAt(index, at)
    const end = start + size
    if (end > within.end) throw missing
    if (encodeBase64url(index.subarray(at + 32, at + bundleEntrySize)) === id)
      return payloadOf({ data, start, end, id, signal })
    start = end
  }
  throw missing
}

async function payloadOf(item: {
  readonly data: ProvenData
  readonly start: number
  readonly end: number
  readonly id: string
  readonly signal: AbortSignal | undefined
}): Promise<ItemPayload> {
  const { data, start, end, id, signal } = item
  for (const size of [headBytesUsual, headBytesMax]) {
    const header = readItemHead(await data.bytes(start, Math.min(start + size, end), signal))
    if (header === 'more') continue
    if (header?.id !== id) break
    return { header, start: start + header.bytes.length, end }
  }
  throw untrue(`what ${data.transaction.id} has in place of ${id} is another item`)
}
