import { isRefusal, type Refusal } from '../../format/refusal.js'
import { type BlobDraft, type BlobStore, codeOf } from '../../store/blobs.js'
import { draftInMemoryFor } from './draft-room.js'
import { FileWriter } from './file-writer.js'

/**
 * Writes a small payload that is not cached, for its present readers: into `draft`, or into a draft in memory where the disk is
 * full. So a gateway continues to serve fetched content. Resolves with the draft that has the bytes; the other one is closed and
 * removed. Refusal: `busy`, where memory has no room either; then nothing is open. Rejects where both fail.
 */
export async function writeAside(
  draft: BlobDraft,
  parts: readonly Uint8Array[],
  store: Pick<BlobStore, 'discard' | 'draftInMemory' | 'freeBytes' | 'inMemoryMaxBytes'>,
): Promise<BlobDraft | Refusal> {
  try {
    await writeAll(draft, parts)
    return draft
  } catch (error) {
    if (codeOf(error) !== 'ENOSPC') throw error
  }
  await draft.handle.close()
  await store.discard(draft)
  const sizeBytes = parts.reduce((sum, { length }) => sum + length, 0)
  const inMemory = await draftInMemoryFor(sizeBytes, store)
  if (isRefusal(inMemory)) return inMemory
  try {
    await writeAll(inMemory, parts)
  } catch (error) {
    // Nobody else knows of it: without a name, its memory is free when it is closed.
    await inMemory.handle.close()
    throw error
  }
  return inMemory
}

async function writeAll({ handle }: BlobDraft, parts: readonly Uint8Array[]): Promise<void> {
  const writer = new FileWriter(handle)
  for (const bytes of parts) await writer.write(bytes)
  await writer.drain()
}
