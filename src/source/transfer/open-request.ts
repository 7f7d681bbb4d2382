import type { Writable } from '../../format/writable.js'
import type { Announcement } from '../announcement.js'
import type { OpenMessage, SourceReply } from '../source-messages.js'
import type { ContentTransfer } from './content-transfer.js'
import type { TransferRequest } from './transfer-parts.js'

/** What a transfer is to bring. `separate`: only the window; `isUnknown`: the catalog knows nothing of the id. */
export function transferRequestOf(
  { id, hints, provenance, window, client, named = false }: OpenMessage,
  separate: boolean,
  isUnknown: boolean,
): TransferRequest {
  const request: Writable<TransferRequest> = { id, hints, provenance, named, isUnknown }
  if (client !== undefined) request.client = client
  if (separate && window !== undefined) request.window = window
  return request
}

/** Under which name others join a transfer: what may change its result stands in it. */
export function transferKey({ id, window }: OpenMessage, words: string, separate: boolean): string {
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
}: Announcement): SourceReply | undefined {
  const { digest } = attributes
  if (place === undefined || digest === undefined) return undefined
  const reply = { kind: 'placed', attributes, digest, place, source, trusted } as const
  return hops === undefined ? reply : { ...reply, hops }
}

/** The answer for a payload that is read while it comes. */
export function openedOf(
  reader: number,
  transfer: ContentTransfer,
  { place: _, ...announcement }: Announcement,
): SourceReply {
  return { kind: 'opened', reader, slot: transfer.progress.slot, ...announcement }
}
