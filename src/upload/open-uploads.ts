import { randomUUID } from 'node:crypto'
import { type Clock, pause, type Timer } from '../actor/clock.js'
import { FairSlots } from '../actor/fair-slots.js'
import type { Log } from '../actor/log.js'
import type { Acceptor } from './acceptor.js'
import { diskAnswer, jsonAnswer, said, textAnswer, type UploadAnswer } from './answers.js'
import { Assembly } from './assembly.js'
import type { MultipartRecord, MultipartRecords } from './multipart-records.js'
import { owing, type PaidParts } from './paid-parts.js'
import type { PartFiles } from './part-files.js'
import { PartShares } from './part-shares.js'
import { tryWrite } from './patient-write.js'
import type { SingleUploadParts } from './single-upload.js'
import type { Uploader } from './uploader.js'
import type { Uploads } from './uploads.js'

/** From its first request on; then it is gone, whole or not. */
export const uploadLivesMs = 24 * 3600_000

/** An upload without a part takes some hundred bytes. */
const openMax = 10_000
const againMs = 2000
const sweepEveryMs = 10 * 60_000
/** Items put together at once: each takes what a single upload takes. */
const assembliesMax = 2

export interface OpenUploadsParts extends SingleUploadParts {
  readonly acceptor: Acceptor
  readonly uploads: Uploads
  readonly records: MultipartRecords
  readonly files: PartFiles
  /** Bytes of parts of all uploads together. */
  readonly partsMaxBytes: number
  /** Absent: no upload is paid for at its beginning. */
  readonly paid?: PaidParts
  readonly clock: Clock
  readonly say: Log
}

type Stage = 'ASSEMBLING' | 'VALIDATING' | 'FINALIZING'

/** An upload that is not over: its parts, and how far its end has come where it was ordered. */
export interface Live {
  /** Size of each part by the place where it begins. */
  readonly chunks: Map<number, number>
  readonly client: string | undefined
  stage: Stage
  attempt?: Promise<UploadAnswer>
  /** Somebody sees to it that it ends, however often that takes. */
  isDriven: boolean
}

/**
 * Uploads whose items come in more than one request, by whatever protocol: what is on disk of them, for how long, how much of
 * it, and how the item is made of its parts in the end.
 */
export class OpenUploads {
  readonly #live = new Map<string, Live>()
  readonly #slots = FairSlots.unbounded(assembliesMax)
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #sweeping: Timer
  readonly #shares: PartShares

  /** Goes on with what an earlier process left. Throws where the disk refuses. */
  constructor(private readonly parts: OpenUploadsParts) {
    this.#shares = new PartShares(parts.partsMaxBytes)
    for (const record of parts.records.all()) if (!isOver(record)) this.#adopt(record)
    for (const name of parts.files.uploads()) if (!this.#live.has(name)) this.#removeFiles(name)
    this.#sweep()
    // What a full disk does not take is swept the next time.
    this.#sweeping = parts.clock.every(sweepEveryMs, () => void tryWrite(() => this.#sweep()))
    for (const id of this.#live.keys()) {
      const record = parts.records.find(id)
      if (record?.state === 'asked') this.drive(id, uploaderIn(record))
    }
    for (const record of parts.records.all()) if (record.paid?.owes !== undefined) parts.paid?.end(record)
  }

  #adopt({ id, client }: MultipartRecord): void {
    const live = this.#enter(id, client, this.parts.files.parts(id))
    let held = 0
    for (const bytes of live.chunks.values()) held += bytes
    this.#shares.hold(client, held, live.chunks.size)
  }

