import type { EventEmitter } from 'node:events'
import type { FileHandle } from 'node:fs/promises'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { BlobDraft, BlobStore } from '../../store/blobs.js'

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
  return store.freeBytes().disk >= sizeBytes + leftFreeBytes
    ? store.draft()
    : draftInMemoryFor(sizeBytes, store)
}

/**
 * A draft in memory for so many bytes, which are counted until its file is closed. Refusal: `busy`, where there is no room.
 * Rejects where the system refuses.
 */
export async function draftInMemoryFor(
  sizeBytes: number,
  store: Pick<BlobStore, 'draftInMemory' | 'freeBytes' | 'inMemoryMaxBytes'>,
): Promise<BlobDraft | Refusal> {
  if (sizeBytes > store.freeBytes().memory || held + sizeBytes > store.inMemoryMaxBytes)
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

type TransferStore = Pick<BlobStore, 'draft' | 'discard' | 'draftInMemory' | 'freeBytes' | 'inMemoryMaxBytes'>

/** The draft of one transfer. A source that fails before a reader has its path leaves it to the next source. */
export class TransferDraft {
  #draft: BlobDraft | undefined
  /** Bytes that it was asked for: there is room for so many. */
  #roomBytes = 0

  constructor(private readonly store: TransferStore) {}

  /** A draft for so many bytes: the one before, or where it has less room another one in its place. As `draftFor` otherwise. */
  async take(sizeBytes: number): Promise<BlobDraft | Refusal> {
    if (this.#draft !== undefined && sizeBytes <= this.#roomBytes) return this.#draft
    await this.drop()
    return this.put(await draftFor(sizeBytes, this.store), sizeBytes)
  }

  /** Takes the place of one that was dropped. */
  put(draft: BlobDraft | Refusal, sizeBytes: number): BlobDraft | Refusal {
    if (isRefusal(draft)) return draft
    this.#draft = draft
    this.#roomBytes = sizeBytes
    return draft
  }

  /** Closes and removes it. Only while no reader has its path. */
  async drop(): Promise<void> {
    await this.discard()
    await this.close()
    this.#draft = undefined
  }

  /** The next source begins anew. */
  async empty(): Promise<void> {
    await this.#draft?.handle.truncate(0)
  }

  /** Removes its name; readers keep their open file. */
  async discard(): Promise<void> {
    if (this.#draft !== undefined) await this.store.discard(this.#draft)
  }

  async close(): Promise<void> {
    await this.#draft?.handle.close()
  }
}
