import { randomUUID } from 'node:crypto'
import { type Clock, pause, type Timer } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import {
  diskAnswer,
  fixedAnswers,
  jsonAnswer,
  textAnswer,
  type UploadAnswer,
} from '../calls/upload-answers.js'
import type { Uploader } from '../calls/uploader.js'
import { Assembly } from '../intake/assembly.js'
import type { ItemIntake } from '../intake/item-intake.js'
import type { SingleUploadParts } from '../intake/single-upload.js'
import type { Uploads } from '../records/uploads.js'
import type { HeldRoom } from '../room/held-room.js'
import { type Live, largest, type Stage } from './live-uploads.js'
import { isOver, type MultipartRecord, type MultipartRecords, uploadLivesMs } from './multipart-records.js'
import { owing, type PaidParts } from './paid-parts.js'
import type { PartFiles } from './part-files.js'
import { outcomeOf, uploaderIn } from './upload-outcome.js'

const againMs = 2000
const sweepEveryMs = 10 * 60_000
/** Records looked at in one turn of a sweep, and the pause to the next turn: others must not wait for thousands. */
const sweptMax = 100
const sweepAgainMs = 50
/** Failed uploads whose states are still reported; the oldest are forgotten first. */
const failedMax = 10_000
/** Items put together at once: each takes what a single upload takes. */
const assembliesMax = 2

export interface OpenUploadsParts extends SingleUploadParts {
  readonly intake: ItemIntake
  readonly uploads: Uploads
  readonly records: MultipartRecords
  readonly files: PartFiles
  readonly room: HeldRoom
  /** Absent: no upload is paid for at its beginning. */
  readonly paid?: PaidParts
  readonly clock: Clock
  readonly logger: Log
}

/**
 * Uploads in several requests, for all protocols: stores their parts, bounds their bytes and time, and makes the item of them at
 * the end.
 */
export class OpenUploads {
  readonly #live = new Map<string, Live>()
  readonly #slots = FairSlots.unbounded(assembliesMax)
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #sweeping: Timer

  /** Goes on with what an earlier process left. Throws where the disk refuses. */
  constructor(private readonly parts: OpenUploadsParts) {
    const { clock, files, paid, records } = parts
    const open = records.due('open', Infinity, Infinity).filter((record) => !this.#conclude(record))
    for (const record of open) this.#adopt(record)
    for (const name of files.uploads()) if (!this.#live.has(name)) this.#removeFiles(name)
    this.#sweeping = clock.every(sweepEveryMs, () => this.#sweepAgain())
    this.#sweepAgain()
    for (const record of open) if (record.state === 'asked') this.drive(record.id, uploaderIn(record))
    for (const record of [...records.due('owed', Infinity, Infinity), ...open])
      if (record.paid?.owes !== undefined) paid?.end(record)
  }

  #adopt(record: MultipartRecord): void {
    const live = this.#enter(record, this.parts.files.parts(record.id))
    for (const bytes of live.chunks.values()) this.parts.room.grow(live.holder, bytes, 1)
  }

  #enter({ id, client, paid }: MultipartRecord, chunks: Map<number, number>): Live {
    const drop = (): void => this.drop(id)
    const isPaid = paid !== undefined
    const holder = this.parts.room.enter({ client, hasPlace: true, isPaid, drop })
    const live: Live = { chunks, holder, stage: 'ASSEMBLING', isDriven: false }
    this.#live.set(id, live)
    return live
  }

  /** What all front ends need of it. */
  get files(): PartFiles {
    return this.parts.files
  }

  get itemMaxBytes(): number {
    return this.parts.itemMaxBytes
  }

