import { fromBase64, sameBytes, toBase64url } from '../bytes.js'
import { type PayloadDigest, payloadDigestOf } from '../deep-digest.js'
import { ClientError } from '../errors.js'
import { digestOf, hash256, isHashedByPieces, runningHash } from '../hash.js'
import type { SignedHead } from '../item-layout.js'
import { streamPieces } from '../payload.js'
import { tagValueOf } from '../tags.js'
import { abortedError } from '../timing.js'
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
  const { bytes, digest } =
    rootId === id
      ? { bytes: await gateways.bytes(response, bytesMax, signal), digest: undefined }
      : await hashedBytes(question, response)
  const found = await proof
  const by = signature === 'unsigned' ? undefined : signature.keyId
  try {
    if ('dataRoot' in found) return ofTransaction(gateway, found, bytes, by)
    return await ofItem(gateway, found, bytes, digest ?? (await payloadDigestOf(bytes)), by)
  } catch (error) {
    // What the owner did not sign may be what the gateway itself calls broken: that says more.
    await checkDigest(gateway, id, headers, bytes)
    throw error
  }
}

/** Reads a body, and hashes it while the rest is on its way where that is fast. */
async function hashedBytes(
  { gateways, gateway, bytesMax, signal }: WholeQuestion,
  response: Response,
): Promise<{ bytes: Uint8Array; digest: PayloadDigest | undefined }> {
  const length = Number(response.headers.get('content-length') ?? Number.NaN)
  // What is compressed on its way has another length.
  const isPlain = length <= bytesMax && !response.headers.has('content-encoding')
  if (!isHashedByPieces || !isPlain || response.body === null)
    return { bytes: await gateways.bytes(response, bytesMax, signal), digest: undefined }
  const bytes = new Uint8Array(length)
  const hash = runningHash('sha384')
  let at = 0
  try {
    for await (const piece of streamPieces(response.body as ReadableStream<Uint8Array>)) {
      if (at + piece.length > length)
        throw untrue(`${gateway} sends more than the ${length} bytes that it said`)
      bytes.set(piece, at)
      hash.update(piece)
      at += piece.length
    }
  } catch (error) {
    if (signal?.aborted === true) throw abortedError(signal)
    if (error instanceof ClientError || !(error instanceof Error)) throw error
    throw new ClientError('unavailable', `${gateway} broke off`, 'try again', { cause: error })
  }
  if (at < length) throw new ClientError('unavailable', `${gateway} broke off`, 'try again')
  return { bytes, digest: { hashed: hash.digest(), length } }
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
  digest: PayloadDigest,
  signedBy: string | undefined,
): Promise<OwnedContent> {
  await checkOwner(gateway, header, digest)
  return {
    bytes,
    contentType: tagValueOf(header.tags, 'Content-Type') ?? tagValueOf(header.tags, 'content-type'),
    owner: toBase64url(hash256(header.owner)),
    signedBy,
  }
}
