import type { FileHandle } from 'node:fs/promises'
import type { Attributes } from '../../catalog/attributes.js'
import { encodeItemHeader, type ItemHeader, parseItemHeader, signatureTypes } from '../../format/item.js'
import { isRefusal } from '../../format/refusal.js'
import { runningSha256 } from '../../proof/digest.js'
import { ItemVerifier } from '../../proof/item-verifier.js'
import type { BlobStore } from '../../store/blobs.js'
import type { PackPlace } from './pack-format.js'

const pieceBytes = 256 * 1024

/** Content on disk as an object for the store: checked, and open until `close`. */
export interface LocalObject extends Omit<PackPlace, 'offset'> {
  /** SHA-256 of the object. */
  readonly sha256: Uint8Array
  bytes(): AsyncGenerator<Uint8Array, undefined>
  close(): Promise<void>
}

/**
 * Opens content that was verified. An item goes with its header, from which its owner's signature can be checked. Undefined: it
 * is not there (any more), or its bytes are not those of its digest. Rejects where the disk refuses.
 */
export async function openLocalObject(
  known: Attributes,
  digest: Uint8Array,
  store: Pick<BlobStore, 'open'>,
): Promise<LocalObject | undefined> {
  const blob = await store.open(digest)
  if (blob === undefined) return undefined
  const { handle, offset, sizeBytes } = blob
  const close = (): Promise<void> => handle.close()
  try {
    const payload = (): AsyncGenerator<Uint8Array, undefined> => piecesOf(handle, offset, sizeBytes)
    const header = sizeBytes === known.size ? headerOf(known) : undefined
    const checked = await check(payload(), header)
    if (Buffer.compare(checked.digest, digest) !== 0) {
      await close()
      return undefined
    }
    const { bytes: before, sha256 } = checked.signed ?? { bytes: undefined, sha256: digest }
    const { place, contentType = '' } = known
    return {
      sizeBytes: sizeBytes + (before?.length ?? 0),
      dataStart: before?.length ?? 0,
      contentType,
      ...(place === undefined ? {} : { root: { id: place.rootId, itemOffset: place.rootItemOffset } }),
      sha256,
      async *bytes() {
        if (before !== undefined) yield before
        yield* payload()
        return undefined
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

interface EncodedHeader {
  readonly bytes: Uint8Array
  readonly header: ItemHeader
}

/** The header as bytes, where what the catalog has of it makes the header of this id. */
function headerOf({ id, header, isTransaction }: Attributes): EncodedHeader | undefined {
  if (header === undefined || isTransaction === true) return undefined
  const type = signatureTypes.get(header.signatureType)
  if (type?.signatureSize !== header.signature.length || type.ownerSize !== header.owner.length)
    return undefined
  const bytes = encodeItemHeader(header)
  const parsed = parseItemHeader(bytes)
  return parsed === 'more' || isRefusal(parsed) || parsed.id !== id ? undefined : { bytes, header: parsed }
}

/** Reads a payload once: its digest, and whether its owner signed it with this header. */
async function check(
  payload: AsyncIterable<Uint8Array>,
  header: EncodedHeader | undefined,
): Promise<{
  readonly digest: Uint8Array
  readonly signed?: { readonly bytes: Uint8Array; readonly sha256: Uint8Array }
}> {
  const digest = runningSha256()
  const whole = header === undefined ? undefined : runningSha256()
  const verifier = header === undefined ? undefined : new ItemVerifier(header.header)
  if (header !== undefined) whole?.update(header.bytes)
  for await (const piece of payload) {
    digest.update(piece)
    whole?.update(piece)
    verifier?.update(piece)
  }
  // Tags may have been encoded in another way than here: such an item goes without its header.
  const isSigned = verifier?.finish() === true
  if (header === undefined || whole === undefined || !isSigned) return { digest: digest.digest() }
  return { digest: digest.digest(), signed: { bytes: header.bytes, sha256: whole.digest() } }
}

/** Bytes of a file; a file that is shorter ends early. */
async function* piecesOf(
  handle: FileHandle,
  offset: number,
  sizeBytes: number,
): AsyncGenerator<Uint8Array, undefined> {
  for (let at = 0; at < sizeBytes; ) {
    const wanted = Math.min(pieceBytes, sizeBytes - at)
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, offset + at)
    if (bytesRead === 0) return undefined
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
  return undefined
}
