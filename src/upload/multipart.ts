import { randomUUID } from 'node:crypto'
import { type Clock, pause, type Timer } from '../actor/clock.js'
import { FairSlots } from '../actor/fair-slots.js'
import type { Log } from '../actor/log.js'
import { isRefusal } from '../format/refusal.js'
import type { Request } from '../http/exchange.js'
import type { Acceptor } from './acceptor.js'
import { answerOf, jsonAnswer, said, textAnswer, tooLarge, type UploadAnswer } from './answers.js'
import { Assembly } from './assembly.js'
import type { MultipartRecord, MultipartRecords } from './multipart-records.js'
import { PartArrival } from './part-arrival.js'
import type { PartFiles } from './part-files.js'
import type { SingleUploadParts } from './single-upload.js'
import type { Uploader } from './uploader.js'
import type { Uploads } from './uploads.js'

/** What clients of the protocol expect. */
const chunkMinBytes = 5_242_880
const chunkMaxBytes = 524_288_000
const chunkDefaultBytes = 25_000_000
const chunksMax = 10_000
const livesMs = 24 * 3600_000

/** An upload without a part takes some hundred bytes. */
const openMax = 10_000
/** Files of all uploads together. */
const filesMax = 500_000
const againMs = 2000
const sweepEveryMs = 10 * 60_000
/** Items put together at once: each takes what a single upload takes. */
const assembliesMax = 2

export interface MultipartParts extends SingleUploadParts {
  readonly acceptor: Acceptor
  readonly uploads: Uploads
  readonly records: MultipartRecords
  readonly files: PartFiles
  /** Bytes of parts of all uploads together. */
  readonly partsMaxBytes: number
  readonly clock: Clock
  readonly say: Log
}

type Stage = 'ASSEMBLING' | 'VALIDATING' | 'FINALIZING'

/** An upload that is not over: its parts, and how far its end has come where it was ordered. */
interface Live {
  readonly chunks: Map<number, number>
  stage: Stage
  attempt?: Promise<UploadAnswer>
  /** Somebody sees to it that it ends, however often that takes. */
  isDriven: boolean
}

/** Items that come in parts, in any order and over several connections, and are put together in the end. */
export class Multipart {
  readonly #live = new Map<string, Live>()
  readonly #slots = FairSlots.unbounded(assembliesMax)
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #sweeping: Timer
  #heldBytes = 0
  #heldFiles = 0

  /** Goes on with what an earlier process left. Throws where the disk refuses. */
  constructor(private readonly parts: MultipartParts) {
    for (const record of parts.records.all()) if (!isOver(record)) this.#adopt(record)
    for (const name of parts.files.uploads()) if (!this.#live.has(name)) this.#removeFiles(name)
    this.#sweep()
    this.#sweeping = parts.clock.every(sweepEveryMs, () => this.#sweep())
    for (const id of this.#live.keys()) {
      const record = parts.records.find(id)
      if (record?.state === 'asked') this.#drive(id, uploaderIn(record))
    }
  }

  #adopt({ id }: MultipartRecord): void {
    const chunks = this.parts.files.parts(id)
    this.#live.set(id, { chunks, stage: 'ASSEMBLING', isDriven: false })
    this.#heldFiles += chunks.size
    for (const bytes of chunks.values()) this.#heldBytes += bytes
  }

