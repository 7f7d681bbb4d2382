import { Overtaken } from '../../cluster/engine-away.js'
import { isRefusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import {
  fixedAnswers,
  jsonAnswer,
  refusalAnswer,
  textAnswer,
  tooLarge,
  type UploadAnswer,
} from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import { chunkBytes, readChunkBytes } from './chunk-sizes.js'
import { gapIn, type LiveUpload, partsKept } from './live-uploads.js'
import { isOver, isUndecided, type MultipartRecord } from './multipart-record.js'
import type { OpenUploads } from './open-uploads.js'
import type { PaidParts, UploadBeginnings } from './paid-parts.js'
import { PartArrival } from './part-arrival.js'
import { waitingRequest } from './waiting-request.js'

const chunksMax = 10_000

/** Items that come in parts, in any order and over several connections, and are put together in the end. */
export class Multipart {
  /** `paid` absent: no upload is paid for at its beginning. */
  constructor(
    private readonly open: OpenUploads,
    private readonly paid?: PaidParts,
  ) {}

  /** A new upload. `client`: whose share of the disk it takes. */
  async create(request: Request, client: string | undefined): Promise<UploadAnswer> {
    const begin: UploadBeginnings['begin'] = (terms) =>
      this.open.begin({ ...terms, ...(client === undefined ? {} : { client }) })
    const paid = await this.paid?.create(request, { client, begin, open: this.open })
    if (paid !== undefined) return paid
    const { min, max } = chunkBytes
    const chunkSize = readChunkBytes(new URLSearchParams(request.query).get('chunkSize'))
    if (chunkSize === undefined) return jsonAnswer(400, { error: 'Invalid chunk size', min, max })
    const begun = begin({ chunkBytes: chunkSize })
    if ('status' in begun) return begun
    await this.open.begun(begun)
    return jsonAnswer(200, { id: begun.id, min, max, chunkSize }, noStore)
  }

  #find(id: string): MultipartRecord | undefined {
    const record = this.open.find(id)
    return record?.appended === undefined ? record : undefined
  }

  /** Which parts are here. */
  async info(id: string): Promise<UploadAnswer> {
    await this.open.load(id)
    const record = this.#find(id)
    if (record === undefined) return unknown(id)
    const chunks = [...(this.open.live(id)?.chunks ?? [])].sort(([a], [b]) => a - b)
    const failed = record.answer === undefined ? {} : { failedReason: record.state.toUpperCase() }
    const fields = {
      id,
      min: chunkBytes.min,
      max: chunkBytes.max,
      size: record.chunkBytes,
      chunks,
      ...failed,
    }
    return jsonAnswer(200, fields, noStore)
  }

  async status(id: string): Promise<UploadAnswer> {
    await this.open.load(id)
    const record = this.#find(id)
    if (record === undefined) return unknown(id)
    const { state, changedMs: timestamp, answer } = record
    const live = this.open.live(id)
    const isRunning = live?.attempt !== undefined || live?.isElsewhere === true
    // An attempt here may not know yet that another machine was faster.
    if (!isOver(record) && (state === 'open' || state === 'asked' || isRunning))
      return jsonAnswer(200, { status: live?.stage ?? 'ASSEMBLING', timestamp }, noStore)
    if (state === 'finalized') {
      const receipt = await this.open.receipt(record)
      return jsonAnswer(200, { status: 'FINALIZED', timestamp, receipt: receipt.json }, noStore)
    }
    const reason = answer?.text === undefined ? {} : { reason: answer.text }
    return jsonAnswer(200, { status: state.toUpperCase(), timestamp, ...reason }, noStore)
  }

  /** A part. To be called before the handler first waits. */
  chunk(request: Request, id: string, offsetText: string): Promise<UploadAnswer> {
    const loading = this.open.load(id)
    if (loading === undefined) return this.#chunk(request, id, offsetText)
    const waiting = waitingRequest(request)
    return this.open.track(loading.then(() => this.#chunk(waiting, id, offsetText)))
  }

  #chunk(request: Request, id: string, offsetText: string): Promise<UploadAnswer> {
    const early = this.#early(request, id, offsetText)
    if ('status' in early) return Promise.resolve(early)
    const draft = this.open.files.draft(id)
    if (isRefusal(draft)) return Promise.resolve(refusalAnswer(draft))
    const arrived = new PartArrival(draft, (bytes, files) => this.open.occupy(early, bytes, files)).take(
      request,
    )
    return this.open.track(this.#keepChunk(id, early, Number(offsetText), arrived))
  }

  /** What the head decides. */
  #early(request: Request, id: string, offsetText: string): UploadAnswer | LiveUpload {
    const { itemMaxBytes } = this.open
    const record = this.#find(id)
    const live = this.open.live(id)
    if (record === undefined || live === undefined) return this.#noPart(id)
    if (isUndecided(record.paid)) return textAnswer(402, 'The upload is not paid for yet')
    if (!isTaking(record, live)) return noMoreParts
    const size = Number(request.header('content-length') ?? 0)
    if (!(size > 0)) return textAnswer(400, 'Invalid chunk: Content-Length must be positive')
    if (size > chunkBytes.max) return textAnswer(413, `Invalid chunk: larger than ${chunkBytes.max} bytes`)
    const offset = /^\d{1,15}$/.test(offsetText) ? Number(offsetText) : Number.NaN
    const grid = Math.max(record.chunkBytes, size)
    if (!(offset % grid === 0))
      return textAnswer(400, `Invalid chunk: its offset must be a multiple of ${grid}`)
    if (offset / grid >= chunksMax) return textAnswer(400, `Invalid chunk: more than ${chunksMax} parts`)
    if (offset + size > itemMaxBytes) return tooLarge(itemMaxBytes)
    const { paid } = record
    if (paid !== undefined && offset + size > paid.bytes)
      return textAnswer(400, `Invalid chunk: beyond the ${paid.bytes} bytes that were paid for`)
    return this.open.foresee(live, size) ?? live
  }

  /** The answer to a part that has no upload to go to any more. */
  #noPart(id: string): UploadAnswer {
    return this.#find(id) === undefined ? unknown(id) : noMoreParts
  }

  async #keepChunk(
    id: string,
    live: LiveUpload,
    offset: number,
    arrived: Promise<PartArrival | UploadAnswer>,
  ): Promise<UploadAnswer> {
    const arrival = await arrived
    if (!(arrival instanceof PartArrival)) return arrival
    const before = this.#find(id)
    if (before === undefined || this.open.live(id) !== live || !isTaking(before, live)) {
      await arrival.drop()
      return this.#noPart(id)
    }
    const kept = this.#store(id, live, offset, arrival)
    live.keeping.add(kept)
    return kept.finally(() => live.keeping.delete(kept))
  }

  async #store(id: string, live: LiveUpload, offset: number, arrival: PartArrival): Promise<UploadAnswer> {
    const refusal = await arrival.keep(offset)
    await this.open.flushed(id)
    const record = this.#find(id)
    const isHere = record !== undefined && this.open.live(id) === live
    const { sizeBytes, isPlaced } = arrival
    // The sizes that are known are those of what lies there, whatever the answer is: the end reads it.
    if (isHere && (!isRefusal(refusal) || isPlaced)) {
      this.open.partStored(live, offset, sizeBytes)
      if (sizeBytes > record.chunkBytes) this.open.put({ ...record, chunkBytes: sizeBytes })
    } else this.open.tidy(id)
    if (isRefusal(refusal)) return refusalAnswer(refusal)
    return isHere ? { status: 200, text: '' } : this.#noPart(id)
  }

  /** Assembles the item. `waits`: answers with the receipt; else with 202 at once. */
  async finalize(id: string, uploader: Uploader, waits: boolean): Promise<UploadAnswer> {
    try {
      return await this.#finalize(id, uploader, waits)
    } catch (error) {
      // Another machine has begun with its end in the same moment: that is known now.
      if (error instanceof Overtaken) return this.#finalize(id, uploader, waits)
      throw error
    }
  }

  async #finalize(id: string, uploader: Uploader, waits: boolean): Promise<UploadAnswer> {
    await this.open.load(id)
    const before = this.open.live(id)
    const kept = before && partsKept(before)
    if (kept !== undefined) await kept
    const record = this.#find(id)
    const live = this.open.live(id)
    if (record === undefined) return unknown(id)
    if (record.state === 'finalized') return this.open.receipt(record)
    if (live === undefined) return record.answer ?? fixedAnswers.invalidItem
    const gap = live.attempt === undefined ? gapIn(live.chunks) : undefined
    if (gap !== undefined)
      return textAnswer(400, `The upload is not whole: nothing was sent that begins at byte ${gap}`)
    if (waits) return this.open.finish(id, live, uploader)
    if (!live.isDriven && !live.isElsewhere) {
      const { answer: _, ...clean } = record
      this.open.put({ ...clean, state: 'asked', uploader })
      await this.open.flushed(id)
      this.open.finishUntilDecided(id, uploader)
    }
    return textAnswer(202, 'Accepted')
  }
}

const noStore = '\r\nCache-Control: no-store'
/** A client that has all its parts here may order the end, or has the receipt by it. */
const noMoreParts = textAnswer(409, 'The upload is being finalized, or is over: no more parts')

function unknown(id: string): UploadAnswer {
  return textAnswer(404, `Multi-part upload with ID ${id.slice(0, 64)} not found!`)
}

function isTaking({ state }: MultipartRecord, { attempt, isElsewhere }: LiveUpload): boolean {
  return state === 'open' && attempt === undefined && !isElsewhere
}
