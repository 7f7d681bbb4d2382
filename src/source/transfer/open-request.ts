import type { Writable } from '../../format/writable.js'
import type { SourceReply, SourceRequest } from '../source-messages.js'
import type { TransferStart } from '../transfer-start.js'
import type { ContentTransfer } from './content-transfer.js'
import type { TransferWish } from './transfer-parts.js'

export type Open = Extract<SourceRequest, { kind: 'open' }>

/** What a transfer is to bring. `separate`: only the window; `isUnknown`: the catalog knows nothing of the id. */
export function wishOf(
  { id, hints, provenance, window, client, named = false }: Open,
  separate: boolean,
  isUnknown: boolean,
): TransferWish {
  const wish: Writable<TransferWish> = { id, hints, provenance, named, isUnknown }
  if (client !== undefined) wish.client = client
  if (separate && window !== undefined) wish.window = window
  return wish
}

/** Under which name others join a transfer: what may change its result stands in it. */
export function transferKey({ id, window }: Open, words: string, separate: boolean): string {
  const ends = window?.mayEndEarlier === true ? '?' : ''
  const part = separate && window !== undefined ? `${window.start}-${window.end}${ends}` : ''
  return `${id} ${part} ${words}`
}

/** The answer for a payload that lies in a segment; undefined for others. */
export function placedOf({
  attributes,
  place,
  source,
  trusted,
  hops,
}: TransferStart): SourceReply | undefined {
  const { digest } = attributes
  if (place === undefined || digest === undefined) return undefined
  const reply = { kind: 'placed', attributes, digest, place, source, trusted } as const
  return hops === undefined ? reply : { ...reply, hops }
}

/** The answer for a payload that is read while it comes. */
export function openedOf(
  reader: number,
  transfer: ContentTransfer,
  { place: _, ...opening }: TransferStart,
): SourceReply {
  return { kind: 'opened', reader, slot: transfer.delivery.slot, ...opening }
}
