import { decodeBase64url, encodeBase64url } from '../format/base64url.js'
import { joined, sameBytes, utf8 } from './bytes.js'
import { type PayloadDigest, payloadDigestOf } from './deep-digest.js'
import { ClientError } from './errors.js'
import { hash384 } from './hash.js'
import {
  headerSizeOf,
  itemFields,
  messageOf,
  readItemHead,
  type SignedHead,
  signedHeader,
} from './item-layout.js'
import { longSha384 } from './long-hash.js'
import { allBytes, type PayloadSource, sourceOfBytes } from './payload.js'
import type { ResumeStore } from './resume-store.js'
import type { ClientSigner } from './signer.js'
import type { TextTag } from './tags.js'
import type { Emit } from './task.js'
import { throwIfAborted } from './timing.js'

/** The fields of an item besides its content. */
export interface DataItemOptions {
  readonly tags?: readonly TextTag[]
  /** An address or id: 43 characters of base64url. */
  readonly target?: string
  /** 32 characters of ASCII. */
  readonly anchor?: string
  /** Addresses whose credits pay, in this order, by the approvals that they gave. */
  readonly paidBy?: readonly string[]
}

/** An item that is signed and can be sent, also again, from any place. */
export interface PreparedItem {
  readonly header: SignedHead
  /** Header and payload. */
  readonly source: PayloadSource
  /** Names the upload in the resume store: the same for the same owner, tags and content in every process. */
  readonly resumeKey: string
}

/** Target and anchor as they stand in an item. */
export function targetBytes(target: string | undefined): Uint8Array | undefined {
  if (target === undefined) return undefined
  const bytes = decodeBase64url(target)
  if (bytes?.length === 32) return bytes
  throw new ClientError(
    'invalid-input',
    `the target ${target} is no address`,
    'give 43 characters of base64url',
  )
}

async function digestWithProgress(
  payload: PayloadSource,
  emit: Emit,
  signal: AbortSignal | undefined,
): Promise<PayloadDigest> {
  const hash = await longSha384(payload.size)
  let read = 0
  try {
    for await (const piece of payload.open(0)) {
      throwIfAborted(signal)
      await hash.update(piece)
      read += piece.length
      if (read > payload.size) break
      emit({ type: 'signing', processedBytes: read, totalBytes: payload.size })
    }
    if (read !== payload.size) throw changed(`${read} bytes were read of ${payload.size}`)
  } catch (error) {
    hash.drop()
    throw error
  }
  return { hashed: await hash.digest(), length: read }
}

function changed(message: string, id?: string): ClientError {
  return new ClientError('changed-while-read', message, 'upload again when the content stays the same', {
    id,
  })
}

/** Signs content as an item. The content is read once here, and again when it is sent. */
export async function prepareItem(
  payload: PayloadSource,
  options: DataItemOptions,
  signer: ClientSigner,
  store: ResumeStore,
  emit: Emit,
  signal?: AbortSignal,
): Promise<PreparedItem> {
  const { tags = [], target, anchor } = options
  if (signer.signWhole !== undefined) {
    const data = await allBytes(payload)
    const bytes = await signer.signWhole({
      data,
      tags,
      ...(target === undefined ? {} : { target }),
      ...(anchor === undefined ? {} : { anchor }),
    })
    return preparedFromBytes(bytes)
  }
  const fields = itemFields(
    signer,
    tags,
    targetBytes(target),
    anchor === undefined ? undefined : utf8(anchor),
  )
  const digest = await digestWithProgress(payload, emit, signal)
  const message = messageOf(fields, digest)
  // The message is the same in every process; RSA signatures are not, and another one would be another item.
  const resumeKey = `item:${encodeBase64url(message)}`
  const known = await store.get(`${resumeKey}:signature`)
  const signature = (known === undefined ? undefined : decodeBase64url(known)) ?? (await signer.sign(message))
  if (known === undefined) await store.set(`${resumeKey}:signature`, encodeBase64url(signature))
  const header = signedHeader(fields, signature)
  emit({ type: 'signed', id: header.id })
  return { header, source: itemSource(header, payload, digest), resumeKey }
}

