import { type ItemHeader, parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import type { MadeItem } from './weave.js'

export function headerOf({ bytes }: Pick<MadeItem, 'bytes'>): ItemHeader {
  const header = parseItemHeader(bytes)
  if (header === 'more' || isRefusal(header)) throw new Error('an item of our own does not parse')
  return header
}

/** What anybody can make of an item: its header, and so its id, in front of other bytes. */
export function forged(item: MadeItem, payload: Uint8Array): MadeItem {
  const head = item.bytes.subarray(0, headerOf(item).headerSize)
  return { id: item.id, bytes: Buffer.concat([head, payload]), payload }
}

/** The same with other tags: of a header, the id shows only the signature. */
export function forgedTags(item: MadeItem, other: MadeItem): MadeItem {
  const { signature } = headerOf(item)
  const bytes = Buffer.from(other.bytes)
  // Behind the two bytes of the signature's type.
  Buffer.from(signature).copy(bytes, 2)
  return { id: item.id, bytes, payload: other.payload }
}
