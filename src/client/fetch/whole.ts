import type { AsideHash } from '../aside-hash.js'
import { fromBase64, joined, sameBytes, toBase64url } from '../bytes.js'
import { digestOf, hash256 } from '../hash.js'
import type { SignedHead } from '../item-layout.js'
import { asideBytesMin, longSha384 } from '../long-hash.js'
import { tagValueOf } from '../tags.js'
import { gatewayHeader, untrue } from './gateways.js'
import { responseSignature } from './http-signature.js'
import { checkOwner, type HeadQuestion, headOf } from './item-head.js'
import { RunningDataRoot } from './merkle-proof.js'
import { type ProvenTransaction, transactionProven } from './transaction-proof.js'

/** Content that its owner's signature covers, to the last byte. */
export interface OwnedContent {
  /** All bytes, as they came. */
  readonly pieces: readonly Uint8Array[]
  readonly size: number
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
  const isOther = told !== undefined && told !== id
  if (signature === false || isOther) {
    await response.body?.cancel()
    const lie = isOther
      ? `asked for ${id}, it gave ${told}`
      : `the signature over its answer for ${id} does not hold`
    throw untrue(`${gateway}: ${lie}`)
  }
  const rootId = gatewayHeader(headers, 'root-transaction-id')
  // The proof is on its way while the body comes.
  const proof = rootId === id ? transactionProven(gateways, gateway, id, signal) : headOf(question, headers)
  proof.catch((error) => error)
  const body = await (rootId === id ? rootedBody(question, response) : hashedBody(question, response))
  const found = await proof
  const signedBy = signature === 'unsigned' ? undefined : signature.keyId
  const { pieces, size } = body
  try {
    const told =
      'dataRoot' in found ? await ofTransaction(gateway, found, body) : await ofItem(gateway, found, body)
    return { ...told, pieces, size, signedBy }
  } catch (error) {
    // What the owner did not sign may be what the gateway itself calls broken: that says more.
    await checkDigest(gateway, id, headers, pieces)
    throw error
  }
}

interface Body {
  readonly pieces: readonly Uint8Array[]
  readonly size: number
  /** SHA-384 of all bytes. */
  hashed(): Promise<Uint8Array>
  dataRoot(): Promise<Uint8Array>
}

/** Here, where no other thread has done it. */
async function wholeSha384(pieces: readonly Uint8Array[]): Promise<Uint8Array> {
  return digestOf('sha384', pieces.length === 1 ? (pieces[0] as Uint8Array) : joined(...pieces))
}

async function dataRootOf(pieces: readonly Uint8Array[], size: number): Promise<Uint8Array> {
  const running = new RunningDataRoot(size)
  for (const piece of pieces) running.update(piece)
  return running.root()
}

/** Reads a body, which another thread hashes meanwhile where it is long enough for that. */
async function hashedBody({ gateways, bytesMax, signal }: WholeQuestion, response: Response): Promise<Body> {
  const pieces: Uint8Array[] = []
  let size = 0
  let aside: AsideHash | undefined
  try {
    for await (const piece of gateways.pieces(response, bytesMax, signal)) {
      pieces.push(piece)
      size += piece.length
      if (size < asideBytesMin) continue
      if (aside === undefined) {
        aside = await longSha384(size)
        for (const one of pieces.slice(0, -1)) await aside.update(one)
      }
      await aside.update(piece)
    }
  } catch (error) {
    aside?.drop()
    throw error
  }
  const digest = aside?.digest()
  return {
    ...{ pieces, size },
    // Where the other thread failed, this one does it.
    hashed: async () => (await digest?.catch(() => undefined)) ?? wholeSha384(pieces),
    dataRoot: () => dataRootOf(pieces, size),
  }
}

/** Reads the body of a transaction, whose chunks are hashed meanwhile. */
async function rootedBody({ gateways, bytesMax, signal }: WholeQuestion, response: Response): Promise<Body> {
  const length = Number(response.headers.get('content-length') ?? Number.NaN)
  // What is compressed on its way has another length.
  const isPlain = length <= bytesMax && !response.headers.has('content-encoding')
  const running = isPlain ? new RunningDataRoot(length) : undefined
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of gateways.pieces(response, isPlain ? length : bytesMax, signal)) {
    pieces.push(piece)
    size += piece.length
    running?.update(piece)
  }
  return {
    ...{ pieces, size },
    hashed: () => wholeSha384(pieces),
    dataRoot: () => (running !== undefined && size === length ? running.root() : dataRootOf(pieces, size)),
  }
}

async function checkDigest(
  gateway: string,
  id: string,
  headers: Headers,
  pieces: readonly Uint8Array[],
): Promise<void> {
  const [, text] = /sha-256=:([^:]*):/.exec(headers.get('content-digest') ?? '') ?? []
  if (text === undefined) return
  const digest = fromBase64(text)
  if (digest === undefined || !sameBytes(digest, await digestOf('sha256', joined(...pieces))))
    throw untrue(`${gateway}: the bytes of ${id} are not those of its own digest`)
}

type Told = Pick<OwnedContent, 'contentType' | 'owner'>

async function ofTransaction(gateway: string, tx: ProvenTransaction, body: Body): Promise<Told> {
  if (body.size !== tx.dataSize || !sameBytes(await body.dataRoot(), tx.dataRoot))
    throw untrue(`${gateway}: these are not the bytes that the owner of ${tx.id} signed`)
  return { contentType: tx.contentType, owner: tx.owner }
}

async function ofItem(gateway: string, header: SignedHead, body: Body): Promise<Told> {
  await checkOwner(gateway, header, { hashed: await body.hashed(), length: body.size })
  return {
    contentType: tagValueOf(header.tags, 'Content-Type') ?? tagValueOf(header.tags, 'content-type'),
    owner: toBase64url(hash256(header.owner)),
  }
}
