import { decodeTags, encodeTags, standardTagLimits, type TagLimits } from './avro-tags.js'
import { copyOf, joined } from './bytes.js'
import { isRefusal, type Refusal, refuse } from './refusal.js'
import type { Tag } from './tag.js'

/**
 * A signed data item (ANS-104), little-endian throughout:
 *
 *     type u16 | signature S | owner P | flag u8 [target 32] | flag u8 [anchor 32] | tag count u64 | tag bytes u64 |
 *     tags | payload to the end
 *
 * A flag is 1 where its field follows; any other value says that there is none. Its id is SHA-256 of the signature.
 */
export interface SignatureType {
  readonly type: number
  readonly name: string
  readonly signatureSize: number
  readonly ownerSize: number
}

/** Every signature type that an item may have, by its number. */
export const signatureTypes: ReadonlyMap<number, SignatureType> = new Map(
  [
    { type: 1, name: 'arweave', signatureSize: 512, ownerSize: 512 },
    { type: 2, name: 'ed25519', signatureSize: 64, ownerSize: 32 },
    { type: 3, name: 'ethereum', signatureSize: 65, ownerSize: 65 },
    { type: 4, name: 'solana', signatureSize: 64, ownerSize: 32 },
    { type: 5, name: 'injectedAptos', signatureSize: 64, ownerSize: 32 },
    { type: 6, name: 'multiAptos', signatureSize: 32 * 64 + 4, ownerSize: 32 * 32 + 1 },
    { type: 7, name: 'typedEthereum', signatureSize: 65, ownerSize: 42 },
  ].map((entry) => [entry.type, entry]),
)

/** The fewest bytes that an item can have: the shortest signature and owner, no target, anchor, tags or payload. */
export const itemSizeMin = 2 + 64 + 32 + 1 + 1 + 16

/** All that a header says; the id is SHA-256 of the signature. */
export interface ItemFields {
  readonly signatureType: number
  readonly signature: Uint8Array
  readonly owner: Uint8Array
  /** 32 bytes, or none. */
  readonly target: Uint8Array
  /** 32 bytes, or none. */
  readonly anchor: Uint8Array
  readonly tags: readonly Tag[]
  /** The encoded tags exactly as they stand in the item: these are what is signed. */
  readonly rawTags: Uint8Array
  /** Bytes before the payload. */
  readonly headerSize: number
}

/** The fields of an item's header, to be written. */
export interface ItemParts {
  readonly signatureType: number
  readonly signature: Uint8Array
  readonly owner: Uint8Array
  readonly target?: Uint8Array
  readonly anchor?: Uint8Array
  readonly tags?: readonly Tag[]
}

/** The most bytes that a header can take under these limits: so many bytes a reader of a stream may have to hold. */
export function itemHeaderSizeMax(limits: TagLimits = standardTagLimits): number {
  let keys = 0
  for (const type of signatureTypes.values()) keys = Math.max(keys, type.signatureSize + type.ownerSize)
  return 2 + keys + 33 + 33 + 16 + limits.tagBytesMax
}

/** `at`: the byte of the item where reading stopped. */
function malformed(message: string, at: number): Refusal {
  return refuse('malformed', 'client', `data item: ${message} (byte ${at})`)
}

const none = new Uint8Array(0)

/** Bytes of the field `[flag] [32 bytes]` at `at`, without the flag; or that more bytes are needed. */
function optionalSize(bytes: Uint8Array, at: number): number | 'more' {
  const flag = bytes[at]
  if (flag === undefined) return 'more'
  return flag === 1 ? 32 : 0
}

/** Reads the two u64 before the tags at `at`: how many tags there are, and where they end. */
function tagsHead(
  bytes: Uint8Array,
  at: number,
  limits: TagLimits,
): { count: number; end: number } | 'more' | Refusal {
  if (bytes.length < at + 16) return 'more'
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const count = view.getBigUint64(at, true)
  const size = view.getBigUint64(at + 8, true)
  if (count > BigInt(limits.tagsMax)) return malformed(`${count} tags, more than ${limits.tagsMax}`, at)
  if (size > BigInt(limits.tagBytesMax)) {
    return malformed(`${size} bytes of tags, more than ${limits.tagBytesMax}`, at + 8)
  }
  return { count: Number(count), end: at + 16 + Number(size) }
}

/**
 * `at`: where they begin in the item. The signature covers the encoded tags, but not their count: where that says none, tags that
 * can be read would be hidden by a stranger who passes the item on. Bytes that no tags can be read from are the owner's.
 */
