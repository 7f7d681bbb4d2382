import { sha256Of } from '../../native/digest/digest.js'
import { standardTagLimits, type TagLimits } from './avro-tags.js'
import { type Id, idOfBytes } from './id.js'
import { type ItemFields, parseItemFields } from './item-fields.js'
import type { Refusal } from './refusal.js'

export {
  encodeItem,
  encodeItemHeader,
  type ItemParts,
  itemHeaderSizeMax,
  itemSizeMin,
  type SignatureType,
  signatureTypes,
} from './item-fields.js'

export interface ItemHeader extends ItemFields {
  /** SHA-256 of the signature. */
  readonly id: Id
}

/**
 * Reads a header with its id from the first bytes of an item, as many as have come: `'more'` until the whole header is
 * there. See `parseItemFields`.
 */
export function parseItemHeader(
  bytes: Uint8Array,
  limits: TagLimits = standardTagLimits,
): ItemHeader | 'more' | Refusal {
  const fields = parseItemFields(bytes, limits)
  if (fields === 'more' || 'refused' in fields) return fields
  return Object.assign(fields, { id: idOfBytes(sha256Of(fields.signature)) })
}
