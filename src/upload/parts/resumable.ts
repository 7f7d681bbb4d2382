import type { Clients } from '../../admission/clients.js'
import { bareType, unknownType } from '../../format/media-type.js'
import type { Reply, Request } from '../../http/exchange.js'
import { DigestCheck, sentDigests, wholeDigestIn } from '../intake/sent-digests.js'
import type { SingleUpload } from '../intake/single-upload.js'
import {
  fixedAnswers,
  jsonAnswer,
  textAnswer,
  tooLarge,
  type UploadAnswer,
} from '../requests/upload-answers.js'
import { type Uploader, uploaderOf } from '../requests/uploader.js'
import { AppendArrival, type Appended } from './append-arrival.js'
import {
  type AppendFields,
  appendFields,
  appendLines,
  appendProblem,
  isTyped,
  partialType,
} from './append-fields.js'
import type { LiveUpload } from './live-uploads.js'
import { type MultipartRecord, uploadLivesMs } from './multipart-record.js'
import type { OpenUploads } from './open-uploads.js'
import { outcomeOf, uploaderIn } from './upload-outcome.js'

/** Requests that bring bytes, of one upload: each becomes a file. */
const appendsMax = 10_000

type Informed = Pick<Reply, 'inform'>

/** One request that appends, from its head on. */
interface Append {
  readonly fields: AppendFields
  readonly arrival: AppendArrival
  readonly reply: Informed
  readonly uploader: Uploader
  /** Where the upload is from now on, where this request makes it. */
  readonly location?: string
}

/**
 * Uploads that resume after an interruption (draft-ietf-httpbis-resumable-upload). Their bytes come in order, in any number of
 * requests, and together are a signed item.
 */
export class ResumableUploads {
  /** What brings bytes of an upload just now: one request at most, the last that came. */
  readonly #arriving = new Map<string, AppendArrival>()

  constructor(
    private readonly open: OpenUploads,
    private readonly single: Pick<SingleUpload, 'receive'>,
    private readonly clients: Clients,
  ) {}

  /** Lines for answers to OPTIONS. */
  get optionLines(): string {
    const limits = appendLines({ version: undefined }, this.#limits())
    return `\r\nAccept-Patch: ${partialType}${limits}`
  }

  /** The limits, for programs that query them. */
  about(): object {
    const { maxBytes, livesSeconds } = this.#limits()
    const protocol = 'draft-ietf-httpbis-resumable-upload'
    return { protocol, limits: { maxSizeBytes: maxBytes, maxAgeSeconds: livesSeconds } }
  }

  #limits(record?: MultipartRecord): { readonly maxBytes: number; readonly livesSeconds: number } {
    const endMs = record === undefined ? uploadLivesMs : record.createdMs + uploadLivesMs - this.open.now()
    return { maxBytes: this.open.itemMaxBytes, livesSeconds: Math.max(0, Math.floor(endMs / 1000)) }
  }

  /** Begins an upload; `below`: path of uploads. One that cannot be resumed is a single upload. Before the handler waits. */
  create(request: Request, reply: Informed, below: string): UploadAnswer | Promise<UploadAnswer> {
    const fields = appendFields(request)
    const uploader = uploaderOf(request, this.clients, undefined)
    if (fields.isLast === undefined) return this.single.receive(request, uploader)
    const type = request.header('content-type')
    if (type !== undefined && ![unknownType, partialType].includes(bareType(type)))
      return fixedAnswers.contentType
    const refused = this.#unfit(fields, 0, undefined)
    if (refused !== undefined) return refused
    const { address: client } = uploader
    const digest = wholeDigestIn(request, 'repr-digest')
    const begun = this.open.begin({
      chunkBytes: 0,
      uploader,
      appended: { ...termsOf(lengthIn(fields, 0)), ...(digest === undefined ? {} : { digest }) },
      ...(client === undefined ? {} : { client }),
    })
    if ('status' in begun) return begun
    const arrival = new AppendArrival(checkOf(request))
    arrival.begin(request)
    this.#arriving.set(begun.id, arrival)
    const append = { fields, arrival, reply, uploader, location: `${below}/${begun.id}` }
    return this.open.track(this.#begun(begun, append))
  }

  async #begun(record: MultipartRecord, append: Append): Promise<UploadAnswer> {
    // An offset that the client gets must survive a power cut.
    await this.open.begun(record).catch((error: unknown) => {
      void append.arrival.stop()
      throw error
    })
    const { fields, location = '' } = append
    this.#inform(append, { location, ...this.#limits(record) })
    const live = this.open.live(record.id)
    return live === undefined ? unknown : this.#take(record.id, live, append, lengthIn(fields, 0))
  }

