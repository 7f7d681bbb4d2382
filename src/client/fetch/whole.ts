import { fromBase64, sameBytes, toBase64url } from '../bytes.js'
import { payloadDigestOf } from '../deep-digest.js'
import { digestOf, hash256 } from '../hash.js'
import type { SignedHead } from '../item-layout.js'
import { tagValueOf } from '../tags.js'
import { gatewayHeader, untrue } from './gateways.js'
import { responseSignature } from './http-signature.js'
import { checkOwner, type HeadQuestion, headOf } from './item-head.js'
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

export interface WholeQuestion extends HeadQuestion {
  readonly bytesMax: number
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
  await checkOwner(gateway, header, await payloadDigestOf(bytes))
  return {
    bytes,
    contentType: tagValueOf(header.tags, 'Content-Type') ?? tagValueOf(header.tags, 'content-type'),
    owner: toBase64url(hash256(header.owner)),
    signedBy,
  }
}
