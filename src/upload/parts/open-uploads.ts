import { randomUUID } from 'node:crypto'
import type { Timer } from '../../actor/clock.js'
import { ConfirmedTime } from '../../actor/confirmed-time.js'
import type { Log } from '../../actor/log.js'
import { closedAnswer, diskAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import { ClusterUploads, type ClusterUploadsHost } from './cluster-uploads.js'
import { Finishing, type FinishingHost, type FinishingParts } from './finishing.js'
import { chunksSize, type ListedUploads, type LiveUpload, listedOf } from './live-uploads.js'
import { isOver, type MultipartRecord, mayNotBeLost, uploadLivesMs } from './multipart-record.js'
import { owing } from './paid-parts.js'
import type { OpenElsewhere, SeenUpload } from './part-records.js'
import type { PartStore } from './part-store.js'
import { uploaderIn } from './upload-outcome.js'

const sweepEveryMs = 10 * 60_000
/** Records looked at in one turn of a sweep, and the pause to the next turn: others must not wait for thousands. */
const sweptMax = 100
const sweepAgainMs = 50
/** Failed uploads whose states are still reported; the oldest are forgotten first. */
const failedMax = 10_000

/** An upload whose item may be accepted somewhere is tried for so long: a machine may be away for days. */
const begunLivesMs = 7 * 24 * 3600_000

export interface OpenUploadsParts extends FinishingParts {
  readonly logger: Log
}

/**
 * Uploads in several requests, for all protocols: stores their parts, bounds their bytes and time, and makes the item of them at
 * the end.
 */
export class OpenUploads implements FinishingHost, ClusterUploadsHost {
  readonly #live = new Map<string, LiveUpload>()
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #sweeping: Timer
  readonly #finishing: Finishing
  /** Undefined: there are no other machines. */
  readonly #cluster: ClusterUploads | undefined

  /** Goes on with what an earlier process left. Throws where the disk refuses. */
  constructor(private readonly parts: OpenUploadsParts) {
    const { clock, files, paid, records } = parts
    this.#finishing = new Finishing(parts, this, this.#closing.signal)
    const open = records
      .due('open', Infinity, Infinity)
      .filter((record) => !this.#finishing.endAccepted(record))
    for (const record of open) {
      const chunks = files.kept(record.id)
      this.#countKept(this.#enter(record, chunks), chunksSize(chunks), chunks.size)
    }
    for (const name of files.uploads()) if (!this.#live.has(name)) this.#removeFiles(name)
    const time = new ConfirmedTime(clock)
    const swept = (): number => Math.min(time.now(), records.nowMs ?? Number.POSITIVE_INFINITY)
    this.#sweeping = clock.every(sweepEveryMs, () => this.#sweepAgain(swept()))
    this.#cluster = records.isShared ? new ClusterUploads(parts, this, this.#closing.signal) : undefined
    for (const record of open)
      if (record.state === 'asked') this.finishUntilDecided(record.id, uploaderIn(record))
    for (const record of open) paid?.watchPayment(record, this)
    for (const record of [...records.due('owed', Infinity, Infinity), ...open])
      if (record.paid?.owes !== undefined) paid?.settleOwed(record)
    // At once by the time that it has surely been: one that starts again and again before its first sweep fills no disk.
    if (records.newestMs !== undefined) this.#sweepAgain(Math.min(clock.now(), records.newestMs))
  }

  #enter(
    record: Pick<MultipartRecord, 'id' | 'client' | 'paid' | 'begunItem'>,
    chunks: Map<number, number>,
  ): LiveUpload {
    const { id, client, paid } = record
    const live = this.#enterAs({ id, client, isPaid: paid !== undefined }, chunks)
    this.parts.partsRoom.setUndecided(live.holder, mayNotBeLost(record))
    return live
  }

  /** The payment of an upload was settled. */
  decided(id: string): void {
    const { records, partsRoom } = this.parts
    const [live, record] = [this.#live.get(id), records.find(id)]
    if (live !== undefined) partsRoom.setUndecided(live.holder, record !== undefined && mayNotBeLost(record))
  }

  #enterAs(
    { id, client, isPaid }: Pick<OpenElsewhere, 'id' | 'client' | 'isPaid'>,
    chunks: Map<number, number>,
  ): LiveUpload {
    const drop = (): void => {
      if (isPaid) this.#forget(id)
      else this.drop(id)
      // What was paid for it becomes credits.
      if (isPaid) void this.track(this.#finishing.giveUp(id).catch(diskAnswer))
    }
    const holder = this.parts.partsRoom.enter({ client, hasPlace: true, isPaid, drop })
    const seenMs = this.parts.clock.monotonic()
    const kept = { bytes: 0, files: 0 }
    const live: LiveUpload = {
      chunks,
      holder,
      kept,
      keeping: new Set(),
      stage: 'ASSEMBLING',
      isDriven: false,
      isElsewhere: false,
      seenMs,
    }
    this.#live.set(id, live)
    return live
  }

  /** So many bytes and files of it are kept, here or elsewhere. */
  #countKept({ holder, kept }: LiveUpload, bytes: number, files: number): void {
    this.parts.partsRoom.grow(holder, bytes - kept.bytes, files - kept.files)
    Object.assign(kept, { bytes, files })
  }

  /**
   * Reads an upload as all machines have it now; before anything else is done about it. Undefined: this machine alone has it.
   * `takesOver`: requests that bring bytes of it to other machines bring no more. Rejects where the engine does not answer.
   */
  load(id: string, takesOver = false): Promise<void> | undefined {
    return this.parts.records.load(id, takesOver)?.then((seen) => this.#see(id, seen))
  }

  #see(id: string, { record, chunks, isElsewhere, stage }: SeenUpload): void {
    if (record === undefined || isOver(record)) {
      if (!this.#isTried(id)) this.#forget(id)
      return
    }
    const live = this.#live.get(id) ?? this.#enter(record, chunks)
    if (isElsewhere) live.stage = stage
    this.parts.partsRoom.setUndecided(live.holder, mayNotBeLost(record))
    Object.assign(live, { chunks, isElsewhere, seenMs: this.parts.clock.monotonic() })
    this.#countKept(live, chunksSize(chunks), chunks.size)
  }

  /** Counts what another machine has open of an upload. */
  countElsewhere(one: OpenElsewhere): void {
    this.#countKept(this.#live.get(one.id) ?? this.#enterAs(one, new Map()), one.bytes, one.files)
  }

  /** Forgets those that are not in `open`, and that nobody has seen since `sinceMs` (monotonic). */
  keepOnly(open: ReadonlySet<string>, sinceMs: number): void {
    for (const [id, live] of this.#live)
      if (!open.has(id) && live.seenMs < sinceMs && !this.#isTried(id)) this.#forget(id)
  }

  /** What all front ends need of it. */
  get files(): PartStore {
    return this.parts.files
  }

  /** Other machines have them, too: what is known here may have changed (`load`). */
  get isShared(): boolean {
    return this.parts.records.isShared
  }

  get itemMaxBytes(): number {
    return this.parts.itemMaxBytes
  }

  /** What is not over, the largest first; and how much it is together. */
  listed(max: number): ListedUploads {
    return { ...listedOf(this.#live, this.parts.records, max), bytes: this.parts.partsRoom.bytes }
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
    const { clock, noRoomFor, records, partsRoom } = this.parts
    const placed = (): UploadAnswer | undefined =>
      terms.paid === undefined ? partsRoom.placeFor(terms.client) : partsRoom.paidPlaceFor(terms.client)
    const crowded = closedAnswer() ?? noRoomFor() ?? placed()
    if (crowded !== undefined) return crowded
    const [id, now] = [terms.id ?? randomUUID(), clock.now()]
    // One whose payment is not decided is looked at again, by whichever machine sweeps.
    const due = terms.paid === undefined ? {} : { dueMs: now + sweepEveryMs }
    const record: MultipartRecord = { ...terms, id, createdMs: now, changedMs: now, state: 'open', ...due }
    records.put(record)
    this.#enter(record, new Map())
    return record
  }

  /** Resolves when a new upload outlives a power cut. Rejects where the disk refuses: there is none then. */
  async begun({ id }: Pick<MultipartRecord, 'id'>): Promise<void> {
    try {
      await this.parts.records.flushed(id)
    } catch (error) {
      this.drop(id)
      throw error
    }
  }

  /** Undefined: there is none, or it has expired. */
  find(id: string): MultipartRecord | undefined {
    if (id.length > 64) return undefined
    const record = this.parts.records.find(id)
    if (record === undefined || this.#isExpired(record, this.now())) return undefined
    return this.#isTried(id) ? record : (this.#finishing.endAccepted(record) ?? record)
  }

  #isTried(id: string): boolean {
    return this.#live.get(id)?.attempt !== undefined
  }

  /** Whether something was sent for it to any machine, or it is over. */
  async isUsed(id: string): Promise<boolean> {
    await this.load(id)
    return this.#live.get(id)?.holder.bytes !== 0
  }

  /** Undefined: it is over. */
  live(id: string): LiveUpload | undefined {
    return this.#live.get(id)
  }

  put(record: MultipartRecord): void {
    this.parts.records.put(this.stamped(record))
    this.decided(record.id)
  }

  stamped(record: MultipartRecord): MultipartRecord {
    return { ...record, changedMs: this.parts.clock.now() }
  }

  /** Resolves when what was put of it so far outlives a power cut. */
  flushed(id: string): Promise<void> {
    return this.parts.records.flushed(id)
  }

  /** Why so many more bytes would not be taken now. */
  foresee({ holder }: LiveUpload, bytes: number): UploadAnswer | undefined {
    return this.parts.partsRoom.foresee(holder, bytes) ?? this.parts.noRoomFor(bytes)
  }

  /** Counts bytes and files that come or, with less than 0, do not stay. An answer: there is no room for them. */
  occupy({ holder }: LiveUpload, bytes: number, files: number): UploadAnswer | undefined {
    const { partsRoom, noRoomFor } = this.parts
    const crowded = bytes > 0 ? (partsRoom.roomFor(holder, bytes) ?? noRoomFor(bytes)) : undefined
    if (crowded === undefined) partsRoom.grow(holder, bytes, files)
    return crowded
  }

  /** A part that was held is on disk now. */
  partStored(live: LiveUpload, offset: number, size: number): void {
    const replaced = live.chunks.get(offset)
    if (replaced !== undefined) this.occupy(live, -replaced, -1)
    live.chunks.set(offset, size)
    live.kept.bytes += size - (replaced ?? 0)
    live.kept.files += replaced === undefined ? 1 : 0
  }

  /** Parts from a place on are not what was meant: they are gone. */
  async retract(id: string, live: LiveUpload, from: number): Promise<void> {
    const gone = [...live.chunks].filter(([at]) => at >= from)
    for (const [offset] of gone) live.chunks.delete(offset)
    const bytes = gone.reduce((sum, [, size]) => sum + size, 0)
    this.#countKept(live, live.kept.bytes - bytes, live.kept.files - gone.length)
    await this.parts.files.cut(id, from)
  }

  /** Tries until it is decided. */
  finishUntilDecided(id: string, uploader: Uploader): void {
    this.#finishing.finishUntilDecided(id, uploader)
  }

  /** Makes the item of it. One at a time: who comes while it runs has its answer, too. */
  finish(id: string, live: LiveUpload, uploader: Uploader): Promise<UploadAnswer> {
    return this.#finishing.finish(id, live, uploader)
  }

  /** The receipt of one that is finalized. */
  receipt(record: MultipartRecord): Promise<UploadAnswer> {
    return this.#finishing.receipt(record)
  }

  async removeParts(id: string): Promise<void> {
    this.#forget(id)
    // A power cut may not leave the order without the parts.
    await this.parts.records.flushed(id)
    this.#removeFiles(id)
  }

  #isExpired({ id, createdMs }: MultipartRecord, nowMs: number): boolean {
    const isOld = nowMs - createdMs > uploadLivesMs
    return isOld && !this.#isTried(id)
  }

  /** Nobody wants it any more. */
  drop(id: string): void {
    this.#remove([id])
  }

  /** Some of what is due at a time of day. */
  #sweep(nowMs: number): void {
    const { clock, records } = this.parts
    const dueMs = nowMs - 1
    const open = records.due('open', dueMs, sweptMax)
    const failed = Math.min(sweptMax, Math.max(0, records.failed - failedMax))
    const over = [
      ...records.due('finalized', dueMs, sweptMax),
      ...records.due('failed', dueMs, sweptMax),
      ...records.due('failed', Infinity, failed),
    ]
    this.#remove([
      ...new Set([...open.filter((record) => !this.#keeps(record, nowMs)), ...over].map(({ id }) => id)),
    ])
    if (Math.max(open.length, over.length) < sweptMax) return
    clock.after(sweepAgainMs, () => this.#sweepAgain(nowMs))
  }

  #sweepAgain(nowMs: number): void {
    const { signal } = this.#closing
    if (signal.aborted) return
    const looked = this.parts.records.lookDue()
    if (looked === undefined) this.#sweep(nowMs)
    else void this.track(looked.then((isOurs) => isOurs && !signal.aborted && this.#sweep(nowMs)))
  }

  /** Whether something is still to be done about an open one that is due: then it is looked at again. */
  #keeps(record: MultipartRecord, nowMs: number): boolean {
    const { paid, records, logger } = this.parts
    if (!this.#isTried(record.id) && this.#finishing.endAccepted(record) !== undefined) return true
    const isExpired = this.#isExpired(record, nowMs)
    const isOwed = record.paid !== undefined && record.paid.endedMs === undefined
    if (isExpired && !isOwed) return false
    const later = { ...record, dueMs: nowMs + sweepEveryMs }
    // What was paid for and never used becomes credits first; what may be accepted somewhere is finished.
    const isFinished = record.begunItem !== undefined && nowMs - record.createdMs < begunLivesMs
    const isUnused = isExpired && !isFinished
    if (isUnused && record.begunItem !== undefined)
      logger.error({ id: record.id, item: record.begunItem }, 'a paid upload in parts could not be finished')
    records.put(isUnused ? owing(later, 'refund') : later)
    if (isUnused) paid?.settleOwed(record)
    else paid?.watchPayment(record, this)
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
    this.parts.partsRoom.leave(live.holder)
    this.#live.delete(id)
  }

  #removeFiles(id: string): void {
    const logFailure = (error: unknown): void =>
      this.parts.logger.error({ err: error }, 'parts could not be removed')
    void this.track(this.parts.files.remove(id).catch(logFailure))
  }

  /** What was under way for an upload that is gone meanwhile has left files. */
  tidy(id: string): void {
    if (this.parts.records.find(id) === undefined) this.#removeFiles(id)
  }

  /** The end of the service waits for it. */
  track<T>(work: Promise<T>): Promise<T> {
    const over = (): void => void this.#underWay.delete(settled)
    const settled: Promise<void> = work.then(over, over)
    this.#underWay.add(settled)
    return work
  }

  /** Resolves when nothing is under way any more; what is not over goes on after a restart. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#sweeping.cancel()
    this.#cluster?.close()
    await this.parts.paid?.close()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    await this.parts.records.close()
  }
}
