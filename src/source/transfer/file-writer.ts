import { createHash } from 'node:crypto'
import { writeSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { Log } from '../../actor/log.js'
import { PieceList } from '../../format/piece-list.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { type RunningDigest, runningSha256 } from '../../proof/digest.js'
import { ownPace, type WritePace } from './write-pace.js'

/** Bytes that are written without leaving the thread, however slow the disk is. */
const promptBytes = 2 * 1024 * 1024

/** Bytes written between two orders to bring them to the disk, which run while more is written. */
const flushBytes = 64 * 1024 * 1024

/** Bytes that the disk may be behind, before the source is made to wait for it. */
const behindMaxBytes = 1024 * 1024 * 1024

/** Writes that leave the thread are of up to so many: each costs as much as 20 KiB of it. */
const batchBytes = 256 * 1024

/**
 * Writes a file from start to end. Bytes are written at once, while they are in the processor's cache; another thread would take
 * half as long again. Where the disk is slow (`WritePace`) only the first ones are written on this thread, because a reader waits
 * for them and a few pages never block. Later ones are written by other threads, one write after the other, each with the bytes
 * that came meanwhile. They are sent to the disk as they come, so that the final flush is short. A slow disk slows its source,
 * because two batches are held at most.
 */
export class FileWriter {
  #taken = 0
  #written = 0
  /** Bytes that were written when the last flush began. */
  #flushed = 0
  #flushing: Promise<void> | undefined
  #failure: unknown
  /** What the next write brings: pieces as they were given, or a copy of them. */
  #pieces = new PieceList()
  #batchLength = 0
  /** Memory of copies, for this batch and the one after it. */
  #batch: Uint8Array | undefined
  #spare: Uint8Array | undefined
  #writing: Promise<void> | undefined
  #writeFailure: unknown

  readonly #hash: RunningDigest | undefined
  readonly #isLasting: boolean
  readonly #onWritten: ((bytes: number) => void) | undefined
  readonly #pace: WritePace

  /**
   * `isHashed`: `digest` will be called. `isLasting`: bytes that are given stay as they are, and are not copied. `onWritten`
   * hears how many bytes are in the file, whenever there are more. `pace`: that of the disk.
   */
  constructor(
    private readonly handle: FileHandle,
    options: {
      readonly isHashed?: boolean
      readonly isLasting?: boolean
      readonly onWritten?: (bytes: number) => void
      readonly pace?: WritePace
    } = {},
  ) {
    this.#hash = options.isHashed === true ? runningSha256() : undefined
    this.#isLasting = options.isLasting === true
    this.#onWritten = options.onWritten
    this.#pace = options.pace ?? ownPace
  }

  /** SHA-256 of what was taken, once, at the end. Zeros where it was not to be hashed. */
  digest(): Uint8Array {
    return this.#hash?.digest() ?? new Uint8Array(32)
  }

  /** Bytes that were given to `write`. */
  get taken(): number {
    return this.#taken
  }

  /** Takes `bytes`; a promise where the disk has to be waited for. Throws or rejects where the disk refuses. */
  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#hash?.update(bytes)
    const isFirst = this.#taken < promptBytes
    this.#taken += bytes.length
    if (isFirst || (this.#isInOrder && this.#pace.isPrompt)) return this.#writeNow(bytes)
    return this.#putAside(bytes)
  }

  /** All that was given is in the file. */
  get #isInOrder(): boolean {
    return this.#writing === undefined && this.#batchLength === 0 && this.#writeFailure === undefined
  }

  #writeNow(bytes: Uint8Array): Promise<void> | undefined {
    for (let done = 0; done < bytes.length; ) {
      const length = Math.min(bytes.length - done, batchBytes)
      try {
        this.#pace.timed(() => {
          const count = writeSync(this.handle.fd, bytes, done, length, this.#written)
          done += count
          this.#written += count
        })
      } catch (error) {
        this.#writeFailure = error
        throw error
      }
    }
    this.#moved()
    return this.#written - this.#flushed >= behindMaxBytes ? this.settle() : undefined
  }

  #moved(): void {
    this.#onWritten?.(this.#written)
    if (this.#written - this.#flushed >= flushBytes && this.#flushing === undefined) this.#flush()
  }

  #putAside(bytes: Uint8Array): Promise<void> | undefined {
    const isBehind = this.#written - this.#flushed >= behindMaxBytes
    if (this.#batchLength + bytes.length > batchBytes || isBehind || this.#writeFailure !== undefined)
      return this.#putAsideLater(bytes)
    this.#add(bytes)
    return undefined
  }

  async #putAsideLater(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      if (this.#batchLength === batchBytes) await this.#writing
      if (this.#writeFailure !== undefined) throw this.#writeFailure
      const end = Math.min(bytes.length, done + batchBytes - this.#batchLength)
      this.#add(bytes.subarray(done, end))
      done = end
    }
    if (this.#written - this.#flushed >= behindMaxBytes) await this.settle()
  }

  /** There is room. */
  #add(bytes: Uint8Array): void {
    if (this.#isLasting) this.#pieces.add(bytes)
    else {
      // Whoever gave the bytes may use their memory again.
      this.#batch ??= Buffer.allocUnsafeSlow(batchBytes)
      this.#batch.set(bytes, this.#batchLength)
    }
    this.#batchLength += bytes.length
    if (this.#writing === undefined) this.#writeBatch()
  }

  #writeBatch(): void {
    const batch = this.#batch
    const pieces = batch === undefined ? this.#pieces.pieces : [batch.subarray(0, this.#batchLength)]
    this.#pieces = new PieceList()
    this.#batch = this.#spare
    this.#spare = undefined
    this.#batchLength = 0
    this.#writing = this.#writeAll(pieces).then(
      () => {
        this.#writing = undefined
        this.#spare = batch
        if (this.#batchLength > 0) this.#writeBatch()
      },
      (error: unknown) => {
        this.#writing = undefined
        this.#writeFailure = error
      },
    )
  }

  async #writeAll(pieces: readonly Uint8Array[]): Promise<void> {
    for (let left = pieces; left.length > 0; ) {
      const { bytesWritten } = await this.handle.writev(left, this.#written)
      this.#written += bytesWritten
      left = behind(left, bytesWritten)
    }
    this.#moved()
  }

  /** Resolves when nothing is being written any more. Never rejects. */
  async rest(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
  }

  /** Resolves when all that was taken is in the file. Rejects where the disk refused. */
  async drain(): Promise<void> {
    await this.rest()
    if (this.#writeFailure !== undefined) throw this.#writeFailure
  }

  /** Resolves when no flush is under way. Rejects where one failed: the disk reports a lost write only once. */
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
      log.error(
        { err: error },
        'written bytes could not be read back from the disk: the payload is not cached',
      )
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

/** What is left of pieces behind so many bytes. */
function behind(pieces: readonly Uint8Array[], bytes: number): Uint8Array[] {
  const left: Uint8Array[] = []
  let before = bytes
  for (const piece of pieces) {
    if (before < piece.length) left.push(piece.subarray(before))
    before = Math.max(0, before - piece.length)
  }
  return left
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
