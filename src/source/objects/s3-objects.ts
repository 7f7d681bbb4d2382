import { Readable } from 'node:stream'
import type { Clock } from '../../actor/clock.js'
import type { Requester } from '../../actor/requester.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { bytesPerSecondMin } from '../../http/sender-pace.js'
import type { Window } from '../source-messages.js'
import type { UpstreamAnswer } from '../upstream/upstream-answer.js'
import { UpstreamClient } from '../upstream/upstream-client.js'
import {
  faultOf,
  type LargeContent,
  type ObjectBody,
  type ObjectContent,
  type ObjectHead,
  type ObjectPage,
  type ObjectStore,
} from './object-store.js'
import type { CredentialsFile } from './s3-credentials.js'
import { errorMaxBytes, gathered, listMaxBytes } from './s3-documents.js'
import { S3Parts } from './s3-parts.js'
import {
  errorCode,
  headOf,
  keysOfList,
  partOf,
  refusalOfStatus,
  type S3Credentials,
  type S3Place,
  type S3Request,
  S3Signer,
} from './s3-requests.js'

export interface S3Options extends S3Place {
  readonly credentials: S3Credentials | CredentialsFile
  /** To the head of an answer, connecting included; of a PUT besides what its bytes take. */
  readonly headMs: number
  /** A body that is silent for so long, or too slow in the long run, is given up. */
  readonly stallMs: number
  readonly connectionsMax: number
  /** A PUT may be this slow; absent: as slow as a full line to a busy store, on which nobody waits. */
  readonly sentBytesPerSecondMin?: number
}

/** What a full line to a busy store still does. */
const usualSentBytesPerSecondMin = 16 * bytesPerSecondMin

/**
 * Objects in a bucket of an S3 service, addressed by path (`ENDPOINT/BUCKET/KEY`). Where the service says that this machine's
 * clock is wrong, its time is used from then on.
 */
export class S3Objects implements ObjectStore {
  readonly #client: UpstreamClient
  readonly #signer: S3Signer
  readonly #parts: S3Parts
  /** The service has refused this machine's time. */
  #usesTheirTime = false
  /** Time of the service by its last answer, less the monotonic clock: this machine's time of day may be set meanwhile. */
  #theirsMs: number | undefined

