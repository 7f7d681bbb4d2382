import type { Id } from '../format/id.js'
import type { Tag } from '../format/tag.js'
import type { Writable } from '../format/writable.js'

/** What is known of a transaction or data item. Absent means unknown, never "none". */
export interface Attributes {
  readonly id: Id
  /** Bytes of the payload. */
  readonly size: number
  readonly contentType?: string
  readonly contentEncoding?: string
  /** SHA-256 of the payload (32 bytes): the name of its blob, whether or not the blob is on disk now. */
  readonly digest?: Uint8Array
  /** The payload was proven against the chain: data root for transactions, signature inside a proven root for items. */
  readonly verified: boolean
  /** The payload came from a source that the operator configured as trusted. */
  readonly trusted: boolean
  /** Height of the block that holds the root transaction; stable follows from it and the tip. */
  readonly height?: number
  /** It is a transaction of the base layer: its own root. Absent for items, and where only the bytes are known. */
  readonly isTransaction?: true
  /** Where the item lies in its root transaction. Absent for transactions and for items not yet located. */
  readonly place?: ItemPlace
  /** What the header says: owner, tags and so on. Absent until the header was read. */
  readonly header?: Header
}

/** What may be known besides; undefined means unknown, too. */
type MoreKnown = {
  readonly [Name in Exclude<keyof Attributes, 'id' | 'size' | 'verified' | 'trusted'>]?:
    | Attributes[Name]
    | undefined
}

/**
 * Attributes with the known facts, always set in the same order. V8 needs several times as long to spread objects, and to read
 * objects with many orders of members.
 */
export function attributesOf(
  { id, size, verified, trusted }: Pick<Attributes, 'id' | 'size' | 'verified' | 'trusted'>,
  { contentType, contentEncoding, digest, height, isTransaction, place, header }: MoreKnown,
): Attributes {
  const attributes: Writable<Attributes> = { id, size, verified, trusted }
  if (contentType !== undefined) attributes.contentType = contentType
  if (contentEncoding !== undefined) attributes.contentEncoding = contentEncoding
  if (digest !== undefined) attributes.digest = digest
  if (height !== undefined) attributes.height = height
  if (isTransaction !== undefined) attributes.isTransaction = isTransaction
  if (place !== undefined) attributes.place = place
  if (header !== undefined) attributes.header = header
  return attributes
}

/** Byte positions of a data item. Offsets count from the start of the root transaction's data. */
export interface ItemPlace {
  readonly rootId: Id
  /** The bundle that directly holds the item; the root itself for a single level. */
  readonly parentId: Id
  /** All that it lies in: root first, the direct parent last. Where no bundle lists it, that may be an item of another kind. */
  readonly path: readonly Id[]
  /** Where the whole item (its header) begins in the root's data. */
  readonly rootItemOffset: number
  /** Where the whole item begins in its direct parent's payload. */
  readonly parentItemOffset: number
  /** Bytes of header and payload. */
  readonly itemSize: number
  /** Bytes of the header: the payload starts so far behind the item's start. */
  readonly headerSize: number
  /**
   * The owner's signature was checked over the bytes that lie here. Absent: only the header was read. Anybody can post a bundle
   * with a stranger's header in front of other bytes.
   */
  readonly isSigned?: true
  /**
   * The index of the chain has the item here: a fact about the item, which the index states at each look and which is kept
   * nowhere else. Any other place is where a copy of its bytes was read, often because a stranger named it; there may be more.
   */
  readonly isIndexed?: true
}

export interface Header {
  readonly signatureType: number
  readonly signature: Uint8Array
  readonly owner: Uint8Array
  /** base64url SHA-256 of the owner key. */
  readonly ownerAddress: string
  readonly target: Uint8Array
  readonly anchor: Uint8Array
  readonly tags: readonly Tag[]
}
