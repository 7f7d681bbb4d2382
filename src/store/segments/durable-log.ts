import { dirname } from 'node:path'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { diskRefusal } from '../disk-error.js'
import { type Disk, type OpenFile, systemDisk } from './disk.js'
import { growMinBytes, LogDraft, metaMaxBytes } from './log-draft.js'
import { LogFile, type LogPlace, logFileName } from './log-file.js'
import { type LoggedItem, type ScanOutcome, scanLog } from './log-scan.js'
import { PieceMemory } from './piece-memory.js'
import {
  headOfRecordBytes,
  type RecordDigest,
  readRecordHead,
  recordBytes,
  splitOf,
  sumOfMeta,
  writeRecordHead,
} from './segment-record.js'

const pageBytes = 4096

/** Less is not worth a file. */
const reservedMinBytes = 65_536

/**
 * A log of accepted content: what was flushed is never lost, by no kill and no power cut.
 *
 * ```
 * const log = await DurableLog.open(folder, options, (item) => ...)   every whole item of before, in order
 * const place = log.append([bytes], digest, meta)                     with the kernel on return; a Refusal where the disk is full
 * await log.flushed(place)                                            one flush (fdatasync) for all who wait
 * const draft = log.draft()                                           for bodies of any size and unknown length, up to 10 GiB
 *   await draft.write(bytes); const place = await draft.finish(digest, meta)      durable when it resolves
 * log.path(place)                                                     file of the bytes, for readers of any thread
 * log.release(place)                                                  not needed any more: a file goes with its last item
 * ```
 *
 * An item never spans files, so a bundle is a list of windows of files and a reader needs one mapping. Items up to
 * `sharedMaxBytes` lie one after the other in files of `fileBytes` or less; a larger one has a file of its own, of the
 * item's length. `meta` is the caller's: some words to know the item by after a restart, at most 60 KiB.
 *
 * One thread writes. Files have their whole size from the beginning and never shrink while they can be read. `release` is not
 * remembered by the log itself: an item whose file is still needed by others is announced again at the next start.
 */
export class DurableLog {
  #next: number
  #current: LogFile | undefined
  readonly #memory = new PieceMemory()
  /** Where a record is put together. */
  #room: Buffer | undefined
  readonly #sealing = new Set<Promise<unknown>>()
  /** Files that are still written to, or being sealed. */
  readonly #open = new Map<number, LogFile>()
  /** Files whose disk failed. */
  readonly #failed = new Map<number, LogFile>()
  /** Items of each file that are still needed. */
  readonly #items = new Map<number, number>()

  private constructor(
    readonly folder: string,
    private readonly options: DurableLogOptions,
    readonly disk: Disk,
    /** What was found at the start. */
    readonly found: ScanOutcome,
  ) {
    this.#next = found.nextFile
  }

  /**
   * Opens the log in `folder`, which is made where it is missing, and calls `onItem` for every item in it. Rejects with the
   * system's error where the disk fails. One program may have it open.
   */
  static async open(
    folder: string,
    options: DurableLogOptions = durableLogDefaults,
    onItem: (item: LoggedItem) => void = () => undefined,
    disk: Disk = systemDisk,
  ): Promise<DurableLog> {
    const items = new Map<number, number>()
    const found = await scanLog(disk, folder, (item) => {
      items.set(item.place.file, (items.get(item.place.file) ?? 0) + 1)
      onItem(item)
    })
    // The folder itself must outlive a power cut, too.
    await disk.syncFolder(dirname(folder))
    const log = new DurableLog(folder, options, disk, found)
    for (const [file, count] of items) log.#items.set(file, count)
    return log
  }

