import { joined, sameBytes, toBase64url, utf8 } from './bytes.js'
import { begunDigest, endedDigest, type PayloadDigest } from './deep-digest.js'
import { ClientError } from './errors.js'
import { hash256 } from './hash.js'
import { packTags, type TextTag, unpackTags } from './tags.js'

/**
 * A data item (ANS-104), little-endian:
 *
 *     type u16 | signature | owner | flag u8 [target 32] | flag u8 [anchor 32] | tag count u64 | tag bytes u64 | tags | payload
 *
 * A flag is 1 where its field follows, any other value means that there is none. Its id is SHA-256 of the signature.
 */
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

/** Sizes of signature and owner by type. */
const sizes: Readonly<Record<number, readonly [signature: number, owner: number]>> = {
  1: [512, 512],
  2: [64, 32],
  3: [65, 65],
  4: [64, 32],
  5: [64, 32],
  6: [2052, 1025],
  7: [65, 42],
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
      digest: begunDigest(8, [utf8('dataitem'), utf8('1'), ...key]),
    }
  return endedDigest(begun.digest, rawTags, payload)
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
  const [signature = 0] = sizes[fields.signatureType] ?? []
  const { owner, target, anchor, rawTags } = fields
  return 2 + signature + owner.length + 2 + target.length + anchor.length + 16 + rawTags.length
}

function optional(field: Uint8Array): Uint8Array {
  return field.length === 0 ? Uint8Array.of(0) : joined(Uint8Array.of(1), field)
}

/** The header with its signature. Throws `invalid-input` where a length is not that of the type. */
export function signedHeader(fields: ItemFields, signature: Uint8Array): SignedHead {
  const { signatureType, owner, target, anchor, tags, rawTags } = fields
  const [signatureSize, ownerSize] = sizes[signatureType] ?? []
  if (signature.length !== signatureSize || owner.length !== ownerSize) {
    const found = `${signature.length} bytes of signature and ${owner.length} of owner for type ${signatureType}`
    throw new ClientError('invalid-input', found, `the signer must give ${signatureSize} and ${ownerSize}`)
  }
  const counts = new DataView(new ArrayBuffer(16))
  counts.setBigUint64(0, BigInt(tags.length), true)
  counts.setBigUint64(8, BigInt(rawTags.length), true)
  const bytes = joined(
    Uint8Array.of(signatureType & 0xff, signatureType >> 8),
    signature,
    owner,
    optional(target),
    optional(anchor),
    new Uint8Array(counts.buffer),
    rawTags,
  )
  return { ...fields, signature, bytes, id: idOfSignature(signature) }
}

/** An item's id: SHA-256 of its signature. */
export function idOfSignature(signature: Uint8Array): string {
  return toBase64url(hash256(signature))
}

/** Reads the header at the beginning of an item. `more`: it is longer than the bytes at hand; undefined: it is malformed. */
export function readItemHead(bytes: Uint8Array): SignedHead | 'more' | undefined {
  if (bytes.length < 2) return 'more'
  const signatureType = (bytes[0] ?? 0) + 256 * (bytes[1] ?? 0)
  const [signatureSize, ownerSize] = sizes[signatureType] ?? []
  if (signatureSize === undefined || ownerSize === undefined) return undefined
  let at = 2 + signatureSize + ownerSize
  const field = (): Uint8Array | 'more' => {
    const flag = bytes[at]
    if (flag === undefined) return 'more'
    const length = flag === 1 ? 32 : 0
    at += 1 + length
    return bytes.length < at ? 'more' : bytes.slice(at - length, at)
  }
  const target = field()
  if (target === 'more') return target
  const anchor = field()
  if (anchor === 'more') return anchor
  if (bytes.length < at + 16) return 'more'
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const [count, size] = [view.getBigUint64(at, true), view.getBigUint64(at + 8, true)]
  if (count > 128n || size > 600_000n) return undefined
  const end = at + 16 + Number(size)
  if (bytes.length < end) return 'more'
  const rawTags = bytes.slice(at + 16, end)
  // The signature does not cover the count: see src/format/item.ts.
  const tags = unpackTags(rawTags) ?? (count === 0n ? [] : undefined)
  if (tags === undefined || BigInt(tags.length) !== count) return undefined
  const signature = bytes.slice(2, 2 + signatureSize)
  const owner = bytes.slice(2 + signatureSize, 2 + signatureSize + ownerSize)
  const fields = { signatureType, owner, target, anchor, tags, rawTags }
  return { ...fields, signature, bytes: bytes.slice(0, end), id: idOfSignature(signature) }
}