  constructor(
    private readonly options: S3Options,
    private readonly clock: Clock,
  ) {
    this.#client = new UpstreamClient(options, clock)
    const { credentials } = options
    this.#signer = new S3Signer(options, () => ('current' in credentials ? credentials.current : credentials))
    this.#parts = new S3Parts((request, signal, content, moreMs) =>
      this.#ask(request, signal, content, moreMs),
    )
  }

  get aheadMs(): number {
    return this.#theirsMs === undefined ? 0 : this.clock.monotonic() + this.#theirsMs - this.clock.now()
  }

  async get(key: string, window: Window | undefined, { signal }: Requester): Promise<ObjectBody | Refusal> {
    const range = window === undefined ? {} : { headers: { range: `bytes=${window.start}-${window.end}` } }
    const answer = await this.#ask({ method: 'GET', key, ...range }, signal)
    if (isRefusal(answer)) return answer
    const head = headOf(answer.headers, window !== undefined)
    const part = window === undefined ? undefined : partOf(answer.headers)
    const isWanted =
      window === undefined
        ? answer.statusCode === 200
        : answer.statusCode === 206 && part?.start === window.start && part.end <= window.end
    if (head !== undefined && isWanted)
      return { ...head, ...(part === undefined ? {} : { part }), body: answer, drop: () => answer.drop() }
    answer.drop()
    return refuse('upstream', 'upstream', 'the object store answered with other bytes than those requested')
  }

  async head(key: string, signal: AbortSignal): Promise<ObjectHead | Refusal> {
    const answer = await this.#ask({ method: 'HEAD', key }, signal)
    if (isRefusal(answer)) return answer
    answer.drop()
    return (
      headOf(answer.headers, false) ??
      refuse('upstream', 'upstream', 'the object store does not say how long an object is')
    )
  }

  async put(key: string, content: ObjectContent, { signal }: Requester): Promise<'put' | 'exists' | Refusal> {
    const { contentType, metadata = {}, isNew, sizeBytes, sha256 } = content
    const headers = {
      'content-length': String(sizeBytes),
      'content-type': contentType ?? 'application/octet-stream',
      ...(isNew === true ? { 'if-none-match': '*' } : {}),
      ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`x-amz-meta-${name}`, value])),
    }
    const answer = await this.#ask({ method: 'PUT', key, headers, sha256 }, signal, content)
    if (answer === 'exists' || isRefusal(answer)) return answer
    this.#seeTime(answer)
    answer.drop()
    return 'put'
  }

  async putLarge(key: string, content: LargeContent, signal: AbortSignal): Promise<'put' | Refusal> {
    return this.#parts.put(key, content, signal)
  }

  async dropParts(
    prefix: string,
    isLeft: (key: string) => boolean,
    signal: AbortSignal,
  ): Promise<number | Refusal> {
    return this.#parts.drop(prefix, isLeft, signal)
  }

  async list(prefix: string, after: string | undefined, signal: AbortSignal): Promise<ObjectPage | Refusal> {
    const query = {
      'encoding-type': 'url',
      'list-type': '2',
      prefix,
      ...(after === undefined ? {} : { 'start-after': after }),
    }
    const answer = await this.#ask({ method: 'GET', query }, signal)
    if (isRefusal(answer)) return answer
    this.#seeTime(answer)
    const document = await gathered(answer, listMaxBytes)
    return isRefusal(document) ? document : keysOfList(document.toString('utf8'))
  }

  async remove(key: string, signal: AbortSignal): Promise<'removed' | Refusal> {
    const answer = await this.#ask({ method: 'DELETE', key }, signal)
    if (isRefusal(answer)) return answer.refused === 'unknown' ? 'removed' : answer
    answer.drop()
    return 'removed'
  }

  async close(): Promise<void> {
    await this.#client.close()
  }

  async #ask(request: S3Request, signal: AbortSignal): Promise<UpstreamAnswer | Refusal>
  async #ask(
    request: S3Request,
    signal: AbortSignal,
    content: ObjectContent | undefined,
    moreMs?: number,
  ): Promise<UpstreamAnswer | 'exists' | Refusal>
  async #ask(
    request: S3Request,
    signal: AbortSignal,
    content?: ObjectContent,
    moreMs = 0,
  ): Promise<UpstreamAnswer | 'exists' | Refusal> {
    for (let isAgain = false; ; isAgain = true) {
      const { path, headers } = this.#signer.sign(
        request,
        this.clock.now() + (this.#usesTheirTime ? this.aheadMs : 0),
      )
      const { headMs, endpoint, sentBytesPerSecondMin = usualSentBytesPerSecondMin } = this.options
      const body = content === undefined ? {} : { body: () => bodyOf(content) }
      const sendMs = ((content?.sizeBytes ?? 0) / sentBytesPerSecondMin) * 1000 + moreMs
      const { method } = request
      const upstreamRequest = {
        method,
        path,
        headers,
        headMs: headMs + sendMs,
        isKept: true,
        ...body,
      } as const
      // The path is signed as a whole, that of the endpoint included.
      const answer = await this.#client.request(new URL(endpoint).origin, upstreamRequest, signal)
      if (isRefusal(answer)) return hidden(answer)
      if (answer.statusCode >= 200 && answer.statusCode < 300) return answer
      if (answer.statusCode === 412 && content?.isNew === true) {
        answer.drop()
        return 'exists'
      }
      const refusal = await this.#refused(request, answer)
      if (isAgain || !this.#isMended(refusal, answer)) return refusal
    }
  }

  async #refused({ method }: S3Request, answer: UpstreamAnswer): Promise<Refusal> {
    const document = method === 'HEAD' ? undefined : await gathered(answer, errorMaxBytes)
    if (document === undefined) answer.drop()
    const code = document === undefined || isRefusal(document) ? undefined : errorCode(document)
    return refusalOfStatus(answer.statusCode, code)
  }

  /** Whether there is hope for the same request once more: with the time of the service, or with credentials that are new. */
  #isMended(refusal: Refusal, answer: UpstreamAnswer): boolean {
    const { credentials } = this.options
    const fault = faultOf(refusal)
    if (fault === 'clock') return this.#takeTime(answer)
    return fault === 'credentials' && 'current' in credentials && credentials.renew()
  }

  /** Takes over the time that an answer states; false where it states none. */
  #takeTime(answer: UpstreamAnswer): boolean {
    if (!this.#seeTime(answer)) return false
    this.#usesTheirTime = true
    return true
  }

  #seeTime({ headers }: UpstreamAnswer): boolean {
    const theirs = Date.parse(typeof headers.date === 'string' ? headers.date : '')
    if (Number.isNaN(theirs)) return false
    this.#theirsMs = theirs - this.clock.monotonic()
    return true
  }
}

/** A refusal of the line without the address, which readers need not see. */
function hidden(refusal: Refusal): Refusal {
  if (refusal.refused === 'late') return { ...refusal, message: 'the object store did not answer in time' }
  return { ...refusal, message: 'the object store cannot be reached' }
}

function bodyOf({ bytes, sizeBytes }: ObjectContent): Uint8Array | Readable {
  if (sizeBytes === 0) return new Uint8Array(0)
  const made = bytes()
  const [only, ...more] = Array.isArray(made) ? (made as readonly Uint8Array[]) : []
  if (only !== undefined && more.length === 0) return only
  return Readable.from(made, { objectMode: false })
}