  /**
   * Appends an item of at most `sharedMaxBytes`. The bytes are with the kernel on return; `flushed` when on the disk.
   * Refusals: `busy` where the disk is full or fails.
   */
  append(payload: readonly Uint8Array[], digest: RecordDigest, meta: Uint8Array = none): LogPlace | Refusal {
    const sizeBytes = payload.reduce((sum, part) => sum + part.length, 0)
    if (sizeBytes > this.options.sharedMaxBytes || meta.length > metaMaxBytes) {
      throw new RangeError(
        `an item of ${sizeBytes} bytes with ${meta.length} of meta is too large to be appended`,
      )
    }
    const taken = recordBytes(meta.length, sizeBytes)
    const file = this.#fileFor(taken)
    if (isRefusal(file)) return file
    // Written before this returns: so one room does for all items, and no item leaves garbage of its own size.
    this.#room ??= Buffer.allocUnsafeSlow(headOfRecordBytes + metaMaxBytes + this.options.sharedMaxBytes)
    const record = this.#room.subarray(0, headOfRecordBytes + meta.length + sizeBytes)
    const lengths = { payloadBytes: sizeBytes, roomBytes: meta.length, metaBytes: meta.length }
    writeRecordHead(record.subarray(0, headOfRecordBytes).fill(0), {
      kind: 'accepted',
      ...lengths,
      metaSum: sumOfMeta(meta),
      file: file.number,
      ...splitOf(digest),
    })
    let end = headOfRecordBytes
    for (const part of [meta, ...payload]) {
      record.set(part, end)
      end += part.length
    }
    const at = file.end
    try {
      file.write(record, at)
    } catch (error) {
      // What is half written is overwritten by the next item: no header of it is believed without its digest.
      return diskRefusal(error)
    }
    file.end = at + taken
    this.#items.set(file.number, (this.#items.get(file.number) ?? 0) + 1)
    return { file: file.number, offset: at + headOfRecordBytes + meta.length, sizeBytes }
  }

  /**
   * Resolves with true when the item would survive a power cut. A refusal: the disk failed, and it may be lost: `release` it.
   * Never rejects. `until`: see `LogFile.flushed`.
   */
  async flushed(place: LogPlace, until?: Promise<unknown>): Promise<true | Refusal> {
    const file = this.#open.get(place.file) ?? this.#failed.get(place.file)
    // What is sealed was flushed before.
    if (file === undefined || (await file.flushed(place.offset + place.sizeBytes, until))) return true
    if (file === this.#current) {
      this.#current = undefined
      this.#seal(file)
    }
    return diskRefusal(file.failure)
  }

  /** An item that comes in pieces, of any size. */
  draft(): LogDraft {
    const { sharedMaxBytes, growBytes } = this.options
    return new LogDraft({
      sharedMaxBytes,
      memory: this.#memory,
      growBytes: () => this.#roomOf(growBytes),
      append: (payload, digest, meta) => this.append(payload, digest, meta),
      flushed: (place, until) => {
        const flushed = this.flushed(place, until)
        return this.options.isUnflushed === true ? Promise.resolve(true) : flushed
      },
      withdraw: (place, metaBytes) => this.withdraw(place, metaBytes),
      create: () => this.#create(Math.min(growMinBytes, growBytes)),
      adopt: (file) => {
        this.#items.set(file.number, 1)
        this.#seal(file)
      },
      drop: async (file) => {
        this.#open.delete(file.number)
        try {
          await file.discard()
        } catch {
          // A file without an item goes at the next start.
        }
      },
    })
  }

  /** The file that holds the item; it keeps its name. Bytes from `place.offset` on are the item's. */
  path(place: LogPlace): string {
    return `${this.folder}/${logFileName(place.file)}`
  }