const placeParts = ['parts', 'payment', 'topup'] as const

/**
 * Key of what is remembered of an upload at one service. What was begun or paid elsewhere is of no use there: a payment, for
 * example, names who gets it.
 */
export function placeKey(resumeKey: string, part: (typeof placeParts)[number], serviceUrl: string): string {
  return `${resumeKey}:${part}:${serviceUrl}`
}

/** Forgets an upload that is done at a service. */
export async function forgetUpload(store: ResumeStore, resumeKey: string, serviceUrl: string): Promise<void> {
  await store.delete(`${resumeKey}:signature`)
  for (const part of placeParts) await store.delete(placeKey(resumeKey, part, serviceUrl))
}

/** Bytes that an item with this payload will have. */
export function itemSizeOf(
  payloadBytes: number,
  options: DataItemOptions,
  signer: Pick<ClientSigner, 'signatureType' | 'owner'>,
): number {
  const anchor = options.anchor === undefined ? undefined : utf8(options.anchor)
  return (
    headerSizeOf(itemFields(signer, options.tags ?? [], targetBytes(options.target), anchor)) + payloadBytes
  )
}

/** Header and payload as one source, which fails where the payload is not what was signed. */
function itemSource(header: SignedHead, payload: PayloadSource, digest: PayloadDigest): PayloadSource {
  const headBytes = header.bytes.length
  return {
    size: headBytes + payload.size,
    async *open(from) {
      if (from < headBytes) yield header.bytes.subarray(from)
      const checked = from <= headBytes ? await longSha384(payload.size) : undefined
      let read = Math.max(0, from - headBytes)
      // The last piece waits until the whole is known to be right: the service never gets an item that cannot verify.
      let held: Uint8Array | undefined
      try {
        for await (const piece of payload.open(read)) {
          await checked?.update(piece)
          read += piece.length
          if (read > payload.size) break
          if (held !== undefined) yield held
          held = piece
        }
        const isSame = checked === undefined || sameBytes(await checked.digest(), digest.hashed)
        if (read !== payload.size || !isSame)
          throw changed('the content changed after it was signed', header.id)
        if (held !== undefined) yield held
      } finally {
        // Where the reader leaves early; it is over otherwise.
        checked?.drop()
      }
    },
  }
}

/** An item that is signed already. Throws `invalid-input` where the bytes do not begin as one. */
export async function preparedFromBytes(bytes: Uint8Array): Promise<PreparedItem> {
  return preparedFromSource(sourceOfBytes(bytes))
}

/** The same of an item that is read when it is sent. */
export async function preparedFromSource(source: PayloadSource): Promise<PreparedItem> {
  let head = new Uint8Array(0)
  for await (const piece of source.open(0)) {
    head = joined(head, piece)
    const header = readItemHead(head)
    if (header === 'more') continue
    if (header === undefined) break
    return { header, source, resumeKey: `item:${header.id}` }
  }
  const advice = 'give the bytes of a signed ANS-104 data item'
  throw new ClientError('invalid-input', 'these bytes are no data item', advice)
}

/** A whole signed item in memory: for small things, and for what goes into a bundle. Signed again, it is the same item. */
export async function signedItem(
  payload: Uint8Array,
  options: DataItemOptions,
  signer: ClientSigner,
): Promise<{ readonly id: string; readonly bytes: Uint8Array<ArrayBuffer> }> {
  const anchor = options.anchor === undefined ? undefined : utf8(options.anchor)
  const fields = itemFields(signer, options.tags ?? [], targetBytes(options.target), anchor)
  const message = messageOf(fields, await payloadDigestOf(payload))
  const header = signedHeader(fields, await (signer.signRepeatable?.(message) ?? signer.sign(message)))
  return { id: header.id, bytes: joined(header.bytes, payload) }
}

/** A short name of some bytes for keys of the resume store. */
export function shortName(...parts: readonly Uint8Array[]): string {
  return encodeBase64url(hash384(...parts).subarray(0, 18))
}
