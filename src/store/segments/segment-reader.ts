import { mappedBy, openWritten } from '../../../native/mapped/mapped.js'
import type { MappedFile } from '../../../native/mapped/mapped-file.js'
import type { Clock } from '../../actor/clock.js'
import type { Borrowed } from '../borrowed.js'
import type { Content } from '../content.js'
import { FileResidence } from '../file-residence.js'
import { Ticks } from '../residence.js'
import { TickPace } from '../tick-pace.js'
import { payloadOffset, type SegmentPlace, segmentName } from './place.js'
import { PlaceReader } from './place-index.js'
import { isOfPlace, isSoundRecord } from './recovery.js'
import type { SegmentMarks } from './segment-marks.js'
import { headOfRecordBytes, readRecordHead, recordSlotBytes } from './segment-record.js'

const tickMs = 250

/** A segment as one thread has it mapped. */
class MappedSegment {
  readers = 0
  isRetired = false
  readonly residence: FileResidence
  readonly #gone: (() => void)[] = []

  constructor(
    readonly file: MappedFile,
    readonly segment: number,
    readonly cell: number,
    ticks: Ticks,
  ) {
    this.residence = new FileResidence(file, ticks)
  }

  onGone(act: () => void): void {
    this.#gone.push(act)
  }

  hold(): () => void {
    this.readers += 1
    return () => this.leave()
  }

  leave(): void {
    this.readers -= 1
    if (this.readers === 0 && this.isRetired) this.file.close()
  }

  retire(): void {
    this.isRetired = true
    for (const act of this.#gone) act()
    if (this.readers === 0) this.file.close()
  }
}

/** A payload in a segment. It stays what it is until it is closed, whatever happens to the segment meanwhile. */
export class SegmentContent implements Content {
  readonly sizeBytes: number
  readonly #offset: number

  constructor(
    private readonly reader: SegmentReader,
    private readonly mapped: MappedSegment,
    readonly place: SegmentPlace,
    readonly digest: Uint8Array,
    /** Tick until which its bytes are believed to be in memory. */
    private readonly residentUntil: number,
  ) {
    this.sizeBytes = place.sizeBytes
    this.#offset = payloadOffset(place)
  }

  /** True: the bytes are known to be those of the digest. False: `verify` says. No waiting, no message. */
  get sound(): boolean {
    const { marks } = this.reader
    return marks.isOwn(this.place.segment) || marks.isChecked(this.mapped.cell, this.place.slot)
  }

  /** Spares the payload when its segment leaves. To be called for each answer from the store. */
  spare(): void {
    const { cell, segment } = this.mapped
    if (this.reader.marks.isIn(cell, segment)) this.reader.marks.ask(cell, this.place.slot)
  }

  /**
   * The same bytes for a server that sends them by itself. `withdrawals`: of the marks, before the place was looked up.
   * Undefined: not in one piece of memory.
   */
  lend(withdrawals: number): Borrowed | undefined {
    // The fallback has one buffer for all files.
    if (mappedBy === 'fallback') return undefined
    const { file, cell, segment, residence } = this.mapped
    const { marks } = this.reader
    const memory = file.view(0, file.sizeBytes)
    if (this.mapped.isRetired || memory.length < file.sizeBytes) return undefined
    return {
      owner: this.mapped,
      memory,
      here: residence.here,
      key: segment,
      offset: this.#offset,
      conditions: [
        [marks.segmentCell(cell), segment],
        [marks.withdrawalsCell, withdrawals],
      ],
      requested: marks.againBit(cell, this.place.slot),
      onGone: (act) => this.mapped.onGone(act),
      hold: () => this.mapped.hold(),
    }
  }