  #enter(id: string, client: string | undefined, chunks: Map<number, number>): Live {
    const live: Live = { chunks, client, stage: 'ASSEMBLING', isDriven: false }
    this.#live.set(id, live)
    this.#shares.enter(client)
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
    const all = [...this.#live].map(([id, live]) => ({ id, live, bytes: sizeOf(live) }))
    all.sort((one, other) => other.bytes - one.bytes)
    const uploads = all.slice(0, max).map(({ id, live, bytes }) => {
      const record = this.parts.records.find(id)
      const protocol = record?.appended === undefined ? 'parts' : 'resumable'
      const length = record?.appended?.lengthBytes
      const state = live.attempt === undefined ? record?.state : live.stage.toLowerCase()
      return { id, protocol, state, bytes, length, parts: live.chunks.size, createdMs: record?.createdMs }
    })
    return { open: all.length, bytes: all.reduce((sum, one) => sum + one.bytes, 0), uploads }
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
    this.#sweep()
    const full = this.parts.full() ?? this.#shares.crowded(terms.client)
    if (full !== undefined) return full
    if (this.#live.size >= openMax && !this.#dropEmpty())
      return textAnswer(503, 'Too many uploads are open', '\r\nRetry-After: 60')
    const { id = randomUUID() } = terms
    const now = this.parts.clock.now()
    const record: MultipartRecord = { ...terms, id, createdMs: now, changedMs: now, state: 'open' }
    this.parts.records.put(record)
    this.#enter(id, terms.client, new Map())
    return record
  }

  /** Undefined: there is none, or it has expired. */
  find(id: string): MultipartRecord | undefined {
    if (id.length > 64) return undefined
    const record = this.parts.records.find(id)
    return record === undefined || this.#isExpired(record) ? undefined : record
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

  /** Undefined: so many more bytes of parts may come, in one more file. */
  full({ client }: Live, bytes: number): UploadAnswer | undefined {
    return this.#shares.full(client, bytes) ?? this.parts.full(bytes)
  }

  /** Counts bytes and files that come, or, with less than 0, do not stay. */
  hold({ client }: Live, bytes: number, files: number): void {
    this.#shares.hold(client, bytes, files)
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
    live.isDriven = true
    const act = async (): Promise<void> => {
      while (!this.#closing.signal.aborted && this.#live.get(id) === live) {
        const answer = await this.attempt(id, live, uploader)
        if (outcomeOf(answer) !== undefined) break
        await pause(againMs, this.#closing.signal)
      }
      live.isDriven = false
    }
    void this.follow(act())
  }

  /** One at a time: who comes while it runs has its answer, too. */
  attempt(id: string, live: Live, uploader: Uploader): Promise<UploadAnswer> {
    const assemble = (): Promise<UploadAnswer> => this.#assemble(id, live, uploader).catch(diskAnswer)
    live.attempt ??= this.follow(this.#slots.run(assemble)).finally(() => {
      delete live.attempt
    })
    return live.attempt
  }

  async #assemble(id: string, live: Live, uploader: Uploader): Promise<UploadAnswer> {
    const closing = textAnswer(503, 'The service is ending', '\r\nRetry-After: 5')
    if (this.#closing.signal.aborted) return closing
    live.stage = 'ASSEMBLING'
    const offsets = [...live.chunks.keys()].sort((a, b) => a - b)
    const paths = offsets.map((offset) => this.parts.files.path(id, offset))
    const moved = (stage: Stage) => (): void => {
      live.stage = stage
    }
    const { records, paid, uploads } = this.parts
    let isUnused = false
    const charge = paid?.charge(records.find(id), sizeOf(live), () => {
      isUnused = true
    })
    const digest = records.find(id)?.appended?.digest
    const how = { onHeld: moved('FINALIZING'), digest, ...(charge === undefined ? {} : { charge }) }
    const answer = await new Assembly(this.parts).run(paths, uploader, moved('VALIDATING'), how)
    const outcome = outcomeOf(answer)
    const record = records.find(id)
    if (outcome === undefined || record === undefined) return answer
    const { answer: _, uploader: __, ...clean } = record
    if (outcome === 'finalized') {
      const { id: itemId } = answer.json as { id: MultipartRecord['itemId'] & string }
      const spent = uploads.find(itemId)?.place.sizeBytes ?? 0
      this.put(owing({ ...clean, state: outcome, itemId }, isUnused ? 'refund' : { spent }))
    } else this.put(owing({ ...clean, state: outcome, answer }, 'refund'))
    paid?.end(record)
    // More credits may come: it can be finalized again.
    if (outcome !== 'underfunded') {
      this.#forget(id)
      // A power cut may not leave the order without the parts.
      await this.parts.records.flushed()
      this.#removeFiles(id)
    }
    return outcome === 'finalized' ? { ...answer, status: 200 } : answer
  }

  /** The same content each time: only the lists of hosts may have changed. */
  async receipt({ itemId }: MultipartRecord): Promise<UploadAnswer> {
    const item = itemId === undefined ? undefined : this.parts.uploads.find(itemId)
    if (item === undefined) return said.unknownItem
    return jsonAnswer(200, await this.parts.acceptor.receipt(item))
  }

  #isExpired({ id, createdMs }: MultipartRecord): boolean {
    const live = this.#live.get(id)
    return this.parts.clock.now() - createdMs > uploadLivesMs && live?.attempt === undefined
  }

  /** Makes room for one: the oldest that has no part goes. */
  #dropEmpty(): boolean {
    for (const [id, live] of this.#live) {
      // Money waits for it.
      if (this.parts.records.find(id)?.paid !== undefined) continue
      if (live.chunks.size > 0 || live.attempt !== undefined || live.isDriven) continue
      this.drop(id)
      return true
    }
    return false
  }

