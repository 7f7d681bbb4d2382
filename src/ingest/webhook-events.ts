import { createHash } from 'node:crypto'
import type { BlockInput } from '../catalog/index-protocol.js'
import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import type { Tag } from '../format/tag.js'
import { normalizedAddress } from '../proof/owner-address.js'
import type { FilterSubject } from './filter.js'

/** An event as it is sent to receivers: `body` is JSON `{event, data}`. */
export interface WebhookEvent {
  /** 16 bytes that are the same for the same event, so that receivers can detect repetitions. */
  readonly key: Uint8Array
  readonly body: Uint8Array
}

type EventName =
  | 'tx-indexed'
  | 'ans104-data-item-indexed'
  | 'block-indexed'
  | 'data-cached'
  | 'upload-accepted'
  | 'upload-permanent'

/** JSON of the tags of one event, as it waits on disk for each receiver. Tags that clients accept (4 KiB) take 25 KiB at most. */
const tagsMaxBytes = 32_768
/** Longer types of content are not stated. */
const typeMaxBytes = 1024

/** A transaction of a block, or a data item, that is in the index now. */
export function indexedEvent(subject: FilterSubject, height: number): WebhookEvent {
  const { id, owner, target, anchor, tags, sizeBytes, signatureType, parentId, rootId, transfer } = subject
  const data = {
    id,
    height,
    owner_address: owner.length === 0 ? null : normalizedAddress(owner),
    target: encodeBase64url(target),
    anchor: encodeBase64url(anchor),
    ...statedTags(tags),
    data_size: String(sizeBytes),
    ...(signatureType === undefined ? {} : { signature_type: signatureType }),
    ...(parentId === undefined ? {} : { parent_id: parentId }),
    ...(rootId === undefined ? {} : { root_tx_id: rootId }),
    ...(transfer === undefined
      ? {}
      : { quantity: transfer.quantity.toString(), reward: transfer.reward.toString() }),
  }
  return eventOf(rootId === undefined ? 'tx-indexed' : 'ans104-data-item-indexed', `${id} ${height}`, data)
}

/** A block that is in the index now. */
export function blockEvent({ id, height, previous, timestamp, transactionCount }: BlockInput): WebhookEvent {
  const data = { indep_hash: id, height, previous_block: previous, timestamp, tx_count: transactionCount }
  return eventOf('block-indexed', id, data)
}

/** Content that is in the cache now. */
export function cachedEvent(id: Id, digest: Uint8Array, sizeBytes: number, type?: string): WebhookEvent {
  const hash = encodeBase64url(digest)
  const isStated = type !== undefined && type.length <= typeMaxBytes
  const data = { id, hash, data_size: String(sizeBytes), ...(isStated ? { content_type: type } : {}) }
  return eventOf('data-cached', `${id} ${hash}`, data)
}

/** An item that was accepted, with its signed receipt. */
export function acceptedEvent(receipt: { readonly id: string }, sizeBytes: number): WebhookEvent {
  return eventOf('upload-accepted', receipt.id, { receipt, data_item_size: String(sizeBytes) })
}

/** An item that is in the chain so deep that nothing takes it back. */
export function permanentEvent(id: string, bundleId: string, height: number): WebhookEvent {
  return eventOf('upload-permanent', `${id} ${bundleId}`, { id, root_tx_id: bundleId, height })
}

function eventOf(event: EventName, subject: string, data: object): WebhookEvent {
  const key = createHash('sha256').update(`${event} ${subject}`).digest().subarray(0, 16)
  return { key, body: Buffer.from(JSON.stringify({ event, data })) }
}

/** The first tags, and how many more there are. */
function statedTags(tags: readonly Tag[]): object {
  const stated: object[] = []
  let bytes = 0
  for (const tag of tags) {
    // No text in JSON is shorter than the tag itself.
    if (bytes + tag.name.length + tag.value.length > tagsMaxBytes) break
    const text = tagOf(tag)
    bytes += Buffer.byteLength(JSON.stringify(text))
    if (bytes > tagsMaxBytes) break
    stated.push(text)
  }
  const left = tags.length - stated.length
  return { tags: stated, ...(left === 0 ? {} : { tags_omitted: left }) }
}

/** Bytes that are no UTF-8 become replacement characters, because JSON has no other form for them. */
function tagOf({ name, value }: Tag): { name: string; value: string } {
  return { name: Buffer.from(name).toString(), value: Buffer.from(value).toString() }
}