  /** Says that the item is not needed any more. Called once an item. Throws where the disk does not remove a file. */
  release(place: LogPlace): void {
    const left = (this.#items.get(place.file) ?? 0) - 1
    if (left < 0) throw new Error('an item of the log was released twice')
    this.#items.set(place.file, left)
    this.#removeUnused(place.file)
  }

  /**
   * Takes an item back whose uploader was refused: its flush failed, and it may be on the disk all the same, or it could not be
   * kept elsewhere. Its header says so from now on, and no start takes it for accepted. The lengths in it stay: items behind it
   * in the same file may be confirmed.
   */
  withdraw(place: LogPlace, metaBytes: number): void {
    try {
      const file = this.disk.open(this.path(place))
      try {
        // One that has its file alone has more room before its payload.
        for (const at of [place.offset - metaBytes - headOfRecordBytes, 0])
          this.#markWithdrawn(file, at, place)
      } finally {
        this.disk.close(file)
      }
      this.release(place)
    } catch {
      // The disk takes nothing at all any more: the next start may find the item, and then keeps it.
    }
  }

  #markWithdrawn(file: OpenFile, at: number, place: LogPlace): void {
    const bytes = Buffer.alloc(headOfRecordBytes)
    const isRead = this.disk.read(file, bytes, at) === bytes.length
    const head = isRead ? readRecordHead(bytes) : undefined
    if (head === undefined || at + headOfRecordBytes + head.roomBytes !== place.offset) return
    writeRecordHead(bytes, { ...head, kind: 'withdrawn' })
    this.disk.write(file, bytes, at)
  }

  #removeUnused(file: number): void {
    if (this.#items.get(file) !== 0 || this.#open.has(file)) return
    this.#items.delete(file)
    this.#failed.delete(file)
    this.disk.remove(`${this.folder}/${logFileName(file)}`)
    // The youngest seal stays: numbers are not given twice, for somebody may remember places in a file that is gone.
    if (file < this.#next - 1) this.disk.remove(`${this.folder}/${logFileName(file, 'sealed')}`)
  }

  /** Makes everything durable. It must not be used any more. */
  async close(): Promise<void> {
    if (this.#current !== undefined) this.#seal(this.#current)
    this.#current = undefined
    while (this.#sealing.size > 0) await Promise.all(this.#sealing)
  }

  #fileFor(takenBytes: number): LogFile | Refusal {
    const current = this.#current
    if (
      current !== undefined &&
      current.end + takenBytes <= current.sizeBytes &&
      current.failure === undefined
    )
      return current
    const made = this.#create(this.options.fileBytes, takenBytes)
    if (isRefusal(made)) return made
    if (current !== undefined) this.#seal(current)
    this.#current = made
    return made
  }

  /**
   * How much of `wantedBytes` is reserved at once: at most an eighth of what is free, so that a small disk takes items, too.
   * Throws where the disk fails.
   */
  #roomOf(wantedBytes: number): number {
    const share = Math.floor(this.disk.freeBytes(this.folder) / 8 / pageBytes) * pageBytes
    return Math.min(wantedBytes, Math.max(share, reservedMinBytes))
  }

  #create(wantedBytes: number, leastBytes = 0): LogFile | Refusal {
    const number = this.#next
    try {
      const sizeBytes = Math.max(this.#roomOf(wantedBytes), leastBytes)
      const made = LogFile.create(this.disk, this.folder, number, sizeBytes)
      this.#next = number + 1
      this.#open.set(number, made)
      return made
    } catch (error) {
      return diskRefusal(error)
    }
  }

  #seal(file: LogFile): void {
    const sealing = file.seal().then((whole) => {
      this.#sealing.delete(sealing)
      // Without a seal the next start looks through the file.
      if (!whole) this.#failed.set(file.number, file)
      this.#open.delete(file.number)
      try {
        this.#removeUnused(file.number)
      } catch {
        // All its items were released: it is no loss that they are announced again at the next start.
      }
    })
    this.#sealing.add(sealing)
  }
}

export interface DurableLogOptions {
  /** Size of a file that many items share. */
  readonly fileBytes: number
  /** Larger items have a file of their own. */
  readonly sharedMaxBytes: number
  /** Room that is taken at once for an item that has a file of its own. */
  readonly growBytes: number
  /** Drafts that lie in shared files do not wait for their flush, which begins all the same: another store has them. */
  readonly isUnflushed?: boolean
}

export const durableLogDefaults: DurableLogOptions = {
  fileBytes: 268_435_456,
  sharedMaxBytes: 1_048_576,
  growBytes: 67_108_864,
}

const none = new Uint8Array(0)
