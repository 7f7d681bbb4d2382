import { writeSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'

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
export class Pen {
  #written = 0
  /** Bytes that were written when the last flush began. */
  #flushed = 0
  #flushing: Promise<void> | undefined
  #failure: unknown

  constructor(private readonly handle: FileHandle) {}

  get written(): number {
    return this.#written
  }

  /** All of `bytes` are in the file on return, or when the promise resolves. Throws or rejects where the disk refuses. */
  write(bytes: Uint8Array): Promise<void> | undefined {
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
