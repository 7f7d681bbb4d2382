import type { EventEmitter } from 'node:events'
import type { FileHandle } from 'node:fs/promises'
import { type Refusal, refuse } from '../format/refusal.js'
import type { BlobDraft, BlobStore } from '../store/blobs.js'

/** What content leaves free on the disk, for the indexes and the log beside it. */
const leftFreeBytes = 16 * 1024 * 1024

/** Bytes of all drafts in memory. */
let held = 0

/**
 * A draft for so many bytes: a file on the disk, and where the disk is full one in memory, which cannot be kept. Refusal: `busy`,
 * where there is room in neither. Rejects where the disk fails.
 */
export async function draftFor(
  sizeBytes: number,
  store: Pick<BlobStore, 'draft' | 'draftInMemory' | 'freeBytes' | 'inMemoryMaxBytes'>,
): Promise<BlobDraft | Refusal> {
  const { disk, memory } = store.freeBytes()
  if (disk >= sizeBytes + leftFreeBytes) return store.draft()
  if (sizeBytes > memory || held + sizeBytes > store.inMemoryMaxBytes)
    return refuse('busy', 'self', 'the disk is full')
  held += sizeBytes
  const giveBack = (): void => {
    held -= sizeBytes
  }
  try {
    const draft = await store.draftInMemory()
    const handle = draft.handle as FileHandle & EventEmitter
    handle.once('close', giveBack)
    return draft
  } catch (error) {
    giveBack()
    throw error
  }
}
