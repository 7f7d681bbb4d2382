import { fromBase64, fromBase64url, sameBytes, toBase64url, utf8 } from '../bytes.js'
import { payloadDigestOf } from '../deep-digest.js'
import { ClientError } from '../errors.js'
import { digestOf, hash256 } from '../hash.js'
import { readItemHead, type SignedHead } from '../item-layout.js'
import { isOwnersItem } from '../item-proof.js'
import { packTags, type TextTag, tagValueOf } from '../tags.js'
import { chainHeader, type Gateways, gatewayHeader, untrue } from './gateways.js'
import { responseSignature } from './http-signature.js'
import { dataRootOf } from './merkle-proof.js'
import { type ProvenTransaction, transactionProven } from './transaction-proof.js'

/** Content that its owner's signature covers, to the last byte. */
export interface OwnedContent {
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly owner: string
  /** `keyid` of the gateway's own signature, where it signed. */
  readonly signedBy: string | undefined
}

export interface WholeQuestion {
  readonly gateways: Gateways
  readonly gateway: string
  readonly id: string
  readonly bytesMax: number
  readonly signal?: AbortSignal | undefined
}

/** Too long to be held: it has to be proven in pieces. */
export const tooLong = 'too-long'

/**
 * Content by id from one gateway, checked: its answer's own signature and digest where it has them, and that the owner of the id
 * signed these bytes. Resolves with `tooLong` above `bytesMax`, without reading it.
 */
export async function ownedContent(question: WholeQuestion): Promise<OwnedContent | typeof tooLong> {
  const { gateways, gateway, id, bytesMax, signal } = question
  const path = `/raw/${id}`
  const response = await gateways.get(gateway + path, {}, signal)
  if (Number(response.headers.get('content-length')) > bytesMax) {
    await response.body?.cancel()
    return tooLong
  }
  const { headers, status } = response
  const told = gatewayHeader(headers, 'data-id')
  const signature = await responseSignature({ status, headers, method: 'GET', path })
  if (signature === false) throw untrue(`${gateway}: the signature over its answer for ${id} does not hold`)
  if (told !== undefined && told !== id) throw untrue(`${gateway}: asked for ${id}, it gave ${told}`)
  const rootId = gatewayHeader(headers, 'root-transaction-id')
  // The proof is on its way while the body comes.
  const proof = rootId === id ? transactionProven(gateways, gateway, id, signal) : headOf(question, headers)
  proof.catch((error) => error)
  const bytes = await gateways.bytes(response, bytesMax, signal)
  await checkDigest(gateway, id, headers, bytes)
  const found = await proof
  const by = signature === 'unsigned' ? undefined : signature.keyId
  return 'dataRoot' in found ? ofTransaction(gateway, found, bytes, by) : ofItem(gateway, found, bytes, by)
}

async function checkDigest(gateway: string, id: string, headers: Headers, bytes: Uint8Array): Promise<void> {
  const [, text] = /sha-256=:([^:]*):/.exec(headers.get('content-digest') ?? '') ?? []
  if (text === undefined) return
  const digest = fromBase64(text)
  if (digest === undefined || !sameBytes(digest, await digestOf('sha256', bytes)))
    throw untrue(`${gateway}: the bytes of ${id} are not those of its own digest`)
}

function ofTransaction(
  gateway: string,
  tx: ProvenTransaction,
  bytes: Uint8Array,
  signedBy: string | undefined,
): OwnedContent {
  if (bytes.length !== tx.dataSize || !sameBytes(dataRootOf(bytes), tx.dataRoot))
    throw untrue(`${gateway}: these are not the bytes that the owner of ${tx.id} signed`)
  return { bytes, contentType: tx.contentType, owner: tx.owner, signedBy }
}

async function ofItem(
  gateway: string,
  header: SignedHead,
  bytes: Uint8Array,
  signedBy: string | undefined,
): Promise<OwnedContent> {
  const holds = await isOwnersItem(header, await payloadDigestOf(bytes))
  if (holds === undefined) {
    const found = `${header.id} has a signature of type ${header.signatureType}, which this client cannot check`
    throw new ClientError('rejected', found, 'fetch it from a gateway that you trust')
  }
  if (!holds) throw untrue(`${gateway}: these are not the bytes that the owner of ${header.id} signed`)
  return {
    bytes,
    contentType: tagValueOf(header.tags, 'Content-Type') ?? tagValueOf(header.tags, 'content-type'),
    owner: toBase64url(hash256(header.owner)),
    signedBy,
  }
}

/** The item's header from wherever it can be had; that it is the right one, its id shows. */
async function headOf(question: WholeQuestion, headers: Headers): Promise<SignedHead | ProvenTransaction> {
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
  if (queried?.isBundled === true) return queried.header
  try {
    return await transactionProven(gateways, gateway, id, signal)
  } catch (error) {
    // Just uploaded: an item that is in no bundle yet is no transaction either.
    if (queried !== undefined && error instanceof ClientError && error.code === 'not-found')
      return queried.header
    throw error
  }
}

interface QueriedNode {
  readonly signature?: string
  readonly anchor?: string
  readonly recipient?: string
  readonly owner?: { readonly key?: string }
  readonly tags?: readonly TextTag[]
}

/** Sizes of owner keys tell the type, but for 2 and 4, which are tried by the gateway's header first. */
const typesByOwner: Readonly<Record<number, number>> = { 512: 1, 65: 3, 32: 4, 42: 7 }

/** The header out of what GraphQL tells of an item: enough to check the signature, unless its tags are written unusually. */
async function headByQuery(
  { gateways, gateway, id, signal }: WholeQuestion,
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
  const bytes = (text: string | undefined): Uint8Array => fromBase64url(text ?? '') ?? utf8(text ?? '')
  const signature = bytes(node.signature)
  if (toBase64url(hash256(signature)) !== id) throw untrue(`${gateway}: the signature is not that of ${id}`)
  const owner = bytes(node.owner?.key)
  const told = Number(chainHeader(headers, 'signature-type'))
  const tags = node.tags ?? []
  const fields = {
    owner,
    target: bytes(node.recipient),
    anchor: bytes(node.anchor),
    tags,
    rawTags: packTags(tags),
  }
  const signatureType = told > 0 ? told : (typesByOwner[owner.length] ?? 0)
  const header = { ...fields, signatureType, signature, id, bytes: new Uint8Array(0) }
  return { header, isBundled: node.bundledIn != null }
}
