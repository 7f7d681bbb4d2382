import { decodeBase64, encodeBase64url } from '../../format/base64url.js'
import { sameBytes } from '../bytes.js'
import { digestOf, hash256, isHashNative } from '../hash.js'
import type { SignedHead } from '../item-layout.js'
import { isOwnersItem } from '../item-proof.js'
import { asideBytesMin, longSha384, sha384Here } from '../long-hash.js'
import { typeTagOf } from '../media-type.js'
import { headOfAnswer } from './answer-head.js'
import { gatewayHeader, untrue } from './gateways.js'
import { plainLength, type WholeAnswer } from './held-body.js'
import { responseSignature } from './http-signature.js'
import { checkOwner, type HeadQuestion, headOf } from './item-head.js'
import { RunningDataRoot } from './running-data-root.js'
import { type ProvenTransaction, transactionProven } from './transaction-proof.js'

/** Content that its owner's signature covers, to the last byte. */
export interface OwnedContent {
  readonly bytes: Uint8Array<ArrayBuffer>
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
  const answer = await gateways.whole(gateway + path, bytesMax, signal)
  const { headers, status } = answer
  if (Number(headers.get('content-length')) > bytesMax) {
    await answer.drop()
    return tooLong
  }
  const statedId = gatewayHeader(headers, 'data-id')
  if (statedId !== undefined && statedId !== id) {
    await answer.drop()
    throw untrue(`${gateway}: requested ${id}, it gave ${statedId}`)
  }
  // While the body comes: its bytes are given to nobody before the signature was judged.
  const signature = responseSignature({ status, headers, method: 'GET', path })
  signature.catch((error) => error)
  const rootId = gatewayHeader(headers, 'root-transaction-id')
  const found = await (rootId === id ? ofTransaction : ofItem)(question, answer).catch(async (error) => {
    // A signature that does not hold is the better reason than what followed from it.
    checkSigned(question, await signature)
    throw error
  })
  return { ...found, signedBy: checkSigned(question, await signature) }
}

type Signature = Awaited<ReturnType<typeof responseSignature>>

/**
 * The key that signed an answer; undefined for one without a signature, or with one that may be about another id. Throws where
 * the signature does not hold.
 */
function checkSigned({ gateway, id }: WholeQuestion, signature: Signature): string | undefined {
  if (signature === false) throw untrue(`${gateway}: the signature over its answer for ${id} does not hold`)
  return signature === 'unsigned' || !signature.covered.has('@path') ? undefined : signature.keyId
}

type Found = Omit<OwnedContent, 'signedBy'>

async function checkDigest(gateway: string, id: string, headers: Headers, bytes: Uint8Array): Promise<void> {
  const [, text] = /sha-256=:([^:]*):/.exec(headers.get('content-digest') ?? '') ?? []
  if (text === undefined) return
  const digest = decodeBase64(text)
  if (digest === undefined || !sameBytes(digest, await digestOf('sha256', bytes)))
    throw untrue(`${gateway}: the bytes of ${id} are not those of its own digest`)
}

/** Where the owner's signature does not hold, the gateway may state itself that the content is broken: the better reason. */
async function proven<Result>(
  { gateway, id }: WholeQuestion,
  { headers }: WholeAnswer,
  bytes: Uint8Array,
  check: () => Promise<Result>,
): Promise<Result> {
  try {
    return await check()
  } catch (error) {
    await checkDigest(gateway, id, headers, bytes)
    throw error
  }
}

async function dataRootOf(bytes: Uint8Array): Promise<Uint8Array> {
  const running = new RunningDataRoot(bytes.length)
  running.update(bytes)
  return running.root()
}

/** The body of a transaction: its header is on its way, and its chunks are hashed, while it comes. */
async function ofTransaction(question: WholeQuestion, answer: WholeAnswer): Promise<Found> {
  const { gateways, gateway, id, signal, bytesMax } = question
  const proof = transactionProven(gateways, gateway, id, signal)
  // Awaited behind the body, which may fail first.
  proof.catch((error) => error)
  const length = plainLength(answer)
  const running = length !== undefined && length <= bytesMax ? new RunningDataRoot(length) : undefined
  const bytes = await answer.held((piece) => running?.update(piece) as undefined)
  const tx = await proof
  return proven(question, answer, bytes, () => isTransaction(gateway, tx, bytes, running))
}

async function isTransaction(
  gateway: string,
  tx: ProvenTransaction,
  bytes: Uint8Array<ArrayBuffer>,
  running?: RunningDataRoot,
): Promise<Found> {
  const isHashed = running !== undefined && bytes.length === tx.dataSize
  if (
    bytes.length !== tx.dataSize ||
    !sameBytes(await (isHashed ? running.root() : dataRootOf(bytes)), tx.dataRoot)
  )
    throw untrue(`${gateway}: these are not the bytes that the owner of ${tx.id} signed`)
  return { bytes, contentType: tx.contentType, owner: tx.owner }
}

/** The body of an item, which another thread hashes meanwhile where it is long enough for that. */
async function ofItem(question: WholeQuestion, answer: WholeAnswer): Promise<Found> {
  const { gateway, id } = question
  const { headers } = answer
  const statedHead = headOfAnswer(id, headers)
  const proof = statedHead === undefined ? headOf(question, headers) : undefined
  proof?.catch((error) => error)
  const { bytes, hashed } = await hashedBody(answer)
  return proven(question, answer, bytes, async () => {
    if (
      statedHead !== undefined &&
      (await isOwnersItem(statedHead, { hashed: await hashed(), length: bytes.length }))
    )
      return describe(statedHead, bytes)
    const found = await (proof ?? headOf(question, headers))
    if ('dataRoot' in found) return isTransaction(gateway, found, bytes)
    await checkOwner(gateway, found, { hashed: await hashed(), length: bytes.length })
    return describe(found, bytes)
  })
}

function describe({ tags, owner }: SignedHead, bytes: Uint8Array<ArrayBuffer>): Found {
  return { bytes, contentType: typeTagOf(tags), owner: encodeBase64url(hash256(owner)) }
}

/** A body, and its SHA-384, which is made while it comes: by another thread where it is long, or by this one. */
async function hashedBody(
  answer: WholeAnswer,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; hashed(): Promise<Uint8Array> }> {
  const length = plainLength(answer) ?? asideBytesMin
  // WebCrypto hashes what is short faster than this thread, but only as a whole.
  const isLeft = length < asideBytesMin && !isHashNative
  const aside = answer.isDirect ? sha384Here() : isLeft ? undefined : await longSha384(length)
  let bytes: Uint8Array<ArrayBuffer>
  try {
    bytes = await answer.held((piece) => aside?.update(piece))
  } catch (error) {
    aside?.drop()
    throw error
  }
  const digest = aside?.digest()
  return {
    bytes,
    hashed: async () => (await digest?.catch(() => undefined)) ?? digestOf('sha384', bytes),
  }
}
