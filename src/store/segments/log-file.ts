import { pause, systemClock } from '../../actor/clock.js'
import type { Disk, OpenFile } from './disk.js'

/** Where an item of the log lies: `sizeBytes` of the file with this number, from `offset` on. */
export interface LogPlace {
  readonly file: number
  readonly offset: number
  readonly sizeBytes: number
}

/** Whether two places begin at the same byte. */
export function isSamePlace(one: LogPlace, other: LogPlace): boolean {
  return one.file === other.file && one.offset === other.offset
}

/** What is thrown where a file of the log ends before its item: as the system's own error of a disk that fails. */
export function cutLogError(file: number): Error {
  const error = new Error(`file ${file} of the log of uploads is cut`)
  return Object.assign(error, { code: 'EIO', syscall: 'read' })
}

/** Name of a file of the log, or of the small one beside it that says that all of it is durable, and where it ends. */
export function logFileName(number: number, kind: 'log' | 'sealed' = 'log'): string {
  return `${String(number).padStart(10, '0')}.${kind}`
}

/** The number in such a name; undefined where it is none. */
export function readLogFileName(name: string, kind: 'log' | 'sealed'): number | undefined {
  const number = Number(name.slice(0, 10))
  return /^\d{10}\./.test(name) && name === logFileName(number, kind) ? number : undefined
}

/** Says that a file is durable up to `end`, beyond which nothing is believed. Throws where the disk refuses. */
export function markSealed(disk: Disk, folder: string, number: number, end: number): void {
  const path = `${folder}/${logFileName(number, 'sealed')}`
  disk.remove(path)
  const mark = disk.create(path, 8)
  try {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(end)
    disk.write(mark, bytes, 0)
  } finally {
    disk.close(mark)
  }
}

/** Where a file ends that was sealed; undefined where it was not, or nobody can say any more. */
export function sealedEnd(disk: Disk, folder: string, number: number): number | undefined {
  const bytes = Buffer.alloc(8)
  const mark = disk.open(`${folder}/${logFileName(number, 'sealed')}`)
  try {
    if (disk.read(mark, bytes, 0) < 8) return undefined
  } finally {
    disk.close(mark)
  }
  const end = bytes.readDoubleLE()
  // A power cut may leave the name and not the bytes.
  return Number.isSafeInteger(end) && end > 0 ? end : undefined
}

/**
 * Delay of a flush that follows another within this time. Records that are appended meanwhile share the flush, which costs
 * about as much processor time as half an item. A single item never waits.
 */
const gatherMs = 2

/**
 * One file that is appended to, and its group commit: one flush for all that was appended before it began. After a flush that
 * failed nothing more of the file becomes durable: the kernel reports a lost write only once.
 */
export class LogFile {
  /** Behind the last byte that was written. */
  end = 0
  #durable = 0
  #running: Promise<boolean> | undefined
  #failure: unknown
  /** When it was flushed last, by the monotonic clock. */
  #flushedMs = Number.NEGATIVE_INFINITY
  /** False: the name of the file is not durable yet. */
  #isNamed = false

  private constructor(
    private readonly disk: Disk,
    private readonly folder: string,
    readonly number: number,
    readonly sizeBytes: number,
    private readonly file: OpenFile,
  ) {}

  /** A new file. Throws where the disk refuses. */
  static create(disk: Disk, folder: string, number: number, sizeBytes: number): LogFile {
    const file = disk.create(`${folder}/${logFileName(number)}`, sizeBytes)
    return new LogFile(disk, folder, number, sizeBytes, file)
  }

  /** Why a flush failed; undefined where none did. */
  get failure(): unknown {
    return this.#failure
  }

  /** All of `bytes` are with the kernel on return. Throws where the disk refuses. */
  write(bytes: Uint8Array, position: number): void {
    this.disk.write(this.file, bytes, position)
  }

  /** Something before `end` was written anew: what was durable is so no more. */
  touch(): void {
    this.#durable = 0
  }

  /** Throws where the disk has no room. */
  resize(sizeBytes: number): void {
    this.disk.resize(this.file, sizeBytes)
  }

  /**
   * Resolves true when all before `end` is durable, false where the disk failed. Never rejects. `until`: whoever waits has no use
   * for it before this resolves, so more may be appended before the flush begins. It must not reject.
   */
  async flushed(end: number, until?: Promise<unknown>): Promise<boolean> {
    while (end > this.#durable) {
      if (this.#failure !== undefined) return false
      // One at a time. The one that runs may have begun before these bytes were written: then one more follows, for all who wait.
      this.#running ??= this.#flush(until)
      await this.#running
    }
    return true
  }

  async #flush(due: Promise<unknown> | undefined): Promise<boolean> {
    await due
    if (systemClock.monotonic() - this.#flushedMs < gatherMs) await pause(gatherMs)
    const until = this.end
    try {
      await this.disk.sync(this.file)
      if (!this.#isNamed) await this.disk.syncFolder(this.folder)
      this.#isNamed = true
      this.#durable = until
      return true
    } catch (error) {
      this.#failure = error
      return false
    } finally {
      this.#running = undefined
      this.#flushedMs = systemClock.monotonic()
    }
  }

  /** Nothing is appended any more: flushes, says in the folder that all is durable, and closes. False: the disk failed. */
  async seal(): Promise<boolean> {
    const whole = await this.flushed(this.end)
    try {
      this.disk.close(this.file)
      if (whole) markSealed(this.disk, this.folder, this.number, this.end)
      return whole
    } catch (error) {
      this.#failure ??= error
      return false
    }
  }

  /** Closes the file and removes it, once no flush is under way. Rejects where the disk refuses. */
  async discard(): Promise<void> {
    await this.#running
    this.disk.close(this.file)
    this.disk.remove(`${this.folder}/${logFileName(this.number)}`)
  }
}
