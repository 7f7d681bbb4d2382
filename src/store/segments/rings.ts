import type { Log } from '../../actor/log.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { diskRefusal } from '../disk-error.js'
import type { Disk, OpenFile } from './disk.js'
import { Ghosts } from './ghosts.js'
import { type SegmentPlace, samePlace, segmentName } from './place.js'
import type { HeldRecord } from './place-index.js'
import { openSegment, readSound } from './recovery.js'
import { bytesOfRecord, type NewRecord, SegmentFile } from './segment-file.js'
import type { SegmentMarks } from './segment-marks.js'

/** What the rings need of their store. */
export interface RingParts {
  readonly disk: Disk
  readonly marks: SegmentMarks
  readonly folder: string
  readonly freeMinBytes: number
  readonly log: Pick<Log, 'warn'>
  maxBytes(): number
  isPinned(digest: Uint8Array): boolean
  nextSegment(): number
  find(digest: Uint8Array): SegmentPlace | undefined
  /** Records of a segment, as the last commit has them. */
  recordsOf(segment: number, slot: number, limit: number): HeldRecord[]
  /** The payload lies elsewhere from now on. */
  moved(digest: Uint8Array, place: SegmentPlace): void
  evicted(digest: Uint8Array, place: SegmentPlace): void
  /** The record needs no row any more. */
  passed(segment: number, slot: number): void
  commit(): void
  /** Number of payloads that are held. */
  payloads(): number
}

/** So many hundredths of all bytes are for what has just come. */
const youngPercent = 10

/** The part of a segment that is written again at most: else no room would be made where everything is requested. */
const rewrittenShare = 0.75

/** Records that are looked at in one go where room is needed now. */
const stepRecords = 256

/** One look in so many asks the disk for its free room. */
const diskLooks = 64

interface Sealed {
  readonly segment: number
  readonly sizeBytes: number
}

interface Ring {
  readonly sealed: Sealed[]
  active: SegmentFile | undefined
}

interface Leaving extends Sealed {
  readonly isYoung: boolean
  /** Undefined: the file is gone, or cannot be opened. */
  readonly file: OpenFile | undefined
  slot: number
  rewrittenBytes: number
}

/**
 * The segments, and the order in which they are evicted: S3-FIFO (Yang and others, "FIFO queues are all you need", SOSP 2023)
 * with whole segments. New records go into the young ring, a tenth of all. When its segment leaves, a record with a request is
 * written into the main ring. Others are evicted, and their digests are kept for a while: a record that returns goes into the
 * main ring at once. In the main ring, too, records with a request are written again. A record with several requests survives
 * one further round. Nothing is searched or sorted, and no file has holes.
 */
export class Rings {
  readonly #young: Ring = { sealed: [], active: undefined }
  readonly #main: Ring = { sealed: [], active: undefined }
  readonly #ghosts = new Ghosts()
  #leaving: Leaving | undefined
  #bytes = 0
  /** Segments that have left so far. */
  #left = 0
  #looks = 0
  #isDiskFull = false

  constructor(private readonly parts: RingParts) {}

  /** Bytes of all files. */
  get bytes(): number {
    return this.#bytes
  }

  /** A segment of an earlier run. With 0 bytes it is gone, and leaves first. */
  takeUp(segment: number, sizeBytes: number): void {
    if (sizeBytes > 0 && this.parts.marks.add(segment)) {
      this.#main.sealed.push({ segment, sizeBytes })
      this.#bytes += sizeBytes
    } else this.#main.sealed.unshift({ segment, sizeBytes: 0 })
  }

  /** Appends a record, into the ring that it belongs to. Throws, or refuses, where the disk does. */
  append(record: NewRecord): SegmentPlace | Refusal {
    const ring = this.#ghosts.has(record.name) ? this.#main : this.#young
    const active = ring.active?.hasRoom(bytesOfRecord(record)) ? ring.active : this.#open(ring, true)
    return active instanceof SegmentFile ? this.#write(ring, active, record) : active
  }