function readTags(
  rawTags: Uint8Array,
  count: number,
  limits: TagLimits,
  at: number,
): readonly Tag[] | Refusal {
  const decoded = decodeTags(rawTags, limits)
  if (isRefusal(decoded) && count === 0) return []
  if (isRefusal(decoded)) return malformed(decoded.message, at + (decoded.at ?? 0))
  if (decoded.tags.length === count) return decoded.tags
  return malformed(`the header says ${count} tags, but there are ${decoded.tags.length}`, at - 16)
}

/**
 * Reads a header from the first bytes of an item, as many as have come: `'more'` until the whole header is there
 * (never more than itemHeaderSizeMax bytes), then the header, which owns its bytes. The payload is never needed.
 */
export function parseItemFields(
  bytes: Uint8Array,
  limits: TagLimits = standardTagLimits,
): ItemFields | 'more' | Refusal {
  if (bytes.length < 2) return 'more'
  const number = (bytes[0] ?? 0) + 256 * (bytes[1] ?? 0)
  const type = signatureTypes.get(number)
  if (type === undefined) return malformed(`signature type ${number} is unknown`, 0)
  const ownerEnd = 2 + type.signatureSize + type.ownerSize
  const targetSize = optionalSize(bytes, ownerEnd)
  if (targetSize === 'more') return targetSize
  const anchorAt = ownerEnd + 1 + targetSize
  const anchorSize = optionalSize(bytes, anchorAt)
  if (anchorSize === 'more') return anchorSize
  const tagsAt = anchorAt + 1 + anchorSize
  const head = tagsHead(bytes, tagsAt, limits)
  if (head === 'more' || isRefusal(head)) return head
  if (bytes.length < head.end) return 'more'
  // One copy of the whole header; each field is a view of it.
  const own = copyOf(bytes, 0, head.end)
  const rawTags = own.subarray(tagsAt + 16)
  const tags = readTags(rawTags, head.count, limits, tagsAt + 16)
  if (isRefusal(tags)) return tags
  const signature = own.subarray(2, 2 + type.signatureSize)
  return {
    signatureType: number,
    signature,
    owner: own.subarray(2 + type.signatureSize, ownerEnd),
    target: targetSize === 0 ? none : own.subarray(ownerEnd + 1, anchorAt),
    anchor: anchorSize === 0 ? none : own.subarray(anchorAt + 1, tagsAt),
    tags,
    rawTags,
    headerSize: head.end,
  }
}

function optional(field: Uint8Array | undefined, what: string): Uint8Array {
  if (field === undefined || field.length === 0) return Uint8Array.of(0)
  if (field.length !== 32) throw new RangeError(`${what} has 32 bytes or none, not ${field.length}`)
  return joined(Uint8Array.of(1), field)
}

/** The bytes of a header. Throws a RangeError where a field has a length that its signature type does not allow. */
export function encodeItemHeader(parts: ItemParts): Uint8Array {
  const tags = parts.tags ?? []
  return encodeItemFields(parts, tags.length, encodeTags(tags))
}

/** The bytes of a header whose tags are encoded already. Throws as encodeItemHeader does. */
export function encodeItemFields(
  parts: Omit<ItemParts, 'tags'>,
  tagCount: number,
  rawTags: Uint8Array,
): Uint8Array {
  const type = signatureTypes.get(parts.signatureType)
  if (type === undefined) throw new RangeError(`signature type ${parts.signatureType} is unknown`)
  if (parts.signature.length !== type.signatureSize || parts.owner.length !== type.ownerSize) {
    throw new RangeError(
      `type ${type.name} has ${type.signatureSize} + ${type.ownerSize} bytes of signature and owner`,
    )
  }
  const counts = new DataView(new ArrayBuffer(16))
  counts.setBigUint64(0, BigInt(tagCount), true)
  counts.setBigUint64(8, BigInt(rawTags.length), true)
  return joined(
    Uint8Array.of(parts.signatureType & 0xff, parts.signatureType >> 8),
    parts.signature,
    parts.owner,
    optional(parts.target, 'a target'),
    optional(parts.anchor, 'an anchor'),
    new Uint8Array(counts.buffer),
    rawTags,
  )
}

/** A whole item: header and payload. Throws as encodeItemHeader does. */
export function encodeItem(parts: ItemParts, payload: Uint8Array): Uint8Array {
  return joined(encodeItemHeader(parts), payload)
}
