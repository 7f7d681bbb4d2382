import { randomBytes } from 'node:crypto'
import { type BigIntStats, existsSync, fstatSync, statfsSync, statSync } from 'node:fs'
import { type FileHandle, mkdir, open, opendir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { decodeBase64url, encodeBase64url } from '../format/base64url.js'

/** A file being written, not a blob yet. */
export interface BlobDraft {
  readonly handle: FileHandle
  readonly path: string
  /** It has no name on the disk, and never becomes a blob. */
  readonly isInMemory?: true
}

/** Bytes of a file: all of it, or so many from `offset` on. */
export interface FilePart {
  readonly path: string
  readonly offset?: number
  readonly sizeBytes?: number
}

/** A blob that is open for reading: so many bytes of a file. */
export interface OpenBlob {
  readonly handle: FileHandle
  readonly offset: number
  readonly sizeBytes: number
}

/** Where blobs lie that have no file of their own. */
export interface BlobParts {
  part(digest: Uint8Array): FilePart | undefined
  /** True: one that is held has other bytes than its digest's. */
  isFalse(digest: Uint8Array): boolean
}

/** What identifies one state of a file on disk. */
export interface FileIdentity {
  readonly inode: bigint
  readonly sizeBytes: bigint
  readonly modifiedNs: bigint
}

/** Where Linux keeps files in memory. */
const memoryFolder = '/dev/shm'

/** Path of the blob with this SHA-256 below `folder`: one of 256 folders, then the digest as base64url. */
export function blobPath(folder: string, digest: Uint8Array): string {
  return `${folder}/${folderName(digest[0] ?? 0)}/${encodeBase64url(digest)}`
}

/** Each blob in a folder of its own would cost more than the blob: 256 of them hold millions well. */
function folderName(first: number): string {
  return first.toString(16).padStart(2, '0')
}

/** What the system calls an error of it (`EMFILE`, `EIO`); undefined where an error is none of the system's. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}

/** True where an error of the file system says that there is no such file. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/**
 * Files named by the SHA-256 of their content. A blob appears whole by a rename, and is never changed afterwards, only
 * removed: readers may map it. One thread writes; any thread reads through `blobPath`.
 */
export class BlobStore {
  /** Content that a full disk does not take is held in memory while it is read: all of it together may take so much. */
  readonly inMemoryMaxBytes: number = 128 * 1024 * 1024
  readonly #drafts: string
  readonly #ahead: BlobDraft[] = []
  #making = 0
  #closed = false

  /**
   * `prepare` makes `folder` where it is missing. After the first request for a draft, this many are made ahead: a disk that is
   * busy with flushes takes milliseconds for a new name, and a reader waits for the bytes.
   */
  constructor(
    readonly folder: string,
    private readonly aheadMax = 0,
    private readonly small?: BlobParts,
  ) {
    this.#drafts = join(folder, 'tmp')
  }

  /**
   * Makes the folders, brings blobs of the version before to their places, and removes what a killed process left half written.
   * Resolves with the number of files removed.
   */
  async prepare(): Promise<number> {
    await mkdir(this.#drafts, { recursive: true, mode: 0o700 })
    for (let first = 0; first < 256; first += 1) await liftBlobs(join(this.folder, folderName(first)))
    let removed = 0
    for await (const entry of await opendir(this.#drafts)) {
      await rm(join(this.#drafts, entry.name), { force: true, recursive: true })
      removed += 1
    }
    return removed
  }

  /** A new empty file, readable and writable by this user only. Rejects where the disk refuses. */
  async draft(): Promise<BlobDraft> {
    const ready = this.#ahead.pop()
    while (!this.#closed && this.#ahead.length + this.#making < this.aheadMax) void this.#makeAhead()
    return ready ?? this.#make()
  }

  async #make(): Promise<BlobDraft> {
    const path = join(this.#drafts, randomBytes(12).toString('hex'))
    return { handle: await open(path, 'wx+', 0o600), path }
  }

  /**
   * A draft in memory, without a name, that never becomes a blob: for readers of what a full disk does not take. Rejects where
   * the system has no `/dev/shm`, or no room in it.
   */
  async draftInMemory(): Promise<BlobDraft> {
    const path = join(memoryFolder, `sluice-${randomBytes(12).toString('hex')}`)
    const handle = await open(path, 'wx+', 0o600)
    await rm(path, { force: true })
    return { handle, path, isInMemory: true }
  }

  /** Bytes that drafts on the disk and in memory may still take; in memory none where the system has no `/dev/shm`. */
  freeBytes(): { readonly disk: number; readonly memory: number } {
    const free = (folder: string): number => {
      const { bavail, bsize } = statfsSync(folder)
      return bavail * bsize
    }
    return { disk: free(this.folder), memory: existsSync(memoryFolder) ? free(memoryFolder) : 0 }
  }

  async #makeAhead(): Promise<void> {
    this.#making += 1
    try {
      this.#ahead.push(await this.#make())
    } catch {
      // Whoever needs a file and finds none ready tries again, and hears what is wrong.
    }
    this.#making -= 1
    if (this.#closed) await this.close()
  }

  /** Removes the drafts that were made ahead. */
  async close(): Promise<void> {
    this.#closed = true
    for (const draft of this.#ahead.splice(0)) {
      await draft.handle.close()
      await this.discard(draft)
    }
  }

  /**
   * Makes the draft the blob `digest`: its bytes reach the disk before its name does. The name follows when the disk likes: what
   * a power cut takes of it is fetched anew. The caller keeps the handle, and has hashed the bytes. Readers that opened the draft
   * go on reading the same file. Resolves with what the blob is to be known by.
   */
  async keep(draft: BlobDraft, digest: Uint8Array): Promise<FileIdentity> {
    await draft.handle.sync()
    const identity = identityOf(fstatSync(draft.handle.fd, { bigint: true }))
    const path = blobPath(this.folder, digest)
    try {
      await rename(draft.path, path)
    } catch (error) {
      if (!isMissing(error)) throw error
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      await rename(draft.path, path)
    }
    return identity
  }

  /** Removes a draft that will not be a blob. Its readers keep their open file. */
  async discard(draft: BlobDraft): Promise<void> {
    await rm(draft.path, { force: true })
  }

  /** Removes a blob; nothing happens where there is none. */
  async remove(digest: Uint8Array): Promise<void> {
    await rm(blobPath(this.folder, digest), { force: true })
  }

  /** Where a blob lies, or would lie: a part of a segment, or a file of its own. */
  part(digest: Uint8Array): FilePart {
    return this.small?.part(digest) ?? { path: blobPath(this.folder, digest) }
  }

  /** Opens a blob for reading, undefined where there is none, or a small one is damaged. Rejects where the disk refuses. */
  async open(digest: Uint8Array): Promise<OpenBlob | undefined> {
    const { path, offset = 0, sizeBytes } = this.part(digest)
    if (this.small?.isFalse(digest) === true) return undefined
    try {
      const handle = await open(path, 'r')
      return { handle, offset, sizeBytes: sizeBytes ?? fstatSync(handle.fd).size }
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  /** The state of a blob's file, undefined where there is none. */
  async identify(digest: Uint8Array): Promise<FileIdentity | undefined> {
    try {
      return identityOf(await stat(blobPath(this.folder, digest), { bigint: true }))
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  /** Digests, sizes and modification times of the blobs in one of the 256 folders. */
  async *list(first: number): AsyncGenerator<{ digest: Uint8Array; sizeBytes: number; modifiedMs: number }> {
    for (const name of await entries(join(this.folder, folderName(first)))) {
      const digest = decodeBase64url(name)
      const found = digest?.length === 32 ? await this.identify(digest) : undefined
      if (digest !== undefined && found !== undefined) {
        const { sizeBytes, modifiedNs } = found
        yield { digest, sizeBytes: Number(sizeBytes), modifiedMs: Number(modifiedNs / 1_000_000n) }
      }
    }
  }
}

/** Blobs once lay one folder deeper, by their second byte: left there nobody would find them, and nothing remove them. */
async function liftBlobs(folder: string): Promise<void> {
  // A folder without folders in it has two links. Where a file system does not count them it is looked into each time.
  const links = statSync(folder, { throwIfNoEntry: false })?.nlink ?? 2
  if (links === 2) return
  for (const deeper of (await entries(folder)).filter((name) => /^[0-9a-f]{2}$/.test(name))) {
    for (const name of await entries(join(folder, deeper))) {
      await rename(join(folder, deeper, name), join(folder, name))
    }
    await rmdir(join(folder, deeper))
  }
}

function identityOf({ ino, size, mtimeNs }: BigIntStats): FileIdentity {
  return { inode: ino, sizeBytes: size, modifiedNs: mtimeNs }
}

async function entries(folder: string): Promise<string[]> {
  const names: string[] = []
  try {
    for await (const entry of await opendir(folder)) names.push(entry.name)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  return names
}
