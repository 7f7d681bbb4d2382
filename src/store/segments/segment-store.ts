import type { Clock, Timer } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { latin1Text } from '../../format/latin1-text.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { diskRefusal } from '../disk-error.js'
import { type Disk, type OpenFile, systemDisk } from './disk.js'
import { isContent, readSegmentName, type SegmentPlace, segmentName } from './place.js'
import { PlaceWriter } from './place-index.js'
import { openSegment, readTail } from './recovery.js'
import { Rings } from './rings.js'
import type { NewRecord } from './segment-file.js'
import type { SegmentMarks } from './segment-marks.js'
import { headOfRecordBytes, readRecordHead, recordBytes, recordSlotBytes } from './segment-record.js'

export interface SegmentOptions {
  readonly folder: string
  /** Larger payloads are refused: they belong into files of their own. */
  readonly payloadMaxBytes: number
  /** Bytes that all segments may take now. */
  maxBytes(): number
  /** The disk is not filled beyond this. */
  readonly freeMinBytes: number
  /**
   * A payload stands in the index at the latest so long after it was put. Content does sooner: before the catalog has its record.
   */
  readonly commitMs: number
  /** Whether a payload must never be evicted. */
  isPinned(digest: Uint8Array): boolean
  /** Hears of payloads that were evicted. */
  onEvicted(digests: readonly Uint8Array[]): void
}

export const segmentDefaults = {
  segmentBytes: 268_435_456,
  payloadMaxBytes: 1_048_576,
  freeMinBytes: 1_073_741_824,
  commitMs: 2500,
} as const

/** Changes that make a commit due at once. */
const batchMax = 4096

/** Changes that are held while the disk of the index fails; beyond, they are given up. */
const heldMax = 65_536

/** The rows of the last moments may be missing after a kill; those of everything are missing only where the index was lost. */
const tailMaxBytes = 134_217_728

/** Records of a leaving segment that are looked at for each payload that comes in: so room is there before it is needed. */
const lookedAtMax = 4

/**
 * Small payloads, named by the SHA-256 of their bytes, and proven chunks, one after the other in files of one size. So a record
 * needs no file, flush or rename of its own. One thread writes; all threads read through `SegmentReader`.
 *
 * Cached content is not flushed record by record. After a kill or power cut a record is checked when it is first read. It counts
 * as absent if its bytes do not match its digest, or its chunk proof does not hold (see `SegmentMarks`).
 */
export class SegmentStore {
  readonly #index: PlaceWriter
  readonly #rings: Rings
  /** What the next commit writes, by digest. */
  readonly #pending = new Map<
    string,
    { readonly digest: Uint8Array; readonly place: SegmentPlace | undefined }
  >()
  #gone: (readonly [segment: number, slot: number])[] = []
  #evicted: Uint8Array[] = []
  #next = 1
  #timer: Timer | undefined
  #isTroubled = false
  /** Bytes of records without a row that are still read at the start. */
  #tailBytes = tailMaxBytes

