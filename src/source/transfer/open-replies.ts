import type { Announcement } from '../announcement.js'
import type { SourceReply } from '../source-messages.js'
import type { ContentTransfer } from './content-transfer.js'

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
