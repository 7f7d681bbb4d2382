import type { AttributeName, ItemFilter, TagWish } from '../../config/item-filter.js'
import { encodeBase64url } from '../format/base64url.js'
import type { Id } from '../format/id.js'
import { headersOfPayload } from '../format/media-type.js'
import type { Tag } from '../format/tag.js'
import { sha256 } from '../proof/digest.js'
import { normalizedAddress } from '../proof/owner-address.js'

/** What filters look at: a transaction or a data item. */
export interface FilterSubject {
  readonly id: Id
  readonly owner: Uint8Array
  readonly target: Uint8Array
  readonly anchor: Uint8Array
  readonly signature: Uint8Array
  readonly tags: readonly Tag[]
  /** Bytes of the payload. */
  readonly sizeBytes: number
  readonly signatureType?: number
  /** Present for items alone. */
  readonly parentId?: Id
  readonly rootId?: Id
  /** Present for transactions alone. */
  readonly transfer?: {
    readonly format: number
    readonly quantity: bigint
    readonly reward: bigint
    readonly dataRoot: Uint8Array
  }
}

type Field = (subject: FilterSubject) => string | number | undefined

const fields: Readonly<Record<AttributeName, Field>> = {
  id: ({ id }) => id,
  owner: ({ owner }) => encodeBase64url(owner),
  owner_address: ({ owner }) => (owner.length === 0 ? undefined : normalizedAddress(owner)),
  target: ({ target }) => encodeBase64url(target),
  anchor: ({ anchor }) => encodeBase64url(anchor),
  last_tx: ({ anchor, transfer }) => (transfer === undefined ? undefined : encodeBase64url(anchor)),
  signature: ({ signature }) => encodeBase64url(signature),
  signature_type: ({ signatureType }) => signatureType,
  format: ({ transfer }) => transfer?.format,
  quantity: ({ transfer }) => transfer?.quantity.toString(),
  reward: ({ transfer }) => transfer?.reward.toString(),
  data_root: ({ transfer }) => (transfer === undefined ? undefined : encodeBase64url(transfer.dataRoot)),
  data_size: ({ sizeBytes }) => sizeBytes,
  parent_id: ({ parentId }) => parentId,
  root_tx_id: ({ rootId }) => rootId,
  content_type: ({ tags }) => headersOfPayload(tags).contentType,
}

/** Whether the filter takes the subject. Values are compared strictly: a number never equals a text. */
export function matches(filter: ItemFilter, subject: FilterSubject): boolean {
  switch (filter.kind) {
    case 'always':
      return true
    case 'never':
      return false
    case 'nested':
      return subject.parentId !== undefined
    case 'tags':
      return filter.tags.every((wish) => subject.tags.some((tag) => isWished(tag, wish)))
    case 'attributes':
      return filter.attributes.every(({ name, value }) => fields[name](subject) === value)
    case 'partition': {
      const value = fields[filter.field](subject)
      return value !== undefined && filter.targets.includes(partitionOf(String(value), filter.count))
    }
    case 'and':
      return filter.filters.every((one) => matches(one, subject))
    case 'or':
      return filter.filters.some((one) => matches(one, subject))
    case 'not':
      return !matches(filter.filter, subject)
  }
}

function isWished(tag: Tag, { name, value, startsWith }: TagWish): boolean {
  if (!Buffer.from(name).equals(tag.name)) return false
  if (value !== undefined) return Buffer.from(value).equals(tag.value)
  if (startsWith === undefined) return true
  const start = Buffer.from(startsWith)
  return start.equals(tag.value.subarray(0, start.length))
}

/** The first 6 bytes of the text's SHA-256, big-endian, modulo `count`. */
function partitionOf(text: string, count: number): number {
  return Buffer.from(sha256(Buffer.from(text))).readUIntBE(0, 6) % count
}
