import { type Attributes, attributesOf, type Header, type ItemPlace } from '../../catalog/attributes.js'
import type { ItemHeader } from '../../format/item.js'
import { headersOfPayload } from '../../format/media-type.js'
import type { Tag } from '../../format/tag.js'
import type { Transaction } from '../../format/transaction.js'
import { normalizedAddress } from '../../proof/owner-address.js'
import { ownerOf } from '../../proof/transaction-proof.js'
import type { Learned } from '../source.js'

function learned(header: Header): Learned {
  return { header, ...headersOfPayload(header.tags) }
}

/** What the header of a transaction says of its payload. */
export function learnedOfTransaction(transaction: Transaction): Learned {
  const { signature, target, lastTx, tags } = transaction
  const owner = ownerOf(transaction)
  const ownerAddress = normalizedAddress(owner)
  const header = { signatureType: 1, signature, owner, ownerAddress, target, anchor: lastTx, tags }
  return { ...learned(header), isTransaction: true }
}

/** What the header of a data item says of its payload. */
export function learnedOfItem(item: ItemHeader): Learned {
  const { signatureType, signature, owner, target, anchor, tags } = item
  return learned({
    signatureType,
    signature,
    owner,
    ownerAddress: normalizedAddress(owner),
    target,
    anchor,
    tags,
  })
}

/**
 * What is known of an item that its owner signed and that lies in the bundle `root`, with the SHA-256 of its payload. It is as
 * verified as the bundle; it is trusted where the bundle is, or where a trusted server stated this digest before.
 */
export function attributesInBundle(
  known: Attributes,
  item: ItemHeader,
  digest: Uint8Array,
  root: Attributes,
): Attributes {
  return withinBundle({ ...known, ...learnedOfItem(item) }, digest, root)
}

/** The same where its header is known. */
export function withinBundle(
  known: Attributes,
  digest: Uint8Array,
  { verified, trusted: isRootTrusted, height }: Attributes,
): Attributes {
  const trusted = isRootTrusted || (known.digest !== undefined && known.trusted)
  const { id, size, contentType, contentEncoding, isTransaction, place, header } = known
  // What lies there was compared with the signature.
  const signed: ItemPlace | undefined = place && verified ? { ...place, isSigned: true } : place
  const facts = { contentType, contentEncoding, isTransaction, place: signed, header }
  return attributesOf({ id, size, verified, trusted }, { ...facts, digest, height: height ?? known.height })
}

const bundleFormat = Buffer.from('Bundle-Format')
const bundleVersion = Buffer.from('Bundle-Version')

/** True where the tags say that the payload is an ANS-104 bundle. Called for every item: most have no such tag. */
export function isBundle(tags: readonly Tag[]): boolean {
  return (
    textUnder(tags, bundleFormat) === 'binary' && textUnder(tags, bundleVersion)?.startsWith('2.') === true
  )
}

function textUnder(tags: readonly Tag[], wanted: Buffer): string | undefined {
  for (const { name, value } of tags) {
    if (name.length === wanted.length && wanted.equals(name)) return Buffer.from(value).toString('utf8')
  }
  return undefined
}