  /**
   * Compares header and bytes with the digest (a chunk with its proof), once for all threads and all later readers of this run.
   * False: they are not what they should be, or not to be had; the writer's thread must be notified. Never rejects.
   */
  async verify(): Promise<boolean> {
    if (this.sound) return true
    const start = this.place.slot * recordSlotBytes
    if (!(await this.mapped.file.fetch(start, this.#offset + this.sizeBytes))) return false
    return this.verifyNow()
  }

  /** The same at once: it waits for the disk where the bytes are not in memory. */
  verifyNow(): boolean {
    if (this.sound) return true
    const { file, cell, segment } = this.mapped
    const { slot, roomBytes } = this.place
    const bytes = Buffer.allocUnsafe(headOfRecordBytes + roomBytes + this.sizeBytes)
    if (!file.copy(slot * recordSlotBytes, bytes)) return false
    const head = readRecordHead(bytes)
    if (head === undefined || !isOfPlace(head, this.place)) return false
    const words = bytes.subarray(headOfRecordBytes, headOfRecordBytes + head.metaBytes)
    const payload = bytes.subarray(headOfRecordBytes + roomBytes)
    if (!isSoundRecord(head, this.digest, words, payload)) return false
    if (this.reader.marks.isIn(cell, segment)) this.reader.marks.check(cell, slot)
    return true
  }

  /** A copy of what lies in the room before the payload: the words of a chunk. Undefined where they are not to be had. */
  copyRoom(): Buffer | undefined {
    const { roomBytes } = this.place
    const bytes = Buffer.allocUnsafe(roomBytes)
    return this.mapped.file.copy(this.#offset - roomBytes, bytes) ? bytes : undefined
  }

  /** Copies payload bytes from `start` on into all of `target`, without waiting. False: not to be had, or not in memory. */
  copyNow(start: number, target: Uint8Array): boolean {
    this.#check(start, start + target.length)
    const from = this.#offset + start
    if (!this.mapped.residence.has(from, from + target.length)) return false
    return this.mapped.file.copy(from, target)
  }

  /** A copy of all bytes; undefined where they are not to be had. Waits for the disk where they are not in memory. */
  copy(): Buffer | undefined {
    const bytes = Buffer.allocUnsafe(this.sizeBytes)
    return this.mapped.file.copy(this.#offset, bytes) ? bytes : undefined
  }

  read(start: number, end: number): Uint8Array | undefined {
    this.#check(start, end)
    const from = this.#offset + start
    const to = this.#offset + end
    if (this.reader.ticks.now >= this.residentUntil && !this.mapped.residence.has(from, to)) return undefined
    return this.mapped.file.view(from, to)
  }

  ready(start: number, end: number): Promise<boolean> {
    this.#check(start, end)
    return this.mapped.file.fetch(this.#offset + start, this.#offset + end)
  }

  #check(start: number, end: number): void {
    // Written so that NaN is outside.
    if (!(start >= 0 && start < end && end <= this.sizeBytes)) {
      throw new RangeError(`[${start}, ${end}) is not within ${this.sizeBytes} bytes`)
    }
  }

  close(): void {
    this.mapped.leave()
  }
}

/** How a thread reads payloads in segments: by digest through the index, or by the place that the writer announced. */
export class SegmentReader {
  readonly ticks = new Ticks()
  readonly #index: PlaceReader
  readonly #segments = new Map<number, MappedSegment>()
  readonly #pace: TickPace

  constructor(
    private readonly folder: string,
    readonly marks: SegmentMarks,
    clock: Clock,
  ) {
    this.#index = new PlaceReader(`${folder}/index`, marks)
    this.#pace = new TickPace(this.ticks, tickMs, clock, () => this.#sweep())
  }

  /** Where the payload with this digest lies, by the last commit of the writer; undefined where it is not held. */
  find(digest: Uint8Array): SegmentPlace | undefined {
    return this.#index.find(digest)
  }

  /**
   * The payload at a place that `find` or the writer gave for this digest. Undefined: its segment is gone. The bytes are only
   * those of the digest where `sound` or `verify` says so. Throws where the disk refuses to open a file. To be closed.
   * `isNew`: it was written just now, so the system is not queried for whether its bytes are in memory.
   */
  open(place: SegmentPlace, digest: Uint8Array, isNew = false): SegmentContent | undefined {
    this.#pace.used()
    const mapped = this.#segments.get(place.segment) ?? this.#map(place.segment)
    if (mapped === undefined || payloadOffset(place) + place.sizeBytes > mapped.file.sizeBytes)
      return undefined
    mapped.readers += 1
    return new SegmentContent(this, mapped, place, digest, isNew ? this.ticks.now + Ticks.lasting : 0)
  }

  #map(segment: number): MappedSegment | undefined {
    const cell = this.marks.cellOf(segment)
    if (cell === undefined) return undefined
    const file = openWritten(`${this.folder}/${segmentName(segment)}`)
    if (file === undefined) return undefined
    const mapped = new MappedSegment(file, segment, cell, this.ticks)
    this.#segments.set(segment, mapped)
    return mapped
  }

  /** The disk gets the room of a removed segment back when no thread has it mapped any more. */
  #sweep(): void {
    for (const [segment, mapped] of this.#segments) {
      if (this.marks.isIn(mapped.cell, segment)) continue
      this.#segments.delete(segment)
      mapped.retire()
    }
  }

  /** Contents still open stay readable until they are closed. */
  async close(): Promise<void> {
    this.#pace.cancel()
    for (const mapped of this.#segments.values()) mapped.retire()
    this.#segments.clear()
    await this.#index.close()
  }
}
