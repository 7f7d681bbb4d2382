import type { EventEmitter } from 'node:events'
import { fstatSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { BlobDraft, BlobStore } from '../../store/blobs.js'

/** What content leaves free on the disk, for the indexes and the log beside it. */
const leftFreeBytes = 16 * 1024 * 1024

/** Bytes of all drafts in memory. */
let held = 0

/** Open drafts on the disk, and the bytes that there must be room for in each. */
const promised = new Map<FileHandle, number>()
let promisedBytes = 0
/** A size that nobody has proven takes so much room from others: a source may announce anything. */
const unprovenMaxBytes = 64 * 1024 * 1024

/**
 * A draft for so many bytes: a file on the disk, and where the disk is full one in memory, which cannot be kept. What other
 * drafts have not written yet counts as taken. Refusal: `busy`, where there is room in neither. Rejects where the disk fails.
 */
export async function draftFor(
  sizeBytes: number,
  isProven: boolean,
  store: Pick<BlobStore, 'draft' | 'draftInMemory' | 'freeBytes' | 'inMemoryMaxBytes'>,
): Promise<BlobDraft | Refusal> {
  const free = store.freeBytes().disk - sizeBytes - leftFreeBytes
  if (free < promisedBytes && free < unwrittenBytes()) return draftInMemoryFor(sizeBytes, store)
  const room = isProven ? sizeBytes : Math.min(sizeBytes, unprovenMaxBytes)
  // Counted before the file is there: another transfer may begin meanwhile.
  promisedBytes += room
  const giveBack = (): void => {
    promisedBytes -= room
  }
  try {
    const draft = await store.draft()
    promised.set(draft.handle, room)
    const handle = draft.handle as FileHandle & EventEmitter
    handle.once('close', () => {
      promised.delete(handle)
      giveBack()
    })
    return draft
  } catch (error) {
    giveBack()
    throw error
  }
}

/** What the drafts on the disk have not written yet. */
function unwrittenBytes(): number {
  let written = 0
  for (const [{ fd }, room] of promised) written += Math.min(room, fstatSync(fd).size)
  return promisedBytes - written
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
  /** Bytes that were requested: there is room for so many. */
  #roomBytes = 0

  constructor(private readonly store: TransferStore) {}

  /** A draft for so many bytes: the one before, or where it has less room another one in its place. As `draftFor` otherwise. */
  async take(sizeBytes: number, isProven: boolean): Promise<BlobDraft | Refusal> {
    if (this.#draft !== undefined && sizeBytes <= this.#roomBytes) return this.#draft
    await this.drop()
    return this.put(await draftFor(sizeBytes, isProven, this.store), sizeBytes)
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
