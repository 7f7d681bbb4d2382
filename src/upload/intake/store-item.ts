import { encodeBase64url } from '../../format/base64url.js'
import { headersOfPayload } from '../../format/media-type.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { normalizedAddress } from '../../proof/owner-address.js'
import { isBundle } from '../../source/roots/learned.js'
import type { LogPlace } from '../../store/segments/log-file.js'
import type { RecordDigest } from '../../store/segments/segment-record.js'
import type { ItemCharge } from '../charging/charging.js'
import { saleFacts } from '../charging/open-sales.js'
import type { Purchase } from '../charging/sales.js'
import type { AcceptedItem, LoggedUpload } from '../records/uploads.js'
import { fixedAnswers, refusalAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { StoredUploads } from '../stored/stored-uploads.js'
import type { BundleScan } from './bundle-scan.js'
import type { ReadItem } from './item-reader.js'

/** The bytes of an item that was read to its end. */
export interface Spooled {
  /** Same as `Spool.appendToLog`. */
  appendToLog(digest: RecordDigest, meta: Uint8Array, until?: Promise<unknown>): Promise<LogPlace | Refusal>
}

/** The object store that has accepted items, too. */
export type ItemStore = Pick<StoredUploads, 'put' | 'refusal' | 'holds'>

/** The record of an item. `deadlineHeight`: the receipt promises that it is permanent by then. */
export function loggedUpload(
  { header, digest, logDigest, itemsInside }: ReadItem,
  charge: ItemCharge,
  purchase: Purchase | undefined,
  terms: Pick<LoggedUpload, 'receivedMs' | 'deadlineHeight'>,
): LoggedUpload {
  const { contentType } = headersOfPayload(header.tags)
  return {
    id: header.id,
    headerSize: header.headerSize,
    owner: normalizedAddress(header.owner),
    ...terms,
    winc: charge.winc,
    ...(contentType === undefined ? {} : { contentType }),
    digest: encodeBase64url(digest),
    ...(logDigest instanceof Uint8Array ? {} : { logDigest: encodeBase64url(logDigest.digest) }),
    ...(isBundle(header.tags) ? { isBundle: true, itemsInside } : {}),
    ...(purchase === undefined ? {} : { sale: saleFacts(purchase, header.id) }),
    ...(charge.heldAs === undefined ? {} : { heldAs: charge.heldAs }),
    ...(charge.free === undefined ? {} : { free: charge.free }),
  }
}

/** Where items are stored, beside the upload log. */
export interface StoringParts {
  readonly scan: Pick<BundleScan, 'scan' | 'drop'>
  readonly objectStore?: ItemStore
}

export interface StoredAt extends Pick<AcceptedItem, 'place' | 'stored'> {
  /** Writes the ids of the items in a bundle, in the transaction that accepts it. Absent: it is no bundle. */
  readonly writeIds?: () => void
}

/** The answer to an item that could not be stored. */
export function notStored(refusal: Refusal): UploadAnswer {
  return refusal.refused === 'blocked' ? fixedAnswers.forbidden : refusalAnswer(refusal)
}

/** Stores an item where a receipt promises that it is: in the upload log, and in the object store where there is one. */
export async function storeItem(
  { header, sizeBytes, logDigest }: ReadItem,
  logged: LoggedUpload,
  spooled: Spooled,
  { scan, objectStore }: StoringParts,
  until: Promise<unknown> | undefined,
): Promise<StoredAt | Refusal> {
  const { id, headerSize } = header
  const meta = Buffer.from(JSON.stringify(logged))
  const place = await spooled.appendToLog(logDigest, meta, until)
  if (isRefusal(place)) return place
  const writeIds =
    logged.isBundle === true ? await scan.scan({ id, headerSize, place }, meta.length) : undefined
  if (isRefusal(writeIds)) return writeIds
  const here = writeIds === undefined ? { place } : { place, writeIds }
  if (objectStore === undefined) return here
  const contentType = logged.contentType ?? ''
  const item = { id, headerSize, contentType, sizeBytes, digest: logDigest, meta, place }
  const stored = await objectStore.put(item)
  if (isRefusal(stored)) {
    if (writeIds !== undefined) await scan.drop(item)
    return stored
  }
  return stored === undefined ? here : { ...here, stored }
}