  #inform({ fields, reply }: Append, state: Parameters<typeof appendLines>[1]): void {
    if (fields.isInformed) reply.inform({ status: 104, block: appendLines(fields, state).slice(2) })
  }

  /** More bytes. Before the handler waits. */
  append(request: Request, reply: Informed, id: string): UploadAnswer | Promise<UploadAnswer> {
    const fields = appendFields(request)
    const type = request.header('content-type')
    // Checked twice where another request is under way, so that a client who waits for "100 Continue" is answered in time.
    const isKnown = !this.#arriving.has(id) && !this.open.isShared
    const refused = isKnown ? this.#refusal(id, fields, type) : undefined
    if (refused !== undefined) return refused
    const arrival = new AppendArrival(checkOf(request))
    arrival.begin(request)
    const uploader = uploaderOf(request, this.clients, undefined)
    return this.open.track(this.#append(id, { fields, arrival, reply, uploader }, type))
  }

  async #append(id: string, append: Append, type: string | undefined): Promise<UploadAnswer> {
    const { fields, arrival } = append
    await this.#alone(id)
    await this.#load(id, arrival)
    const [refused, record, live] = [this.#refusal(id, fields, type), this.open.find(id), this.open.live(id)]
    if (refused !== undefined || record === undefined || live === undefined) {
      void arrival.stop()
      return refused ?? unknown
    }
    this.#arriving.set(id, arrival)
    const length = lengthIn(fields, offsetOf(live)) ?? record.appended?.lengthBytes
    if (length !== record.appended?.lengthBytes)
      this.open.put({ ...record, appended: { ...record.appended, ...termsOf(length) } })
    return this.#take(id, live, append, length)
  }

  /** Reads it as it is now. Requests of it on other machines bring nothing more: their client has given them up. */
  async #load(id: string, arrival?: AppendArrival): Promise<void> {
    try {
      await this.open.load(id, true)
    } catch (error) {
      void arrival?.stop()
      throw error
    }
  }

  /** Ends the request that brings bytes of this upload: its client has given it up, or it would not send another. */
  async #alone(id: string): Promise<void> {
    for (let other = this.#arriving.get(id); other !== undefined; other = this.#arriving.get(id)) {
      await other.stop()
      // The one that was stopped may leave a turn later.
      if (this.#arriving.get(id) === other) this.#arriving.delete(id)
    }
  }

  /** What the head decides. */
  #refusal(id: string, fields: AppendFields, type: string | undefined): UploadAnswer | undefined {
    const record = this.#find(id)
    if (record === undefined) return unknown
    const live = this.open.live(id)
    const offset = live === undefined ? (record.appended?.lengthBytes ?? 0) : offsetOf(live)
    if (isTyped(fields) && bareType(type ?? '') !== partialType)
      return textAnswer(
        415,
        `Appended bytes have the type ${partialType}`,
        `\r\nAccept-Patch: ${partialType}`,
      )
    if (fields.isLast === undefined) return textAnswer(400, 'Upload-Complete must be ?0 or ?1')
    if (fields.offset === undefined) return textAnswer(400, 'Upload-Offset must be a number of bytes')
    const isEmpty = fields.contentBytes === 0
    if (record.state !== 'open' || live === undefined) {
      // Nobody paid for it: an empty request tries again.
      if (record.state === 'underfunded' && isEmpty && fields.isLast && fields.offset === offset)
        return undefined
      const kind = isEmpty ? 'completed-upload' : 'inconsistent-upload-length'
      return appendProblem(400, kind, appendLines(fields, { isWhole: true, offset }))
    }
    if (fields.offset !== offset) {
      const members = { 'expected-offset': offset, 'provided-offset': fields.offset }
      const lines = appendLines(fields, { isWhole: false, offset })
      return appendProblem(409, 'mismatching-upload-offset', lines, members)
    }
    if (live.chunks.size >= appendsMax && !isEmpty)
      return textAnswer(400, `More than ${appendsMax} requests: send more with each`)
    return (
      this.#unfit(fields, offset, record.appended?.lengthBytes) ??
      this.open.foresee(live, fields.contentBytes ?? 0)
    )
  }

  /** Undefined: the announced lengths agree, and are within the limit. */
  #unfit(fields: AppendFields, offset: number, known: number | undefined): UploadAnswer | undefined {
    const { isLast, contentBytes, length } = fields
    const end = contentBytes === undefined ? undefined : offset + contentBytes
    const lengths = [known, length, isLast ? end : undefined].filter((one) => one !== undefined)
    const lines = appendLines(fields, { isWhole: false, offset })
    if (new Set(lengths).size > 1 || (lengths[0] !== undefined && (end ?? offset) > lengths[0]))
      return appendProblem(400, 'inconsistent-upload-length', lines)
    const { itemMaxBytes } = this.open
    if ((lengths[0] ?? end ?? offset) <= itemMaxBytes) return undefined
    return { ...tooLarge(itemMaxBytes), lines: appendLines(fields, this.#limits()) }
  }

  #find(id: string): MultipartRecord | undefined {
    const record = this.open.find(id)
    return record?.appended === undefined ? undefined : record
  }

  async #take(
    id: string,
    live: LiveUpload,
    append: Append,
    length: number | undefined,
  ): Promise<UploadAnswer> {
    const { arrival, fields, location } = append
    const offset = offsetOf(live)
    const appended = await arrival.into({
      files: this.open.files,
      upload: id,
      offset,
      maxBytes: (length ?? this.open.itemMaxBytes) - offset,
      hold: (bytes, files) => this.open.occupy(live, bytes, files),
      kept: (at, size) => {
        if (this.open.live(id) !== live) this.open.occupy(live, -size, -1)
        else {
          this.open.partStored(live, at, size)
          this.#inform(append, { offset: at + size })
        }
      },
    })
    if (this.#arriving.get(id) === arrival) this.#arriving.delete(id)
    if (appended.isWrong) await this.open.retract(id, live, offset)
    const record = this.#find(id)
    if (record === undefined || this.open.live(id) !== live) {
      this.open.tidy(id)
      return unknown
    }
    return (
      this.#stopped(record, live, append, appended, length) ??
      (fields.isLast
        ? this.#finish(record, live, append)
        : {
            status: location === undefined ? 204 : 201,
            lines: appendLines(fields, this.#progress(record, live, location)),
          })
    )
  }

  #progress(record: MultipartRecord, live: LiveUpload, location?: string): Parameters<typeof appendLines>[1] {
    const place = location === undefined ? {} : { location }
    return { isWhole: false, offset: offsetOf(live), ...this.#limits(record), ...place }
  }

  /** The answer to a request whose body did not end properly; undefined: all of it is here. */
  #stopped(
    record: MultipartRecord,
    live: LiveUpload,
    { fields, location }: Append,
    { failed, exceeds }: Appended,
    length: number | undefined,
  ): UploadAnswer | undefined {
    const lines = appendLines(fields, this.#progress(record, live, location))
    if (exceeds) {
      this.open.drop(record.id)
      const limits = appendLines(fields, this.#limits())
      if (length === undefined) return { ...tooLarge(this.open.itemMaxBytes), lines: limits }
      return appendProblem(400, 'inconsistent-upload-length', limits)
    }
    if (failed !== undefined) return { ...failed, lines: (failed.lines ?? '') + lines }
    const isShort = fields.isLast && length !== undefined && offsetOf(live) !== length
    return isShort ? appendProblem(400, 'inconsistent-upload-length', lines) : undefined
  }

  /** The last byte is here: the result is the answer to the whole upload. */
  async #finish(record: MultipartRecord, live: LiveUpload, append: Append): Promise<UploadAnswer> {
    const { fields, location, uploader: own } = append
    const { paidBy, ...known } = uploaderIn(record)
    const uploader = { ...known, paidBy: own.paidBy.length > 0 ? own.paidBy : paidBy }
    const offset = offsetOf(live)
    const { answer: _, ...clean } = record
    this.open.put({ ...clean, state: 'asked', uploader, appended: { ...clean.appended, ...termsOf(offset) } })
    await this.open.flushed(record.id)
    const answer = await this.open.finish(record.id, live, uploader)
    // The client has done its part: what failed for a reason of ours is tried again without it.
    if (outcomeOf(answer) === undefined) this.open.finishUntilDecided(record.id, uploader)
    const place = location === undefined ? {} : { location }
    return {
      ...answer,
      lines: (answer.lines ?? '') + appendLines(fields, { isWhole: true, offset, ...place }),
    }
  }

  /** How far it is; for HEAD in header lines alone. A HEAD ends the request that brings bytes: its client goes on from here. */
  async state(request: Request, id: string): Promise<UploadAnswer> {
    const { method } = request
    const fields = appendFields(request)
    if (method === 'HEAD') await this.#alone(id)
    await this.open.load(id, method === 'HEAD')
    const record = this.#find(id)
    if (record === undefined) return unknown
    const live = this.open.live(id)
    const length = record.appended?.lengthBytes
    const offset = live === undefined ? (length ?? 0) : offsetOf(live)
    const isWhole = record.state !== 'open'
    const limits = this.#limits(record)
    const lines = `${appendLines(fields, { isWhole, offset, length, ...limits })}\r\nCache-Control: no-store`
    if (method === 'HEAD') return { status: 204, lines }
    const receipt = record.state === 'finalized' ? { receipt: (await this.open.receipt(record)).json } : {}
    const reason = record.answer?.text === undefined ? {} : { reason: record.answer.text }
    const expires = new Date(record.createdMs + uploadLivesMs).toISOString()
    return jsonAnswer(200, { id, state: record.state, offset, length, expires, ...reason, ...receipt }, lines)
  }

  /** Nobody wants it any more. */
  async cancel(id: string): Promise<UploadAnswer> {
    await this.#alone(id)
    await this.#load(id)
    if (this.#find(id) === undefined) return unknown
    const live = this.open.live(id)
    if (live?.attempt !== undefined || live?.isElsewhere === true)
      return textAnswer(409, 'The item is being taken: it cannot be cancelled any more')
    this.open.drop(id)
    if (this.open.isShared) await this.open.flushed(id)
    return { status: 204 }
  }
}

const unknown = textAnswer(404, 'There is no such upload: it was never begun, was cancelled, or has expired')

/** Bytes that are on disk for good, one behind the other. */
function offsetOf({ chunks }: LiveUpload): number {
  let end = 0
  for (const [offset, size] of chunks) end = Math.max(end, offset + size)
  return end
}

/** Bytes of the whole item, as far as a request states them (section 4.1.3 of the draft). */
function lengthIn({ isLast, contentBytes, length }: AppendFields, offset: number): number | undefined {
  return length ?? (isLast && contentBytes !== undefined ? offset + contentBytes : undefined)
}

/** A check of the digests that the request states for its own bytes; undefined: it states none. */
function checkOf(request: Request): DigestCheck | undefined {
  const wanted = sentDigests(request.header('content-digest'))
  return wanted.length === 0 ? undefined : new DigestCheck(wanted)
}

function termsOf(lengthBytes: number | undefined): NonNullable<MultipartRecord['appended']> {
  return lengthBytes === undefined ? {} : { lengthBytes }
}