  /** Nobody wants it any more. */
  drop(id: string): void {
    this.#forget(id)
    this.parts.records.remove([id])
    this.#removeFiles(id)
  }

  #sweep(): void {
    const { records, paid } = this.parts
    const old = records.all().filter((record) => this.#isExpired(record))
    const isOwed = ({ paid }: MultipartRecord): boolean => paid !== undefined && paid.endedMs === undefined
    // What was paid for and never used becomes credits first.
    for (const record of old.filter(isOwed)) {
      if (record.paid?.owes === undefined) records.put(owing(record, 'refund'))
      paid?.end(record)
    }
    const expired = old.filter((record) => !isOwed(record))
    if (expired.length === 0) return
    const ids = expired.map(({ id }) => id)
    this.parts.records.remove(ids)
    for (const id of ids) {
      this.#forget(id)
      this.#removeFiles(id)
    }
  }

  #forget(id: string): void {
    const live = this.#live.get(id)
    if (live === undefined) return
    for (const bytes of live.chunks.values()) this.hold(live, -bytes, -1)
    this.#shares.leave(live.client)
    this.#live.delete(id)
  }

  #removeFiles(id: string): void {
    const told = (error: unknown): void => this.parts.say.error({ err: error }, 'parts could not be removed')
    void this.follow(this.parts.files.remove(id).catch(told))
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
  }
}

function sizeOf({ chunks }: Live): number {
  let bytes = 0
  for (const size of chunks.values()) bytes += size
  return bytes
}

function isOver({ state }: MultipartRecord): boolean {
  return state !== 'open' && state !== 'asked' && state !== 'underfunded'
}

/** Who uploads, as a record has it: what is undefined was not written down. */
export function uploaderIn({ uploader }: MultipartRecord): Uploader {
  return { range: undefined, token: undefined, paidBy: [], ...uploader }
}

/** What an answer decides; undefined: nothing, it may be tried again. */
export function outcomeOf({
  status,
  failed,
}: UploadAnswer): Exclude<MultipartRecord['state'], 'open' | 'asked'> | undefined {
  if (status === 200 || status === 202) return 'finalized'
  if (status < 400 || status >= 500) return undefined
  if (failed !== undefined) return `${failed}_failed`
  return status === 402 ? 'underfunded' : 'invalid'
}
