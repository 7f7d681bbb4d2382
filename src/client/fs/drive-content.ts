import { ClientError } from '../errors.js'
import { sourceOfBytes, streamPieces } from '../payload.js'
import { tagValueOf } from '../tags.js'
import type { DriveIndex } from './drive-index.js'
import { fileKeyOf, unreadable } from './drive-keys.js'
import type { DriveEntity } from './entities.js'
import { openedPieces } from './opened-pieces.js'

/** Fetches content by id: a `ProvingFetcher`'s `content`, for example, which believes no gateway. */
export type FetchContent = (id: string) => Promise<Response>

/** The content of a file's version in pieces, decrypted where its drive is private. */
export async function* contentPieces(
  index: DriveIndex,
  fetchContent: FetchContent | undefined,
  { key }: { readonly key: Uint8Array | undefined },
  { id, name, file }: DriveEntity,
): AsyncGenerator<Uint8Array> {
  const { dataTxId, pinnedOwner } = file ?? {}
  if (dataTxId === undefined) throw new ClientError('invalid-input', `${name} is no file`, 'give a file')
  const isSealed = key !== undefined && pinnedOwner === undefined
  const tags = isSealed ? await index.tagsOf(dataTxId) : []
  const { body } = await (fetchContent?.(dataTxId) ?? index.ask(dataTxId))
  const pieces =
    body === null
      ? sourceOfBytes(new Uint8Array(0)).open(0)
      : streamPieces(body as ReadableStream<Uint8Array>)
  if (!isSealed) return yield* pieces
  const fileKey = await fileKeyOf(key, id)
  let length = 0
  for await (const piece of openedPieces(
    fileKey,
    pieces,
    tagValueOf(tags, 'Cipher'),
    tagValueOf(tags, 'Cipher-IV'),
  )) {
    length += piece.length
    yield piece
  }
  // The owner's metadata has it, and AES256-CTR has no tag that shows a change.
  if (length !== file?.size) throw unreadable(`it has ${length} bytes where its owner wrote ${file?.size}`)
}
