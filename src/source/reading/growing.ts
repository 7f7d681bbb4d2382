import { closeSync, openSync, readSync } from 'node:fs'
import type { Content } from '../../store/content.js'
import type { ProgressReader } from './progress-table.js'

/** One buffer a thread: what `read` returns is valid until the next call on any content of the thread. */
const scratch = Buffer.allocUnsafeSlow(256 * 1024)

/** What the buffer holds: bytes of this content, between these places of its file. */
const held: { content: GrowingContent | undefined; from: number; to: number } = {
  content: undefined,
  from: 0,
  to: 0,
}

export interface GrowingFile {
  /** File that holds, or will hold, the bytes. */
  readonly path: string
  /** Where in the file the first of these bytes lies. */
  readonly offset: number
  /** Payload offset of that byte. */
  readonly base: number
  /** Bytes that will be there when whole. */
  readonly fileBytes: number
  /** Bytes of the whole payload. */
  readonly sizeBytes: number
  /** Slot in the progress table. */
  readonly slot: number
  /** The fetcher counts the memory of its bytes until the content is closed. */
  readonly isInMemory?: true
}

/**
 * Content over a file that the fetcher is still writing. Broken files give no more bytes at all. Once all bytes are there, a
 * reader needs only the open file, and closes its place at the fetcher. Otherwise slow clients would hold these places.
 */
export class GrowingContent implements Content {
  readonly sizeBytes: number
  readonly #waits = new Set<() => void>()
  #handle: number
  #hasLeft = false

  /** Opens the file at once: throws where it is gone. `onLeave` is called once, at the end or before. */
  constructor(
    private readonly file: GrowingFile,
    private readonly progress: ProgressReader,
    private readonly onLeave: () => void,
  ) {
    this.sizeBytes = file.sizeBytes
    this.#handle = openSync(file.path, 'r')
  }

  read(start: number, end: number): Uint8Array | undefined {
    const from = this.#offset(start, end)
    const readable = this.#readable()
    // A socket takes part of what was read, and then more of it: bytes that are readable do not change.
    if (readable > 0 && held.content === this && from >= held.from && from < held.to) {
      return scratch.subarray(from - held.from, Math.min(end - this.file.base, held.to) - held.from)
    }
    const to = Math.min(end - this.file.base, readable, from + scratch.length)
    if (to <= from) return undefined
    held.content = undefined
    const count = readSync(this.#handle, scratch, 0, to - from, this.file.offset + from)
    // Undefined would have the reader wait for bytes that `ready` says are there: for ever.
    if (count === 0) throw new Error(`${this.file.path} was cut while it was read`)
    held.content = this
    held.from = from
    held.to = from + count
    return scratch.subarray(0, count)
  }

  async ready(start: number, end: number): Promise<boolean> {
    const from = this.#offset(start, end)
    for (;;) {
      const outcome = this.#outcome(from)
      if (outcome !== undefined) return outcome
      if (!(await this.#moved(from))) return false
    }
  }

  /** Resolves true when the fetcher reported progress of the slot, false when this content was closed. */
  #moved(from: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (open: boolean): void => {
        stop()
        this.#waits.delete(quit)
        resolve(open)
      }
      const quit = (): void => finish(false)
      const stop = this.progress.wait(this.file.slot, () => finish(true))
      this.#waits.add(quit)
      // Set the flag, then read again: progress in between would otherwise never be reported.
      this.progress.table.await(this.file.slot)
      if (this.#outcome(from) !== undefined) finish(true)
    })
  }

  close(): void {
    if (this.#handle < 0) throw new Error('a growing content was closed twice')
    if (held.content === this) held.content = undefined
    closeSync(this.#handle)
    this.#handle = -1
    for (const quit of [...this.#waits]) quit()
    this.#waits.clear()
    this.#leave()
  }

  /** Bytes of the file that may be read. None of one that is broken. */
  #readable(): number {
    const { slot, fileBytes, isInMemory } = this.file
    // The slot may be another file's by now.
    if (this.#hasLeft) return fileBytes
    const { table } = this.progress
    const state = table.state(slot)
    if (state === 'broken') return 0
    if (state !== 'whole') return table.readable(slot)
    if (isInMemory !== true) this.#leave()
    return fileBytes
  }

  #leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.onLeave()
  }

  /** True: bytes from `from` are there. False: never. Undefined: not yet. */
  #outcome(from: number): boolean | undefined {
    if (this.#hasLeft) return from < this.file.fileBytes
    const { table } = this.progress
    const state = table.state(this.file.slot)
    if (state === 'broken' || state === 'free') return false
    if (table.readable(this.file.slot) > from) return true
    return state === 'whole' ? false : undefined
  }

  /** Position of payload byte `start` among the bytes of the file. */
  #offset(start: number, end: number): number {
    const from = start - this.file.base
    if (!(start < end) || from < 0 || end - this.file.base > this.file.fileBytes) {
      throw new RangeError(`bytes ${start} to ${end} are outside the file`)
    }
    return from
  }
}