  private constructor(
    private readonly options: SegmentOptions,
    readonly marks: SegmentMarks,
    private readonly clock: Clock,
    private readonly log: Pick<Log, 'warn' | 'error'>,
    private readonly disk: Disk,
  ) {
    const { folder } = options
    this.#index = new PlaceWriter(`${folder}/index`, (fault) =>
      log.error({ fault }, 'the index of the segments is damaged: the cache starts empty'),
    )
    this.#rings = new Rings({
      disk,
      marks,
      folder,
      maxBytes: () => options.maxBytes(),
      freeMinBytes: options.freeMinBytes,
      log,
      isPinned: (digest) => options.isPinned(digest),
      nextSegment: () => this.#next++,
      find: (digest) => this.find(digest),
      recordsOf: (segment, slot, limit) => this.#index.recordsOf(segment, slot, limit),
      moved: (digest, place) => this.#pending.set(latin1Text(digest), { digest, place }),
      evicted: (digest, place) => {
        this.#pending.set(latin1Text(digest), { digest, place: undefined })
        if (isContent(place)) this.#evicted.push(digest)
      },
      passed: (segment, slot) => void this.#gone.push([segment, slot]),
      commit: () => this.commit(),
      payloads: () => this.#index.usage().payloads,
    })
  }

  /**
   * Opens the store in its folder, made where it is missing. Takes up what a killed process had written and not recorded, and
   * gives back the room that it had taken and not used. Throws where the folder cannot be used at all.
   */
  static open(
    options: SegmentOptions,
    marks: SegmentMarks,
    clock: Clock,
    log: Pick<Log, 'warn' | 'error'>,
    disk: Disk = systemDisk,
  ): SegmentStore {
    const names = disk.list(options.folder)
    const store = new SegmentStore(options, marks, clock, log, disk)
    const files = names.map(readSegmentName).filter((number) => number !== undefined)
    store.#begin(files.sort((one, other) => one - other))
    return store
  }

  #begin(files: readonly number[]): void {
    const { folder } = this.options
    const noted = this.#index.nextSegment
    const all = this.#index.segments()
    // Records are written together with the number: one of a later segment is damaged. Without it there may be such a segment.
    const known = noted === undefined ? [] : all.filter(({ segment }) => segment < noted)
    if (known.length < all.length)
      this.log.warn({ segments: all.length - known.length }, 'the index of the segments has damaged entries')
    this.#next = Math.max(noted ?? 1, (files.at(-1) ?? 0) + 1)
    const ends = new Map(known.map(({ segment, lastSlot }) => [segment, lastSlot]))
    for (const segment of files) {
      try {
        const sizeBytes = this.#recover(segment, ends.get(segment))
        if (sizeBytes === 0) this.disk.remove(`${folder}/${segmentName(segment)}`)
        if (sizeBytes > 0 || ends.has(segment)) this.#rings.takeUp(segment, sizeBytes)
      } catch (error) {
        this.log.error({ err: error, segment }, 'a segment cannot be read: its content is fetched again')
        this.#rings.takeUp(segment, 0)
      }
    }
    // Gone behind our back, or by a power cut: what the index says of them is no more.
    for (const { segment } of known) if (!files.includes(segment)) this.#rings.takeUp(segment, 0)
    this.marks.begin(this.#next)
    this.commit()
    this.marks.committed(this.#rings.bytes)
  }

  /** Where the last record ends that the index knows of a segment, by its own word, or where that is damaged by the index. */
  #endOf(file: OpenFile, segment: number, lastSlot: number): number {
    const start = lastSlot * recordSlotBytes
    const head = Buffer.alloc(headOfRecordBytes)
    const record = this.disk.read(file, head, start) === head.length ? readRecordHead(head) : undefined
    if (record?.file === segment) return start + recordBytes(record.roomBytes, record.payloadBytes)
    const [last] = this.#index.recordsOf(segment, lastSlot, 1)
    const place = last === undefined ? undefined : this.#index.find(last.digest)
    if (place?.segment !== segment || place.slot !== lastSlot) return start + recordSlotBytes
    return start + recordBytes(place.roomBytes, place.sizeBytes)
  }

  /** Bytes that the segment takes from now on; 0: there is nothing in it. */
  #recover(segment: number, lastSlot: number | undefined): number {
    const file = openSegment(this.disk, this.options.folder, segment)
    if (file === undefined) return 0
    try {
      const from = lastSlot === undefined ? 0 : this.#endOf(file, segment, lastSlot)
      const { found, end } = readTail(this.disk, file, segment, from, this.#tailBytes)
      this.#tailBytes -= Math.max(0, end - from)
      for (const one of found) this.#pending.set(latin1Text(one.digest), one)
      if (end > 0 && end < this.disk.sizeOf(file)) this.disk.resize(file, end)
      return end
    } finally {
      this.disk.close(file)
    }
  }

  /** Where a payload lies; undefined where it is not held. */
  find(digest: Uint8Array): SegmentPlace | undefined {
    return this.#find(digest, latin1Text(digest))
  }

  #find(digest: Uint8Array, key: string): SegmentPlace | undefined {
    const pending = this.#pending.get(key)
    return pending === undefined ? this.#index.find(digest) : pending.place
  }

  /**
   * Keeps a payload whose SHA-256 is `digest`: the caller has hashed it. Readers of all threads can read it on return, by its
   * place at once, by its digest some milliseconds later. One that is held already is not written again. Refusals: `too-
   * large`; `busy` where the disk is full or fails: nothing is kept then.
   */
  put(digest: Uint8Array, parts: readonly Uint8Array[]): SegmentPlace | Refusal {
    const sizeBytes = parts.reduce((sum, part) => sum + part.length, 0)
    return this.#put({ name: digest, parts, sizeBytes })
  }

  /** The same for a chunk, named by `nameOfChunk`, with its words (`encodeChunkWords`): the caller has proven it. */
  putChunk(name: Uint8Array, chunkWords: Uint8Array, chunk: Uint8Array): SegmentPlace | Refusal {
    return this.#put({ name, parts: [chunk], sizeBytes: chunk.length, chunkWords })
  }

  #put(record: NewRecord): SegmentPlace | Refusal {
    const key = latin1Text(record.name)
    const known = this.#find(record.name, key)
    if (known !== undefined && this.#isSound(known)) return known
    if (record.sizeBytes > this.options.payloadMaxBytes) {
      return refuse('too-large', 'self', `${record.sizeBytes} bytes are more than one segment holds`)
    }
    const name = new Uint8Array(record.name)
    try {
      const place = this.#rings.append({ ...record, name })
      if (isRefusal(place)) return place
      this.#pending.set(key, { digest: name, place })
      this.#committing()
      this.#rings.look(lookedAtMax)
      return place
    } catch (error) {
      this.#troubled(error)
      return diskRefusal(error)
    }
  }

  /** What was never compared with its digest since the start is written anew: it may be damaged, and the bytes are at hand. */
  #isSound({ segment, slot }: SegmentPlace): boolean {
    const cell = this.marks.cellOf(segment)
    return cell !== undefined && (this.marks.isOwn(segment) || this.marks.isChecked(cell, slot))
  }

  /** Forgets a payload: it was found false, or must not be kept. Its bytes go with their segment. */
  remove(digest: Uint8Array): void {
    if (this.find(digest) === undefined) return
    // A start after a kill reads on behind the last record of the index: this one must be in front of that.
    if (this.#pending.has(latin1Text(digest))) this.commit()
    const own = new Uint8Array(digest)
    this.#pending.set(latin1Text(own), { digest: own, place: undefined })
    // Other threads must not find it any more.
    this.commit()
    this.marks.withdrew()
  }

  #committing(): void {
    if (this.#pending.size >= batchMax) this.commit()
    else this.#timer ??= this.clock.after(this.options.commitMs, () => this.commit())
  }

  /** Writes what waits into the index. A disk that fails is tried again with the next commit. */
  commit(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#pending.size === 0 && this.#gone.length === 0) return
    try {
      this.#index.commit([...this.#pending.values()], this.#gone, this.#next)
      this.#pending.clear()
      this.#gone = []
      this.#isTroubled = false
    } catch (error) {
      this.#troubled(error)
      if (this.#pending.size + this.#gone.length < heldMax) return
      this.#pending.clear()
      this.#gone = []
    }
    this.marks.committed(this.#rings.bytes)
    const evicted = this.#evicted
    this.#evicted = []
    if (evicted.length > 0) this.options.onEvicted(evicted)
  }

  /** Logged once, until it goes well again. */
  #troubled(error: unknown): void {
    if (!this.#isTroubled)
      this.log.error({ err: error }, 'the disk of the segments fails: content is served, but not cached')
    this.#isTroubled = true
  }

  /** Makes room until the bounds hold, in steps of so many records. True: there is more to do. */
  tend(records: number): boolean {
    try {
      return this.#rings.look(records)
    } catch (error) {
      this.#troubled(error)
      return false
    }
  }

  /** Bytes of all files. */
  get fileBytes(): number {
    return this.#rings.bytes
  }

  /** Bytes of all files, payloads in the index, and bytes of the index. */
  usage(): { readonly fileBytes: number; readonly payloads: number; readonly indexBytes: number } {
    const { payloads, bytes } = this.#index.usage()
    return { fileBytes: this.#rings.bytes, payloads, indexBytes: bytes }
  }

  /** It must not be used any more. */
  async close(): Promise<void> {
    this.commit()
    this.#rings.close()
    await this.#index.close()
  }
}
