import { encodeBase64url } from '../format/base64url.js'
import { sameBytes, utf8 } from '../format/bytes.js'
import { encodeItemFields, parseItemFields, signatureTypes } from '../format/item-fields.js'
import { isRefusal } from '../format/refusal.js'
import { tagText } from '../format/tag.js'
import { deepHashing, type PayloadDigest } from './deep-digest.js'
import { ClientError } from './errors.js'
import { hash256 } from './hash.js'
import { packTags, type TextTag } from './tags.js'

/** The fields of a data item (format/item-fields.ts) with their tags as texts. */
export interface ItemFields {
  readonly signatureType: number
  readonly owner: Uint8Array
  /** 32 bytes or none. */
  readonly target: Uint8Array
  /** 32 bytes or none. */
  readonly anchor: Uint8Array
  readonly tags: readonly TextTag[]
  readonly rawTags: Uint8Array
}

export interface SignedHead extends ItemFields {
  readonly id: string
  readonly signature: Uint8Array
  /** The bytes in front of the payload. */
  readonly bytes: Uint8Array
}

/** The digest of what items by one key begin with, kept for the next: it is most of what is hashed for a short item. */
let begun: { readonly key: readonly Uint8Array[]; readonly digest: Uint8Array } | undefined

/** What the signature of an item signs: the deep hash of its fields, tags as they stand encoded. */
export function messageOf(fields: Omit<ItemFields, 'tags'>, payload: PayloadDigest): Uint8Array {
  const { signatureType, owner, target, anchor, rawTags } = fields
  const key = [utf8(String(signatureType)), owner, target, anchor]
  if (!begun?.key.every((part, at) => sameBytes(part, key[at] as Uint8Array)))
    begun = {
      key: key.map((part) => part.slice()),
      digest: deepHashing.begun(8, [utf8('dataitem'), utf8('1'), ...key]),
    }
  const last = deepHashing.continued(begun.digest, [rawTags])
  return deepHashing.continuedBy(last, payload.length, payload.hashed)
}

const none = new Uint8Array(0)

/** Fields from what a caller gives: target and anchor are bytes already. */
export function itemFields(
  key: { readonly signatureType: number; readonly owner: Uint8Array },
  tags: readonly TextTag[],
  target: Uint8Array = none,
  anchor: Uint8Array = none,
): ItemFields {
  for (const [what, bytes] of Object.entries({ target, anchor })) {
    if (bytes.length !== 0 && bytes.length !== 32)
      throw new ClientError('invalid-input', `the ${what} has ${bytes.length} bytes`, 'give 32 bytes or none')
  }
  const { signatureType, owner } = key
  return { signatureType, owner, target, anchor, tags, rawTags: packTags(tags) }
}

/** Bytes of the header that these fields make. */
export function headerSizeOf(fields: ItemFields): number {
  const { signatureSize = 0 } = signatureTypes.get(fields.signatureType) ?? {}
  const { owner, target, anchor, rawTags } = fields
  return 2 + signatureSize + owner.length + 2 + target.length + anchor.length + 16 + rawTags.length
}

/** The header with its signature. Throws `invalid-input` where a length is not that of the type. */
export function signedHeader(fields: ItemFields, signature: Uint8Array): SignedHead {
  const { signatureType, owner, tags, rawTags } = fields
  const { signatureSize, ownerSize } = signatureTypes.get(signatureType) ?? {}
  if (signature.length !== signatureSize || owner.length !== ownerSize) {
    const found = `${signature.length} bytes of signature and ${owner.length} of owner for type ${signatureType}`
    throw new ClientError('invalid-input', found, `the signer must give ${signatureSize} and ${ownerSize}`)
  }
  const bytes = encodeItemFields({ ...fields, signature }, tags.length, rawTags)
  return { ...fields, signature, bytes, id: idOfSignature(signature) }
}

/** An item's id: SHA-256 of its signature. */
export function idOfSignature(signature: Uint8Array): string {
  return encodeBase64url(hash256(signature))
}

/** Reads the header at the beginning of an item. `more`: it is longer than the bytes at hand; undefined: it is malformed. */
export function readItemHead(bytes: Uint8Array): SignedHead | 'more' | undefined {
  const fields = parseItemFields(bytes)
  if (fields === 'more') return fields
  if (isRefusal(fields)) return undefined
  const { signature, headerSize } = fields
  const whole = bytes.slice(0, headerSize)
  return { ...fields, tags: fields.tags.map(tagText), bytes: whole, id: idOfSignature(signature) }
}