  /** A new upload. `wanted`: bytes of its parts, as the client wrote it. */
  create(wanted: string | undefined): UploadAnswer {
    const [min, max] = [chunkMinBytes, chunkMaxBytes]
    const chunkSize = wanted === undefined ? chunkDefaultBytes : Number(wanted)
    if (!Number.isInteger(chunkSize) || chunkSize < min || chunkSize > max)
      return jsonAnswer(400, { error: 'Invalid chunk size', min, max })
    this.#sweep()
    const full = this.parts.full()
    if (full !== undefined) return full
    if (this.#live.size >= openMax && !this.#dropEmpty())
      return textAnswer(503, 'Too many uploads are open', '\r\nRetry-After: 60')
    const id = randomUUID()
    const now = this.parts.clock.now()
    this.parts.records.put({ id, chunkBytes: chunkSize, createdMs: now, changedMs: now, state: 'open' })
    this.#live.set(id, { chunks: new Map(), stage: 'ASSEMBLING', isDriven: false })
    return jsonAnswer(200, { id, min, max, chunkSize }, noStore)
  }

  /** Which parts are here. */
  info(id: string): UploadAnswer {
    const record = this.#find(id)
    if (record === undefined) return unknown(id)
    const chunks = [...(this.#live.get(id)?.chunks ?? [])].sort(([a], [b]) => a - b)
    const failed = record.answer === undefined ? {} : { failedReason: record.state.toUpperCase() }
    const told = { id, min: chunkMinBytes, max: chunkMaxBytes, size: record.chunkBytes, chunks, ...failed }
    return jsonAnswer(200, told, noStore)
  }

  async status(id: string): Promise<UploadAnswer> {
    const record = this.#find(id)
    if (record === undefined) return unknown(id)
    const { state, changedMs: timestamp, answer } = record
    const live = this.#live.get(id)
    const isRunning = live?.attempt !== undefined
    if (state === 'open' || state === 'asked' || isRunning)
      return jsonAnswer(200, { status: live?.stage ?? 'ASSEMBLING', timestamp }, noStore)
    if (state === 'finalized') {
      const receipt = await this.#receipt(record)
      return jsonAnswer(200, { status: 'FINALIZED', timestamp, receipt: receipt.json }, noStore)
    }
    const reason = answer?.text === undefined ? {} : { reason: answer.text }
    return jsonAnswer(200, { status: state.toUpperCase(), timestamp, ...reason }, noStore)
  }

  /** A part. To be called before the handler first waits. */
  chunk(request: Request, id: string, offsetText: string): Promise<UploadAnswer> {
    const early = this.#early(request, id, offsetText)
    if (early !== undefined) return Promise.resolve(early)
    const draft = this.parts.files.draft(id)
    if (isRefusal(draft)) return Promise.resolve(answerOf(draft))
    const size = Number(request.header('content-length'))
    this.#heldBytes += size
    this.#heldFiles += 1
    const arrived = new PartArrival(draft).take(request)
    return this.#follow(this.#keepChunk(id, Number(offsetText), size, arrived))
  }

  /** What the head decides. */
  #early(request: Request, id: string, offsetText: string): UploadAnswer | undefined {
    const record = this.#find(id)
    const live = this.#live.get(id)
    if (record === undefined || live === undefined) return unknown(id)
    if (!isTaking(record, live)) return textAnswer(409, 'The upload is being finalized: no more parts')
    const size = Number(request.header('content-length') ?? 0)
    if (!(size > 0)) return textAnswer(400, 'Invalid chunk: Content-Length must be positive')
    if (size > chunkMaxBytes) return textAnswer(413, `Invalid chunk: larger than ${chunkMaxBytes} bytes`)
    const offset = /^\d{1,15}$/.test(offsetText) ? Number(offsetText) : Number.NaN
    const grid = Math.max(record.chunkBytes, size)
    if (!(offset % grid === 0))
      return textAnswer(400, `Invalid chunk: its offset must be a multiple of ${grid}`)
    if (offset / grid >= chunksMax) return textAnswer(400, `Invalid chunk: more than ${chunksMax} parts`)
    if (offset + size > this.parts.itemMaxBytes) return tooLarge(this.parts.itemMaxBytes)
    if (this.#heldBytes + size > this.parts.partsMaxBytes || this.#heldFiles >= filesMax)
      return textAnswer(503, 'Too many parts wait to be finalized', '\r\nRetry-After: 60')
    return this.parts.full()
  }

  async #keepChunk(
    id: string,
    offset: number,
    size: number,
    arrived: Promise<PartArrival | UploadAnswer>,
  ): Promise<UploadAnswer> {
    const arrival = await arrived
    const counted = (): void => {
      this.#heldBytes -= size
      this.#heldFiles -= 1
    }
    if (!(arrival instanceof PartArrival)) {
      counted()
      return arrival
    }
    const before = this.#find(id)
    const live = this.#live.get(id)
    if (before === undefined || live === undefined || !isTaking(before, live)) {
      counted()
      await arrival.drop()
      return unknown(id)
    }
    const refusal = await arrival.keep(offset)
    await this.parts.records.flushed()
    const record = this.#find(id)
    if (isRefusal(refusal) || record === undefined || !this.#live.has(id)) {
      counted()
      if (record === undefined) this.#removeFiles(id)
      return isRefusal(refusal) ? answerOf(refusal) : unknown(id)
    }
    const replaced = live.chunks.get(offset)
    if (replaced !== undefined) {
      this.#heldBytes -= replaced
      this.#heldFiles -= 1
    }
    live.chunks.set(offset, size)
    if (size > record.chunkBytes) this.parts.records.put({ ...record, chunkBytes: size })
    return { status: 200, text: '' }
  }

  /** Puts it together. `waits`: answers with the receipt; else says that it will be done. */
  async finalize(id: string, uploader: Uploader, waits: boolean): Promise<UploadAnswer> {
    const record = this.#find(id)
    const live = this.#live.get(id)
    if (record === undefined) return unknown(id)
    if (record.state === 'finalized') return this.#receipt(record)
    if (live === undefined) return record.answer ?? said.invalidItem
    const gap = live.attempt === undefined ? gapIn(live.chunks) : undefined
    if (gap !== undefined)
      return textAnswer(400, `The upload is not whole: nothing was sent that begins at byte ${gap}`)
    if (waits) return this.#attempt(id, live, uploader)
    if (!live.isDriven) {
      const { answer: _, ...clean } = record
      this.#put({ ...clean, state: 'asked', uploader })
      this.#drive(id, uploader)
    }
    return textAnswer(202, 'Accepted')
  }

  /** Tries until it is decided. */
  #drive(id: string, uploader: Uploader): void {
    const live = this.#live.get(id)
    if (live === undefined || live.isDriven) return
    live.isDriven = true
    const act = async (): Promise<void> => {
      while (!this.#closing.signal.aborted && this.#live.get(id) === live) {
        const answer = await this.#attempt(id, live, uploader)
        if (outcomeOf(answer) !== undefined) break
        await pause(againMs, this.#closing.signal)
      }
      live.isDriven = false
    }
    void this.#follow(act())
  }

  /** One at a time: who comes while it runs has its answer, too. */
  #attempt(id: string, live: Live, uploader: Uploader): Promise<UploadAnswer> {
    live.attempt ??= this.#follow(this.#slots.run(() => this.#assemble(id, live, uploader))).finally(() => {
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
    const answer = await new Assembly(this.parts).run(paths, uploader, moved('VALIDATING'), {
      onHeld: moved('FINALIZING'),
    })
    const outcome = outcomeOf(answer)
    const record = this.parts.records.find(id)
    if (outcome === undefined || record === undefined) return answer
    const { answer: _, uploader: __, ...clean } = record
    if (outcome === 'finalized') {
      const { id: itemId } = answer.json as { id: MultipartRecord['itemId'] & string }
      this.#put({ ...clean, state: outcome, itemId })
    } else this.#put({ ...clean, state: outcome, answer })
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
  async #receipt({ itemId }: MultipartRecord): Promise<UploadAnswer> {
    const item = itemId === undefined ? undefined : this.parts.uploads.find(itemId)
    if (item === undefined) return said.unknownItem
    return jsonAnswer(200, await this.parts.acceptor.receipt(item))
  }

  #find(id: string): MultipartRecord | undefined {
    if (id.length > 64) return undefined
    const record = this.parts.records.find(id)
    return record === undefined || this.#isExpired(record) ? undefined : record
  }