  /** What is not over, the largest first; and how much it is together. */
  listed(max: number): {
    readonly open: number
    readonly bytes: number
    readonly uploads: readonly object[]
  } {
    const uploads = max === 0 ? [] : largest(this.#live, this.parts.records, max)
    return { open: this.#live.size, bytes: this.parts.room.bytes, uploads }
  }

  now(): number {
    return this.parts.clock.now()
  }

  /** A new upload, or why there is none. */
  begin(
    terms: Pick<MultipartRecord, 'chunkBytes' | 'client' | 'appended' | 'uploader' | 'paid'> & {
      readonly id?: string
    },
  ): MultipartRecord | UploadAnswer {
    const { clock, full, records, room } = this.parts
    const crowded = full() ?? (terms.paid === undefined ? room.placeFor(terms.client) : undefined)
    if (crowded !== undefined) return crowded
    const { id = randomUUID() } = terms
    const now = clock.now()
    const record: MultipartRecord = { ...terms, id, createdMs: now, changedMs: now, state: 'open' }
    records.put(record)
    this.#enter(record, new Map())
    return record
  }

  /** Resolves when a new upload outlives a power cut. Rejects where the disk refuses: there is none then. */
  async begun({ id }: Pick<MultipartRecord, 'id'>): Promise<void> {
    try {
      await this.parts.records.flushed()
    } catch (error) {
      this.drop(id)
      throw error
    }
  }

  /** Undefined: there is none, or it has expired. */
  find(id: string): MultipartRecord | undefined {
    if (id.length > 64) return undefined
    const record = this.parts.records.find(id)
    if (record === undefined || this.#isExpired(record)) return undefined
    return this.#isTried(id) ? record : (this.#conclude(record) ?? record)
  }

  #isTried(id: string): boolean {
    return this.#live.get(id)?.attempt !== undefined
  }

  /** Undefined: it is over. */
  live(id: string): Live | undefined {
    return this.#live.get(id)
  }

  put(record: MultipartRecord): void {
    this.parts.records.put({ ...record, changedMs: this.parts.clock.now() })
  }

  /** Resolves when all that was put so far outlives a power cut. */
  flushed(): Promise<void> {
    return this.parts.records.flushed()
  }

  /** Why so many more bytes would not be taken now. */
  foresee({ holder }: Live, bytes: number): UploadAnswer | undefined {
    return this.parts.room.foresee(holder, bytes) ?? this.parts.full(bytes)
  }

  /** Counts bytes and files that come or, with less than 0, do not stay. An answer: there is no room for them. */
  hold({ holder }: Live, bytes: number, files: number): UploadAnswer | undefined {
    const { room, full } = this.parts
    const crowded = bytes > 0 ? (room.roomFor(holder, bytes) ?? full(bytes)) : undefined
    if (crowded === undefined) room.grow(holder, bytes, files)
    return crowded
  }

  /** A part that was held is on disk now. */
  took(live: Live, offset: number, size: number): void {
    const replaced = live.chunks.get(offset)
    if (replaced !== undefined) this.hold(live, -replaced, -1)
    live.chunks.set(offset, size)
  }

  /** Parts from a place on are not what was meant: they are gone. */
  async retract(id: string, live: Live, from: number): Promise<void> {
    for (const [offset, size] of [...live.chunks].filter(([at]) => at >= from)) {
      live.chunks.delete(offset)
      this.hold(live, -size, -1)
      await this.parts.files.removePart(id, offset)
    }
  }

  /** Tries until it is decided. */
  drive(id: string, uploader: Uploader): void {
    const live = this.#live.get(id)
    if (live === undefined || live.isDriven) return
    this.#setBusy(live, { isDriven: true })
    const act = async (): Promise<void> => {
      while (!this.#closing.signal.aborted && this.#live.get(id) === live) {
        const answer = await this.attempt(id, live, uploader)
        if (outcomeOf(answer) !== undefined) break
        await pause(againMs, this.#closing.signal)
      }
      this.#setBusy(live, { isDriven: false })
    }
    void this.follow(act())
  }

  /** What is being put together is not dropped for others. */
  #setBusy(live: Live, changed: Partial<Pick<Live, 'isDriven'>> = {}): void {
    Object.assign(live, changed)
    this.parts.room.setBusy(live.holder, live.isDriven || live.attempt !== undefined)
  }

  /** One at a time: who comes while it runs has its answer, too. */
  attempt(id: string, live: Live, uploader: Uploader): Promise<UploadAnswer> {
    const assemble = (): Promise<UploadAnswer> => this.#assemble(id, live, uploader).catch(diskAnswer)
    live.attempt ??= this.follow(this.#slots.run(assemble, live.holder.parties[1])).finally(() => {
      delete live.attempt
      this.#setBusy(live)
    })
    this.#setBusy(live)
    return live.attempt
  }

  async #assemble(id: string, live: Live, uploader: Uploader): Promise<UploadAnswer> {
    const closing = textAnswer(503, 'The service is ending', '\r\nRetry-After: 5')
    if (this.#closing.signal.aborted) return closing
    const before = this.parts.records.find(id)
    // Other parts may have come since: one payment pays for one item.
    const concluded = before && this.#conclude(before)
    if (concluded !== undefined) return this.receipt(concluded)
    live.stage = 'ASSEMBLING'
    const offsets = [...live.chunks.keys()].sort((a, b) => a - b)
    const paths = offsets.map((offset) => this.parts.files.path(id, offset))
    const moved = (stage: Stage) => (): void => {
      live.stage = stage
    }
    const { records, paid } = this.parts
    // Less than what is held, where a request still brings a part that comes too late.
    const sizeBytes = [...live.chunks.values()].reduce((sum, bytes) => sum + bytes, 0)
    let isUnused = false
    const charge = paid?.charge(records.find(id), sizeBytes, () => {
      isUnused = true
    })
    const digest = records.find(id)?.appended?.digest
    const how = {
      onHeld: moved('FINALIZING'),
      digest,
      sizeBytes,
      ...(charge === undefined ? {} : { charge }),
    }
    const answer = await new Assembly(this.parts).run(paths, uploader, moved('VALIDATING'), how)
    const outcome = outcomeOf(answer)
    const record = records.find(id)
    if (outcome === undefined || record === undefined) return answer
    if (outcome === 'finalized') {
      const { id: itemId } = answer.json as { id: MultipartRecord['itemId'] & string }
      this.#finalize(record, itemId, isUnused)
    } else {
      const { answer: _, uploader: __, ...clean } = record
      this.put(owing({ ...clean, state: outcome, answer }, 'refund'))
      paid?.end(record)
    }
    // More credits may come: it can be finalized again.
    if (outcome !== 'underfunded') await this.#clear(id)
    return outcome === 'finalized' ? { ...answer, status: 200 } : answer
  }

  /** `isUnused`: the item was paid for otherwise. */
  #finalize(record: MultipartRecord, itemId: Id, isUnused: boolean): MultipartRecord {
    const { answer: _, uploader: __, ...clean } = record
    const spent = this.parts.uploads.find(itemId)?.place.sizeBytes ?? 0
    const ended = owing({ ...clean, state: 'finalized', itemId }, isUnused ? 'refund' : { spent })
    this.put(ended)
    this.parts.paid?.end(record)
    return ended
  }

