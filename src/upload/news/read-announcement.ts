import { closeSync, openSync, readSync } from 'node:fs'
import { decodeBase64url } from '../../format/base64url.js'
import { parseItemHeader } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { isPlaceError } from '../../store/disk-error.js'
import { logFileName } from '../../store/segments/log-file.js'
import type { AcceptedItem } from '../records/uploads.js'
import type { AnnouncedItem, ItemAnnouncer } from './item-announcer.js'

/**
 * The announcement of an item, read from the upload log. Undefined: its header cannot be read, or an older release recorded it
 * without a digest. One place that cannot be read is no reason to announce no others.
 */
export function readAnnouncement(logFolder: string, item: AcceptedItem): AnnouncedItem | undefined {
  const { place, headerSize, digest: text } = item
  const digest = text === undefined ? undefined : decodeBase64url(text)
  if (digest === undefined) return undefined
  const bytes = Buffer.alloc(headerSize)
  try {
    const file = openSync(`${logFolder}/${logFileName(place.file)}`, 'r')
    try {
      if (readSync(file, bytes, 0, headerSize, place.offset) < headerSize) return undefined
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if (!isPlaceError(error)) throw error
    return undefined
  }
  const header = parseItemHeader(bytes)
  if (header === 'more' || isRefusal(header)) return undefined
  return { header, sizeBytes: place.sizeBytes, digest }
}

/** Announces items that are in the upload log already: brought back by a start, or taken over. */
export function announceLogged(
  items: readonly AcceptedItem[],
  logFolder: string,
  announcer: Pick<ItemAnnouncer, 'announce'>,
): void {
  for (const item of items) {
    const announced = readAnnouncement(logFolder, item)
    if (announced !== undefined) void announcer.announce(announced)
  }
}
