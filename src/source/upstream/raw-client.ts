import type { Clock } from '../../actor/clock.js'
import { type AnySignal, LazySignal } from '../../actor/lazy-signal.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { isUnsureAbsence } from '../../format/unsure-absence.js'
import type { Writable } from '../../format/writable.js'
import { unknownEverywhere, unknownForNow } from '../refusals.js'
import type { Found, Wanted } from '../source.js'
import type { Window } from '../source-messages.js'
import { openEnd, windowIn } from '../window-in.js'
import { cut } from './cut.js'
import {
  type HeaderLines,
  hintHeaders,
  isUsual,
  type OwnName,
  readAnswerHeaders,
  trailHeaders,
  wantedLines,
} from './gateway-headers.js'
import type { TakePlace } from './take-place.js'
import type { TrailRules } from './trail.js'
import type { UpstreamAnswer } from './upstream-answer.js'
import { UpstreamClient } from './upstream-client.js'

export interface RawOptions extends TrailRules {
  /** To the answer's head, connecting included. */
  readonly headMs: number
  /** A body that is silent for so long, or too slow in the long run, is given up. */
  readonly stallMs: number
  readonly release: string
  /** Sockets kept to one gateway. */
  readonly connectionsMax: number
  /** A file of certificates that servers are checked against, beside those of Node (NODE_EXTRA_CA_CERTS). */
  readonly authoritiesFile?: string
}

/** A payload on its way from a gateway. */
export interface RawFound extends Found {
  /** The gateway says that it verified or trusts what it sends. */
  readonly vouched: boolean
  /** Calls `act` once, when the body is over; false: it broke. */
  whenOver(act: (isWell: boolean) => void): void
  /** Lets go of it; nothing of the body may have been read. */
  drop(): void
}

type Again = NonNullable<Found['again']>

/** A window that a gateway answers with the whole is cut out here where it starts no later. */
const cutMaxBytes = 10 * 1024 * 1024

/** A refusal that is the gateway's own answer: it was reached, and may refuse this very request only. */
interface AnsweredRefusal extends Refusal {
  readonly answered: true
}

/** True: the gateway answered, and what it answered is no payload. */
export function wasAnswered(refusal: Refusal): boolean {
  return 'answered' in refusal
}

/** True: a head came, whatever it says. */
export function wasHeard(found: RawFound | Refusal): boolean {
  if (!isRefusal(found)) return true
  return found.refused === 'unknown' || found.refused === 'unsatisfiable' || wasAnswered(found)
}

/** Requests `/raw/{id}` from gateways, with the trail of the request, and reads their answers. */
export class RawClient {
  readonly #client: UpstreamClient
  /** A socket for `answers` alone: those of `#client` may all be held by clients that read slowly. */
  readonly #aside: UpstreamClient
  readonly #own: OwnName
  /** The lines of most questions. One object, so that they are put together once. */
  #usual: Readonly<Record<string, string>> | undefined

  /** `source`: the name under which what is found goes on. */
  constructor(
    private readonly source: string,
    private readonly options: RawOptions,
    clock: Clock,
  ) {
    const { ownHosts, release } = options
    const [host] = ownHosts
    this.#client = new UpstreamClient({ ...options, reads: wantedLines }, clock)
    this.#aside = new UpstreamClient({ ...options, connectionsMax: 1 }, clock)
    this.#own = { release, ...(host === undefined ? {} : { host }) }
  }

  /**
   * Queries the gateway at `url`. `trusted` is what its bytes will be called. `signal` ends this request, `ending` the one for
   * the rest of a body that broke. Each of them has a place of `takePlace`.
   */
  async request(
    url: string,
    trusted: boolean,
    wanted: Wanted,
    takePlace: TakePlace,
    signal: AnySignal,
    ending = signal,
  ): Promise<RawFound | Refusal> {
    const leave = takePlace()
    const found = await this.#found(url, trusted, wanted, takePlace, signal, ending)
    if (isRefusal(found)) leave()
    else found.whenOver(leave)
    return found
  }

