import { encodeBase64url } from '../format/base64url.js'
import type { PayloadDigest } from './deep-digest.js'
import { ClientError } from './errors.js'
import { Gateways } from './fetch/gateways.js'
import { headOf, type QueriedNode, statedFields } from './fetch/item-head.js'
import { hash256 } from './hash.js'
import type { ItemFields } from './item-layout.js'
import { isOwnersItem } from './item-proof.js'
import { type FetchLike, RemoteService } from './service.js'
import { addressOfOwner } from './signer.js'
import { packedForms, packTags, type TextTag } from './tags.js'

/** An item as a gateway states it: nothing of it is true before it is proven. */
export interface StatedItem extends QueriedNode {
  readonly id: string
  /** Null: it is in no block yet. */
  readonly block?: { readonly height: number } | null
  readonly owner: { readonly address: string; readonly key?: string | null }
  readonly tags: readonly TextTag[]
}

/** Numbers of the types of signatures whose owners have so many bytes (ANS-104). */
const typesByOwner: Readonly<Record<number, readonly number[]>> = {
  32: [2, 4, 5],
  42: [7],
  65: [3],
  512: [1],
}

/**
 * Whether the owner with this address (base64url SHA-256 of the key) signed an item of this id, with these tags and this payload.
 * Otherwise a gateway could put an item of its own in the place of a file. Where a gateway states no signature, the header of the
 * item is requested.
 */
export async function isProvenItem(
  gatewayUrl: string,
  item: StatedItem,
  owner: string,
  payload: PayloadDigest,
  fetcher: FetchLike,
): Promise<boolean> {
  const stated = headersOf(item)
  const headers = stated.length > 0 ? stated : await headerAt(gatewayUrl, item, fetcher)
  for (const header of headers) {
    if (encodeBase64url(hash256(header.signature)) !== item.id || addressOfOwner(header.owner) !== owner)
      continue
    for (const rawTags of packedForms(item.tags))
      if ((await isOwnersItem({ ...header, tags: item.tags, rawTags }, payload)) === true) return true
  }
  return false
}

/** How long a gateway may take for one head. */
const headMs = 30_000

type Header = ItemFields & { readonly signature: Uint8Array }

/** One for each type of signature that its key may have; none where the gateway states no key or signature. */
function headersOf(item: StatedItem): Header[] {
  const fields = statedFields(item)
  if (fields.signature.length === 0) return []
  const rawTags = packTags(fields.tags)
  return (typesByOwner[fields.owner.length] ?? []).map((signatureType) => ({
    ...fields,
    rawTags,
    signatureType,
  }))
}

async function headerAt(gatewayUrl: string, { id }: StatedItem, fetcher: FetchLike): Promise<Header[]> {
  const gateways = new Gateways({ gatewayUrls: [gatewayUrl], fetch: fetcher })
  try {
    const service = new RemoteService(gatewayUrl, fetcher, { tries: 1, answerMs: headMs })
    const { headers } = await service.ask({ method: 'HEAD', path: `/raw/${id}` })
    const header = await headOf({ gateways, gateway: gatewayUrl, id }, headers)
    return 'dataRoot' in header ? [] : [header]
  } catch (error) {
    if (error instanceof ClientError) return []
    throw error
  }
}