  #isExpired({ id, createdMs }: MultipartRecord): boolean {
    const live = this.#live.get(id)
    return this.parts.clock.now() - createdMs > livesMs && live?.attempt === undefined
  }

  #put(record: MultipartRecord): void {
    this.parts.records.put({ ...record, changedMs: this.parts.clock.now() })
  }

  /** Makes room for one: the oldest that has no part goes. */
  #dropEmpty(): boolean {
    for (const [id, live] of this.#live) {
      if (live.chunks.size > 0 || live.attempt !== undefined || live.isDriven) continue
      this.#forget(id)
      this.parts.records.remove([id])
      this.#removeFiles(id)
      return true
    }
    return false
  }

  #sweep(): void {
    const expired = this.parts.records.all().filter((record) => this.#isExpired(record))
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
    this.#heldFiles -= live.chunks.size
    for (const bytes of live.chunks.values()) this.#heldBytes -= bytes
    this.#live.delete(id)
  }

  #removeFiles(id: string): void {
    const told = (error: unknown): void => this.parts.say.error({ err: error }, 'parts could not be removed')
    void this.#follow(this.parts.files.remove(id).catch(told))
  }

  #follow<T>(work: Promise<T>): Promise<T> {
    const over = (): void => void this.#underWay.delete(settled)
    const settled: Promise<void> = work.then(over, over)
    this.#underWay.add(settled)
    return work
  }

  /** Resolves when nothing is under way any more; what is not over goes on after a restart. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#sweeping.cancel()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }
}

const noStore = '\r\nCache-Control: no-store'

function unknown(id: string): UploadAnswer {
  return textAnswer(404, `Multi-part upload with ID ${id.slice(0, 64)} not found!`)
}

function isOver({ state }: MultipartRecord): boolean {
  return state === 'finalized' || state === 'invalid'
}

function isTaking({ state }: MultipartRecord, { attempt }: Live): boolean {
  return state === 'open' && attempt === undefined
}

function uploaderIn({ uploader }: MultipartRecord): Uploader {
  // What is undefined is not written down.
  return { range: undefined, token: undefined, paidBy: [], ...uploader }
}

/** The first byte that no part has, where something lies behind it; 0 where there is no part. */
function gapIn(chunks: ReadonlyMap<number, number>): number | undefined {
  let end = 0
  for (const [offset, size] of [...chunks].sort(([a], [b]) => a - b)) {
    if (offset !== end) return end
    end += size
  }
  return end === 0 ? 0 : undefined
}

/** What an answer decides; undefined: nothing, it may be tried again. */
function outcomeOf({ status }: UploadAnswer): 'finalized' | 'underfunded' | 'invalid' | undefined {
  if (status === 200 || status === 202) return 'finalized'
  if (status === 402) return 'underfunded'
  return status >= 400 && status < 500 ? 'invalid' : undefined
}