  #write(ring: Ring, active: SegmentFile, record: NewRecord): SegmentPlace {
    try {
      return active.append(record)
    } catch (error) {
      // What is half written stays a hole; whatever stands before it is sound.
      this.#seal(ring)
      throw error
    }
  }

  #seal(ring: Ring): void {
    const { active } = ring
    if (active === undefined) return
    active.close()
    ring.sealed.push({ segment: active.segment, sizeBytes: active.sizeBytes })
    ring.active = undefined
  }

  /** A new segment for a ring; `makesRoom`: after room was made for it. */
  #open(ring: Ring, makesRoom: boolean): SegmentFile | Refusal {
    const { disk, folder, marks } = this.parts
    const { segmentBytes } = marks.shape
    this.#seal(ring)
    if (makesRoom && !this.#makeRoom(segmentBytes)) return refuse('busy', 'self', 'the disk is full')
    // What was written again may have opened one already.
    if (ring.active !== undefined) return ring.active
    const segment = this.parts.nextSegment()
    if (!marks.add(segment)) return refuse('busy', 'self', 'there are too many segments')
    try {
      ring.active = SegmentFile.create(disk, folder, segment, segmentBytes)
      this.#bytes += segmentBytes
      return ring.active
    } catch (error) {
      marks.remove(segment)
      return diskRefusal(error)
    }
  }

  /** False: there is no room for so many bytes, and none is to be made: each segment was looked through once. */
  #makeRoom(bytes: number): boolean {
    const until = this.#left + this.#young.sealed.length + this.#main.sealed.length + 1
    while (this.#lacks(bytes)) {
      if (this.#left >= until || !this.look(stepRecords)) return false
    }
    return true
  }

  /** Whether so many more bytes would be too many. */
  #lacks(bytes: number): boolean {
    return this.#bytes + bytes > this.parts.maxBytes() || this.#isFull(bytes)
  }

  #isFull(bytes: number): boolean {
    const { disk, folder, freeMinBytes } = this.parts
    this.#isDiskFull = disk.freeBytes(folder) < freeMinBytes + bytes
    return this.#isDiskFull
  }

  /**
   * Looks at so many records of the segment that is to leave, if room will be needed soon. True: there is more to do. Throws
   * where the disk does.
   */
  look(records: number): boolean {
    if (this.#leaving === undefined && !this.#isNeeded()) return false
    this.#leaving ??= this.#choose()
    const leaving = this.#leaving
    if (leaving === undefined) return false
    const held = this.parts.recordsOf(leaving.segment, leaving.slot, records)
    for (const record of held) this.#judge(leaving, record)
    const last = held.at(-1)
    if (last !== undefined) leaving.slot = last.slot + 1
    if (held.length < records) this.#remove(leaving)
    return true
  }

  /** Whether a segment must leave: one more than what is needed now, so that there is time to look through it. */
  #isNeeded(): boolean {
    const { segmentBytes } = this.parts.marks.shape
    this.#looks += 1
    const isFull = this.#looks % diskLooks === 0 ? this.#isFull(segmentBytes) : this.#isDiskFull
    const isGone = this.#main.sealed[0]?.sizeBytes === 0
    return isGone || isFull || this.#bytes + 2 * segmentBytes > this.parts.maxBytes()
  }

  #choose(): Leaving | undefined {
    const { disk, folder, maxBytes } = this.parts
    const isYoungFull = bytesOf(this.#young) * 100 > maxBytes() * youngPercent
    const isMainGone = this.#main.sealed[0]?.sizeBytes === 0
    const ring =
      (isYoungFull && !isMainGone && this.#young.sealed.length > 0) || this.#main.sealed.length === 0
        ? this.#young
        : this.#main
    // The rows of the segment must all stand in the index.
    this.parts.commit()
    this.#ghosts.resize(this.parts.payloads())
    const next = ring.sealed.shift()
    if (next === undefined) return undefined
    let file: OpenFile | undefined
    try {
      file = next.sizeBytes === 0 ? undefined : openSegment(disk, folder, next.segment)
    } catch (error) {
      this.parts.log.warn(
        { err: error, segment: next.segment },
        'a segment cannot be opened: its content is removed from the cache',
      )
    }
    return { ...next, isYoung: ring === this.#young, file, slot: 0, rewrittenBytes: 0 }
  }

  #judge(leaving: Leaving, { slot, digest }: HeldRecord): void {
    const { parts } = this
    const { segment } = leaving
    parts.passed(segment, slot)
    const place = parts.find(digest)
    // It was removed, or put anew elsewhere.
    if (place === undefined || !samePlace(place, { segment, slot, roomBytes: 0, sizeBytes: 0 })) return
    const cell = parts.marks.cellOf(segment)
    const isRequested = cell !== undefined && parts.marks.isRequested(cell, slot)
    const wanted = parts.isPinned(digest) || (isRequested && this.#mayRewrite(leaving, place))
    const moved = wanted ? this.#rewrite(leaving, place, digest) : undefined
    if (moved !== undefined) {
      // What was requested twice outlives two rounds.
      const isAgain = cell !== undefined && parts.marks.isRequestedAgain(cell, slot)
      const next = isAgain ? parts.marks.cellOf(moved.segment) : undefined
      if (next !== undefined) parts.marks.ask(next, moved.slot)
      return
    }
    if (leaving.isYoung) this.#ghosts.add(digest)
    parts.evicted(digest, place)
  }

  #mayRewrite(leaving: Leaving, { sizeBytes }: SegmentPlace): boolean {
    return leaving.rewrittenBytes + sizeBytes <= leaving.sizeBytes * rewrittenShare
  }

  /** Where it lies then. Undefined: its bytes are not to be had, or there is no room: it goes. */
  #rewrite(leaving: Leaving, place: SegmentPlace, digest: Uint8Array): SegmentPlace | undefined {
    const { file } = leaving
    const sound = file === undefined ? undefined : readSound(this.parts.disk, file, place, digest)
    if (sound === undefined) {
      this.parts.log.warn(
        { segment: place.segment },
        'a cached payload is damaged: it is fetched again when it is requested',
      )
      return undefined
    }
    const { payload, ...words } = sound
    const record = { name: digest, parts: [payload], sizeBytes: payload.length, ...words }
    const bytes = bytesOfRecord(record)
    const ring = this.#main
    const active = ring.active?.hasRoom(bytes) ? ring.active : this.#open(ring, false)
    if (!(active instanceof SegmentFile)) return undefined
    const moved = this.#write(ring, active, record)
    this.parts.moved(digest, moved)
    leaving.rewrittenBytes += bytes
    return moved
  }

  #remove({ segment, file, sizeBytes }: Leaving): void {
    const { disk, folder, marks } = this.parts
    this.#leaving = undefined
    // First the rows, then the file: what the index says of it then is not to be found any more.
    this.parts.commit()
    marks.remove(segment)
    if (file !== undefined) disk.close(file)
    this.#bytes -= sizeBytes
    this.#left += 1
    try {
      disk.remove(`${folder}/${segmentName(segment)}`)
    } catch (error) {
      this.parts.log.warn(
        { err: error, segment },
        'a segment could not be removed: tried again at the next start',
      )
    }
  }

  close(): void {
    this.#seal(this.#young)
    this.#seal(this.#main)
    if (this.#leaving?.file !== undefined) this.parts.disk.close(this.#leaving.file)
  }
}

function bytesOf({ sealed, active }: Ring): number {
  return sealed.reduce((sum, { sizeBytes }) => sum + sizeBytes, active?.sizeBytes ?? 0)
}
