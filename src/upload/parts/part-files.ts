import {
  closeSync,
  fdatasyncSync,
  fsync,
  ftruncateSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { FairSlots } from '../../actor/fair-slots.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { diskRefusal } from '../../store/disk-error.js'
import { makeFolder } from '../../store/folder.js'
import type { PartDraft, PartStore } from './part-store.js'

const flush = promisify(fsync)

/** Bytes of a part that may wait for the disk while more come in. */
const behindMaxBytes = 32 * 1024 * 1024

/** Folders removed at once: thousands may expire together, and others need the threads that work on files. */
const removalsMax = 2

/** Parts of items on disk: a folder for each upload, and a file for each part, named by the place where it begins. */
export class PartFiles implements PartStore {
  #drafts = 0
  readonly #removals = FairSlots.unbounded(removalsMax)

  /** Throws where the disk refuses. */
  constructor(private readonly folder: string) {
    makeFolder(folder)
  }

  /** Uploads of which there is anything. */
  uploads(): string[] {
    return readdirSync(this.folder)
  }

  /** Place and size of each part that is whole. What an earlier process left half is removed. */
  kept(upload: string): Map<number, number> {
    const found = new Map<number, number>()
    const folder = join(this.folder, upload)
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) return found
    for (const name of readdirSync(folder)) {
      if (/^\d+$/.test(name)) found.set(Number(name), statSync(join(folder, name)).size)
      else rmSync(join(folder, name))
    }
    return found
  }

  path(upload: string, offset: number): string {
    return join(this.folder, upload, String(offset))
  }

  async sources(upload: string, offsets: readonly number[]): Promise<readonly string[]> {
    return offsets.map((offset) => this.path(upload, offset))
  }

  /** A part that begins to come. */
  draft(upload: string): FileDraft | Refusal {
    const folder = join(this.folder, upload)
    this.#drafts += 1
    try {
      if (statSync(folder, { throwIfNoEntry: false }) === undefined) {
        makeFolder(folder)
        this.#syncFolder()
      }
      return new FileDraft(folder, `${this.#drafts}.new`)
    } catch (error) {
      return diskRefusal(error)
    }
  }

  #syncFolder(): void {
    const handle = openSync(this.folder, 'r')
    try {
      fdatasyncSync(handle)
    } finally {
      closeSync(handle)
    }
  }

  async cut(upload: string, from: number): Promise<void> {
    const folder = join(this.folder, upload)
    const names = statSync(folder, { throwIfNoEntry: false }) === undefined ? [] : readdirSync(folder)
    const gone = names.filter((name) => /^\d+$/.test(name) && Number(name) >= from)
    for (const name of gone) await rm(join(folder, name), { force: true })
  }

  async remove(upload: string): Promise<void> {
    await this.#removals.run(() => rm(join(this.folder, upload), { recursive: true, force: true }))
  }
}

/** A part on its way into a file. */
export class FileDraft implements PartDraft {
  sizeBytes = 0
  isPlaced = false
  readonly #file: number
  readonly #path: string
  #flushedAt = 0
  #flushing: Promise<Refusal | undefined> | undefined

  /** Throws where the disk refuses. */
  constructor(
    private readonly folder: string,
    name: string,
  ) {
    this.#path = join(folder, name)
    this.#file = openSync(this.#path, 'wx', 0o600)
  }

  write(piece: Uint8Array): undefined | Refusal | Promise<Refusal | undefined> {
    try {
      for (let done = 0; done < piece.length; )
        done += writeSync(this.#file, piece, done, piece.length - done, this.sizeBytes + done)
    } catch (error) {
      return diskRefusal(error)
    }
    this.sizeBytes += piece.length
    return this.sizeBytes - this.#flushedAt < behindMaxBytes ? undefined : this.#flush()
  }

  #flush(): Promise<Refusal | undefined> {
    this.#flushedAt = this.sizeBytes
    const before = this.#flushing ?? Promise.resolve(undefined)
    this.#flushing = before.then(async (failed) => failed ?? (await this.#sync()))
    return this.#flushing
  }

  async #sync(): Promise<Refusal | undefined> {
    try {
      await flush(this.#file)
      return undefined
    } catch (error) {
      return diskRefusal(error)
    }
  }

  async keep(offset: number): Promise<Refusal | undefined> {
    const failed = this.#cutRest() ?? (await this.#flush())
    if (isRefusal(failed)) {
      await this.#leave()
      return failed
    }
    try {
      closeSync(this.#file)
      const handle = await open(this.folder, 'r')
      const place = async (): Promise<void> => {
        await rename(this.#path, join(this.folder, String(offset)))
        this.isPlaced = true
        await handle.sync()
      }
      await place().finally(() => handle.close())
      return undefined
    } catch (error) {
      return diskRefusal(error)
    }
  }

  /** A write that the disk refused may have left some of its bytes behind the counted ones. */
  #cutRest(): Refusal | undefined {
    try {
      ftruncateSync(this.#file, this.sizeBytes)
      return undefined
    } catch (error) {
      return diskRefusal(error)
    }
  }

  async drop(): Promise<void> {
    await this.#flushing
    await this.#leave()
  }

  /** Nothing more comes. Resolves with the path of the file, which is the caller's then. Rejects where the disk refuses. */
  async taken(): Promise<string> {
    await this.#flushing
    closeSync(this.#file)
    return this.#path
  }

  async #leave(): Promise<void> {
    closeSync(this.#file)
    await rm(this.#path, { force: true })
  }
}
