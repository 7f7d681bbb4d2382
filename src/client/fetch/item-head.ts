import { decodeBase64url, encodeBase64url } from '../../format/base64url.js'
import { utf8 } from '../bytes.js'
import type { PayloadDigest } from '../deep-digest.js'
import { ClientError } from '../errors.js'
import { hash256 } from '../hash.js'
import { type ItemFields, readItemHead, type SignedHead } from '../item-layout.js'
import { isOwnersItem } from '../item-proof.js'
import { packedForms, packTags, type TextTag } from '../tags.js'
import { chainHeader, type Gateways, gatewayHeader, untrue } from './gateways.js'
import { type ProvenTransaction, transactionProven } from './transaction-proof.js'

export interface HeadQuestion {
  readonly gateways: Gateways
  readonly gateway: string
  readonly id: string
  readonly signal?: AbortSignal | undefined
}

/**
 * Throws where the owner of an item did not sign this payload, or where that cannot be checked here. Of a header that is known
 * by its tags alone, the forms are tried in which they may stand in the item.
 */
export async function checkOwner(gateway: string, header: SignedHead, payload: PayloadDigest): Promise<void> {
  const { id, signatureType, tags } = header
  const isWhole = header.bytes.length > 0
  for (const rawTags of isWhole ? [header.rawTags] : packedForms(tags)) {
    const holds = await isOwnersItem({ ...header, rawTags }, payload)
    if (holds === true) return
    if (holds === undefined) {
      const found = `${id} has a signature of type ${signatureType}, which this client cannot check`
      throw new ClientError('rejected', found, 'fetch it from a gateway that you trust')
    }
  }
  const but = isWhole ? '' : ' (or its tags are in an unusual form, which only the bundle with it will show)'
  throw untrue(`${gateway}: these are not the bytes that the owner of ${id} signed${but}`)
}

/**
 * The item's header from wherever it can be had. Its id shows that it has the right signature; nothing else that it says is true
 * before `checkOwner`.
 */
export async function headOf(
  question: HeadQuestion,
  headers: Headers,
): Promise<SignedHead | ProvenTransaction> {
  const { gateways, gateway, id, signal } = question
  const root = gatewayHeader(headers, 'root-transaction-id')
  const from = Number(gatewayHeader(headers, 'root-data-item-offset') ?? Number.NaN)
  const to = Number(gatewayHeader(headers, 'root-data-offset') ?? Number.NaN)
  const isPlaced = root !== undefined && to > from && to - from < 620_000
  if (isPlaced) {
    const range = { range: `bytes=${from}-${to - 1}` }
    const response = await gateways.get(`${gateway}/raw/${root}`, range, signal, [206, 404, 416])
    if (response.status === 206) {
      const header = readItemHead(await gateways.bytes(response, to - from, signal))
      if (typeof header === 'object' && header.id === id) return header
      throw untrue(`${gateway}: what it says to be the header of ${id} is not`)
    }
    await response.body?.cancel()
  }
  const queried = await headByQuery(question, headers)
  // The keys of transactions are RSA: any other is an item's, so that no request for a transaction is needed.
  if (queried !== undefined && (queried.isBundled || queried.header.owner.length !== 512))
    return queried.header
  try {
    return await transactionProven(gateways, gateway, id, signal)
  } catch (error) {
    // Just uploaded: an item that is in no bundle yet is no transaction either.
    if (queried !== undefined && error instanceof ClientError && error.code === 'not-found')
      return queried.header
    throw error
  }
}

/** What GraphQL states of an item's header. */
export interface QueriedNode {
  readonly signature?: string | null
  readonly anchor?: string | null
  readonly recipient?: string | null
  readonly owner?: { readonly key?: string | null }
  readonly tags?: readonly TextTag[]
}

/** The signature type by the size of the owner's key, except for 2 and 4, for which the gateway's header decides first. */
const typesByOwner: Readonly<Record<number, number>> = { 512: 1, 65: 3, 32: 4, 42: 7 }

/** The fields as they are stated, in bytes. */
export function statedFields(
  node: QueriedNode,
): Omit<ItemFields, 'signatureType' | 'rawTags'> & { readonly signature: Uint8Array } {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '')
  const bytes = (value: unknown): Uint8Array => decodeBase64url(text(value)) ?? utf8(text(value))
  const listed: unknown[] = Array.isArray(node.tags) ? node.tags : []
  const tags = (listed as (Partial<TextTag> | null)[]).map((tag) => ({
    name: text(tag?.name),
    value: text(tag?.value),
  }))
  return {
    signature: bytes(node.signature),
    owner: bytes(node.owner?.key),
    target: bytes(node.recipient),
    anchor: bytes(node.anchor),
    tags,
  }
}

/** The header from an item's fields in GraphQL: enough to check the signature, unless its tags are written unusually. */
async function headByQuery(
  { gateways, gateway, id, signal }: HeadQuestion,
  headers: Headers,
): Promise<{ readonly header: SignedHead; readonly isBundled: boolean } | undefined> {
  const query = `{ transaction(id: "${id}") { signature anchor recipient owner { key } tags { name value } bundledIn { id } } }`
  const json = { 'content-type': 'application/json' }
  const body = JSON.stringify({ query })
  const response = await gateways.get(`${gateway}/graphql`, json, signal, [200], body)
  const { data } = (await gateways.json(response, signal)) as {
    data?: { transaction?: (QueriedNode & { bundledIn?: unknown }) | null }
  }
  const node = data?.transaction
  if (node == null) return undefined
  const { signature, ...fields } = statedFields(node)
  if (encodeBase64url(hash256(signature)) !== id)
    throw untrue(`${gateway}: the signature is not that of ${id}`)
  const statedType = Number(chainHeader(headers, 'signature-type'))
  const signatureType = statedType > 0 ? statedType : (typesByOwner[fields.owner.length] ?? 0)
  const rawTags = packTags(fields.tags)
  const header = { ...fields, rawTags, signatureType, signature, id, bytes: new Uint8Array(0) }
  return { header, isBundled: node.bundledIn != null }
}
