import { type Attributes, attributesOf } from '../../catalog/attributes.js'
import { merge } from '../../catalog/merge.js'
import type { Id } from '../../format/id.js'
import type { Writable } from '../../format/writable.js'
import type { BlobDraft } from '../../store/blobs.js'
import type { Announcement } from '../announcement.js'
import type { Found, Wanted } from '../source.js'
import type { ContentRequest } from '../source-messages.js'
import { openablePath } from './transfer-progress.js'

// Objects of a fetch are written out, field by field: to spread one into another costs V8 as much as the rest of a step.

/** What is taken, and how many bytes there must be. */
export interface TransferTarget {
  readonly found: Found
  /** The body of what was found, or one that goes on by a window where that breaks. */
  readonly body: Found['body']
  readonly known: Attributes | undefined
  readonly base: number
  readonly fileBytes: number
}

/** A payload that is all there and judged. */
export interface WholeTransfer extends TransferTarget {
  readonly attributes: Attributes
  readonly digest: Uint8Array
}

/** What is wanted of a source. */
export function wantedOf(
  { id, hints, provenance, window, client }: ContentRequest,
  avoid: ReadonlySet<string>,
  attributes: Attributes | undefined,
  needsPlace: boolean,
): Wanted {
  const wanted: Writable<Wanted> = { id, hints, provenance, avoid }
  if (window !== undefined) wanted.window = window
  if (client !== undefined) wanted.client = client
  if (attributes !== undefined) wanted.attributes = attributes
  if (needsPlace) wanted.needsPlace = true
  return wanted
}

/** What is known with what was found; `digest` of the whole payload, where it was hashed. */
export function attributesFound(
  id: Id,
  { learned, sizeBytes: size, proven, trusted }: Found,
  known: Attributes | undefined,
  digest: Uint8Array | undefined,
): Attributes {
  const { contentType, contentEncoding, height, isTransaction, place, header } = learned
  const facts = { contentType, contentEncoding, digest, height, isTransaction, place, header }
  const verified = proven && digest !== undefined
  return merge(known, attributesOf({ id, size, verified, trusted }, facts))
}

/** Where the bytes of a transfer lie. */
export type TransferPlace = Pick<Announcement, 'path' | 'offset' | 'place' | 'isInMemory'>

/** The bytes of a transfer in a draft of their own. */
export function placeIn({ handle, isInMemory }: BlobDraft): TransferPlace {
  const place = { path: openablePath(handle), offset: 0 }
  return isInMemory === true ? { ...place, isInMemory } : place
}

/** The announcement of a transfer for its readers. */
export function announcementOf(
  { found, base, fileBytes }: TransferTarget,
  attributes: Attributes,
  { path, offset, place, isInMemory }: TransferPlace,
): Announcement {
  const { name: source, trusted, hops } = found
  const announcement: Writable<Announcement> = {
    attributes,
    path,
    offset,
    base,
    sizeBytes: fileBytes,
    source,
    trusted,
  }
  if (place !== undefined) announcement.place = place
  if (isInMemory === true) announcement.isInMemory = true
  if (hops !== undefined) announcement.hops = hops
  return announcement
}