  /**
   * Ends an upload whose item was accepted, and whose own record does not state it: a stop came in between, or the answer was
   * lost. The record of the item decides what becomes of the money. Undefined: no item was accepted for what was paid.
   */
  #conclude(record: MultipartRecord): MultipartRecord | undefined {
    const isOpen = record.paid !== undefined && !isOver(record)
    const item = isOpen ? this.parts.uploads.ofHold(record.id) : undefined
    if (item === undefined) return undefined
    const ended = this.#finalize(record, item.id, false)
    void this.follow(this.#clear(record.id).catch(diskAnswer))
    return ended
  }

  /** It takes no room any more. */
  async #clear(id: string): Promise<void> {
    this.#forget(id)
    // A power cut may not leave the order without the parts.
    await this.parts.records.flushed()
    this.#removeFiles(id)
  }

  /** The same content each time: only the lists of hosts may have changed. */
  async receipt({ itemId }: MultipartRecord): Promise<UploadAnswer> {
    const item = itemId === undefined ? undefined : this.parts.uploads.find(itemId)
    if (item === undefined) return fixedAnswers.unknownItem
    return jsonAnswer(200, await this.parts.intake.receipt(item))
  }

  #isExpired({ id, createdMs }: MultipartRecord): boolean {
    const isOld = this.parts.clock.now() - createdMs > uploadLivesMs
    return isOld && !this.#isTried(id)
  }

  /** Nobody wants it any more. */
  drop(id: string): void {
    this.#remove([id])
  }

  /** Some of what is due. */
  #sweep(): void {
    const { clock, records } = this.parts
    const dueMs = clock.now() - 1
    const open = records.due('open', dueMs, sweptMax)
    const failed = Math.min(sweptMax, Math.max(0, records.failed - failedMax))
    const over = [
      ...records.due('finalized', dueMs, sweptMax),
      ...records.due('failed', dueMs, sweptMax),
      ...records.due('failed', Infinity, failed),
    ]
    this.#remove([
      ...new Set([...open.filter((record) => !this.#keeps(record)), ...over].map(({ id }) => id)),
    ])
    if (Math.max(open.length, over.length) < sweptMax) return
    clock.after(sweepAgainMs, () => this.#sweepAgain())
  }

  #sweepAgain(): void {
    if (!this.#closing.signal.aborted) this.#sweep()
  }

  /** Whether something is still to be done about an open one that is due: then it is looked at again. */
  #keeps(record: MultipartRecord): boolean {
    const { clock, paid, records } = this.parts
    if (!this.#isTried(record.id) && this.#conclude(record) !== undefined) return true
    const isExpired = this.#isExpired(record)
    const isOwed = record.paid !== undefined && record.paid.endedMs === undefined
    if (isExpired && !isOwed) return false
    const later = { ...record, dueMs: clock.now() + sweepEveryMs }
    // What was paid for and never used becomes credits first.
    records.put(isExpired && record.paid?.owes === undefined ? owing(later, 'refund') : later)
    if (isExpired) paid?.end(record)
    return true
  }

  #remove(ids: readonly string[]): void {
    this.parts.records.remove(ids)
    for (const id of ids) {
      this.#forget(id)
      this.#removeFiles(id)
    }
  }

  #forget(id: string): void {
    const live = this.#live.get(id)
    if (live === undefined) return
    this.parts.room.leave(live.holder)
    this.#live.delete(id)
  }

  #removeFiles(id: string): void {
    const logFailure = (error: unknown): void =>
      this.parts.logger.error({ err: error }, 'parts could not be removed')
    void this.follow(this.parts.files.remove(id).catch(logFailure))
  }

  /** What was under way for an upload that is gone meanwhile has left files. */
  tidy(id: string): void {
    if (this.parts.records.find(id) === undefined) this.#removeFiles(id)
  }

  /** The end of the service waits for it. */
  follow<T>(work: Promise<T>): Promise<T> {
    const over = (): void => void this.#underWay.delete(settled)
    const settled: Promise<void> = work.then(over, over)
    this.#underWay.add(settled)
    return work
  }

  /** Resolves when nothing is under way any more; what is not over goes on after a restart. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#sweeping.cancel()
    await this.parts.paid?.close()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    await this.parts.records.close()
  }
}