  async #found(
    url: string,
    trusted: boolean,
    wanted: Wanted,
    takePlace: TakePlace,
    signal: AnySignal,
    ending: AnySignal,
  ): Promise<RawFound | Refusal> {
    const headers = this.#headersFor(wanted)
    const answer = await this.#client.request(
      url,
      { method: 'GET', path: `/raw/${wanted.id}`, headers },
      signal,
    )
    if (isRefusal(answer)) return answer
    const again: Again = (rest) => this.request(url, trusted, { ...wanted, window: rest }, takePlace, ending)
    const found = this.#read(url, trusted, wanted, answer, again)
    if (isRefusal(found)) answer.drop()
    return found
  }

  /** Whether the gateway at `url` sends a head, to a request that takes it no time. Refusals of status 500 count, too. */
  async answers(url: string): Promise<boolean> {
    const headers = { 'user-agent': this.options.release }
    const request = { method: 'GET', path: '/ar-io/healthcheck', headers } as const
    const answer = await this.#aside.request(url, request, new LazySignal())
    if (isRefusal(answer)) return false
    answer.drop()
    return true
  }

  async close(): Promise<void> {
    await Promise.all([this.#client.close(), this.#aside.close()])
  }

  #headersFor(wanted: Wanted): Readonly<Record<string, string>> {
    if (!isUsual(wanted)) return this.#headers(wanted)
    this.#usual ??= this.#headers(wanted)
    return this.#usual
  }

  #headers(wanted: Wanted): Record<string, string> {
    const { window } = wanted
    return {
      'accept-encoding': 'identity',
      'user-agent': this.options.release,
      ...trailHeaders(wanted.provenance, this.#own),
      ...hintHeaders(wanted),
      ...(window === undefined ? {} : { range: rangeOf(window) }),
    }
  }

  #read(
    url: string,
    trusted: boolean,
    wanted: Wanted,
    answer: UpstreamAnswer,
    again: Again,
  ): RawFound | Refusal {
    const { window: requested } = wanted
    const { statusCode, headers } = answer
    const no = (message: string): AnsweredRefusal => {
      return { ...refuse('upstream', 'upstream', `${url}: ${message}`), answered: true }
    }
    if (statusCode === 404 || statusCode === 410)
      return isUnsureAbsence(statusCode, headers['retry-after']) ? unknownForNow() : unknownEverywhere()
    if (statusCode === 416 && requested !== undefined) {
      return refuse('unsatisfiable', 'client', 'the range is outside of the content')
    }
    if (statusCode !== 200 && !(statusCode === 206 && requested !== undefined))
      return no(`status ${statusCode}`)
    const length = lengthOf(headers['content-length'])
    if (length === undefined) return no('no positive Content-Length')
    const sizeBytes = statusCode === 200 ? length : sizeOfRange(headers['content-range'], requested, length)
    if (sizeBytes === undefined) return no('another range than the one requested')
    if (statusCode === 200 && requested !== undefined && requested.start > cutMaxBytes)
      return no('ranges are ignored')
    const window = requested && windowIn(requested, sizeBytes)
    if (isRefusal(window)) return window
    const isWhole = statusCode === 200 && window !== undefined
    const { learned, hints, vouched, declaredDigest, hops } = readAnswerHeaders(headers)
    const found: Writable<RawFound> = {
      name: this.source,
      origin: url,
      sizeBytes,
      trusted,
      proven: false,
      learned,
      hints,
      hops: hopsOf(hops, wanted),
      vouched,
      body: isWhole ? cut(answer, window.start, window.end + 1, 'leave') : answer,
      again,
      whenOver: (act) => answer.whenOver(act),
      drop: () => answer.drop(),
    }
    if (declaredDigest !== undefined) found.declaredDigest = declaredDigest
    if (answer.isLasting) found.isLasting = true
    if (!isWhole) {
      found.collect = (maxBytes) => answer.collect(maxBytes)
      found.release = () => answer.release()
    }
    return found
  }
}

/**
 * Gateways between the content and here, of which the one that answered is the first. Gateways in use count on from the number
 * of the request. That number is a client's: it is taken off, because the answer may be kept for all clients.
 */
function hopsOf(stated: number | undefined, { provenance }: Wanted): number {
  return Math.max(1, (stated ?? 0) - provenance.hops)
}

function lengthOf(value: HeaderLines[string]): number | undefined {
  if (typeof value !== 'string' || !/^[0-9]{1,16}$/.test(value)) return undefined
  const length = Number(value)
  return Number.isSafeInteger(length) && length > 0 ? length : undefined
}

/** As a Range line (RFC 9110 section 14.1.2). */
function rangeOf({ start, end }: Window): string {
  return `bytes=${start}-${end === openEnd ? '' : end}`
}

/** Size of the whole from `Content-Range: bytes a-b/size` (RFC 9110 section 14.4), where it is the window requested. */
function sizeOfRange(
  value: HeaderLines[string],
  window: Window | undefined,
  length: number,
): number | undefined {
  const parts =
    typeof value === 'string' ? /^bytes ([0-9]{1,16})-([0-9]{1,16})\/([0-9]{1,16})$/.exec(value) : null
  if (parts === null || window === undefined) return undefined
  const [start, end, size] = parts.slice(1).map(Number)
  if (size === undefined || !Number.isSafeInteger(size)) return undefined
  const inside = windowIn(window, size)
  if (isRefusal(inside)) return undefined
  const isRight = start === inside.start && end === inside.end && length === inside.end - inside.start + 1
  return isRight ? size : undefined
}
