import { createHash, type Hash } from 'node:crypto'
import { writeSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { Log } from '../actor/log.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { runningSha256 } from '../proof/digest.js'

/** Bytes that are written without leaving the thread. */
const promptBytes = 2 * 1024 * 1024

/** Bytes written between two orders to bring them to the disk, which run while more is written. */
const flushBytes = 64 * 1024 * 1024

/** Bytes that the disk may be behind, before the source is made to wait for it. */
const behindMaxBytes = 1024 * 1024 * 1024

/**
 * Writes a file from its start to its end. The first bytes are on somebody's critical path, and a few pages never wait for the
 * disk: they are written at once. Later ones leave the thread, and are sent to the disk as they come, so that the final flush is
 * short, and a disk that falls behind slows its source and fills no memory.
 */
export class FileWriter {
  #written = 0
  /** Bytes that were written when the last flush began. */
  #flushed = 0
  #flushing: Promise<void> | undefined
  #failure: unknown

  readonly #hash: Hash | undefined

  /** `isHashed`: `digest` will be asked. */
  constructor(
    private readonly handle: FileHandle,
    isHashed = false,
  ) {
    this.#hash = isHashed ? runningSha256() : undefined
  }

  /** SHA-256 of what was written, once, at the end. Zeros where it was not to be hashed. */
  digest(): Uint8Array {
    return this.#hash?.digest() ?? new Uint8Array(32)
  }

  get written(): number {
    return this.#written
  }

  /** All of `bytes` are in the file on return, or when the promise resolves. Throws or rejects where the disk refuses. */
  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#hash?.update(bytes)
    if (this.#written >= promptBytes) return this.#writeLater(bytes)
    for (let done = 0; done < bytes.length; ) {
      const count = writeSync(this.handle.fd, bytes, done, bytes.length - done, this.#written)
      done += count
      this.#written += count
    }
    return undefined
  }

  async #writeLater(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const left = bytes.length - done
      const { bytesWritten } = await this.handle.write(bytes, done, left, this.#written)
      done += bytesWritten
      this.#written += bytesWritten
    }
    const behind = this.#written - this.#flushed
    if (behind >= flushBytes && this.#flushing === undefined) this.#flush()
    if (behind >= behindMaxBytes) await this.settle()
  }

  /** Resolves when no flush is under way. Rejects where one failed: the disk tells of a lost write only once. */
  async settle(): Promise<void> {
    await this.#flushing
    if (this.#failure !== undefined) throw this.#failure
  }

  /**
   * Nothing is called whole before the disk has answered for what was sent to it so far. True: it has. False: it failed, so the
   * file is not to be kept; but its bytes still are those of `digest`, as reading them once more showed. Refusal: they are not,
   * or nobody can say.
   */
  async settled(digest: Uint8Array | undefined, log: Pick<Log, 'error'>): Promise<boolean | Refusal> {
    try {
      await this.settle()
      return true
    } catch (error) {
      log.error({ err: error }, 'the disk lost what it had taken: the payload is not kept')
    }
    const found = digest === undefined ? undefined : await digestOf(this.handle, this.#written)
    if (digest !== undefined && found !== undefined && Buffer.compare(found, digest) === 0) return false
    return refuse('busy', 'self', 'the disk failed')
  }

  #flush(): void {
    this.#flushed = this.#written
    this.#flushing = this.handle
      .datasync()
      .catch((error: unknown) => {
        this.#failure = error
      })
      .finally(() => {
        this.#flushing = undefined
      })
  }
}

/** Bytes that are read in one go. */
const readBytes = 256 * 1024

/** SHA-256 of the first `sizeBytes` of a file, or of all of a shorter one, as it reads now. Rejects where that fails. */
async function digestOf(handle: FileHandle, sizeBytes: number): Promise<Uint8Array> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafe(Math.min(readBytes, sizeBytes))
  for (let at = 0; at < sizeBytes; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, sizeBytes - at), at)
    if (bytesRead === 0) break
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
  return hash.digest()
}
