import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { logRingWriter } from '../actor/log-ring.js'
import type { Meter, Meters } from '../actor/meter.js'
import { RateWindow } from '../actor/rate-window.js'
import type { SampleRings } from '../actor/sample-rings.js'
import type { Refusal } from '../format/refusal.js'
import { codeOfStatus, errorCodes, type FailureCode } from '../http/error-codes.js'
import type { Reply, Request, Sent } from '../http/exchange.js'
import { answerSmall, type SmallAnswer, textType } from '../http/small-answer.js'
import type { Bounded } from '../names/name-marks.js'
import type { Naming } from './naming.js'
import type { Origin } from './origin.js'
import { contentAnswers, refusedAnswer } from './refused-answer.js'

export type Family = 'data' | 'raw' | 'manifest' | 'info' | 'other' | 'upload' | 'payment'

/** One request on its way through the steps. */
export interface Flow {
  readonly request: Request
  readonly reply: Reply
  /** Read while the handler ran. */
  readonly method: string
  readonly path: string
  readonly requestId: string
  /** CORS and request id: first in every block. */
  readonly lines: string
  readonly startedMs: number
  readonly hops: number
  family: Family
  /** A manifest chose this content for a path that it does not have. */
  fallback: boolean
  /** The name that the content was asked by, once it is resolved. */
  naming: Naming | undefined
  /** The first token of this flow was taken before the network was asked. */
  firstTokenTaken: boolean
  /**
   * What was decided before the content was located rests on these numbers: with others a server does not repeat the answer.
   * Undefined: it rests on what cannot be watched.
   */
  rests: readonly Bounded[] | undefined
  /** Whether the content shares its origin with other content: see isolation.ts. */
  origin: Origin
  /** Answers in place of a 404. */
  instead: (() => void) | undefined
  /** The reply was ended, or is being streamed: nobody else may end it. */
  answered: boolean
  /** Counted and logged. */
  settled: boolean
}

/** How a flow ended, for the log and the meters. */
export interface Ending {
  readonly status: number
  readonly bytes: number
  /** In a few words why this status: `hit`, `miss`, `unchanged`, or the refusal's message. */
  readonly reason: string
  readonly outcome: Sent['outcome']
  /** `self`: the operator has to act. `upstream`: another server failed. */
  readonly fault?: Refusal['fault']
  readonly source?: string
  /** Of a failure; absent: as the status says. */
  readonly code?: FailureCode
}

export const families: readonly Family[] = ['data', 'raw', 'manifest', 'info', 'other', 'upload', 'payment']
const classes = ['2xx', '3xx', '4xx', '5xx', 'aborted'] as const

/** Counts and logs flows: one line each. */
export class Ledger {
  readonly #requests = new Map<Family, Map<string, Meter>>()
  readonly #seconds = new Map<Family, Meter>()
  readonly #failures = new Map<string, Meter>()
  readonly #bytes: Meter
  readonly #broken: Meter
  readonly #gone: Meter
  readonly #stalled: Meter
  readonly #inFlight: Meter
  readonly #hits: Meter
  readonly #misses: Meter
  readonly #keep = logRingWriter()
  readonly #faults: RateWindow
  #second = 0
  #said = 0
  #unsaid = 0

  constructor(
    meters: Meters,
    private readonly log: Log,
    private readonly clock: Clock,
    private readonly resources?: SampleRings,
  ) {
    this.#faults = new RateWindow(
      { windowMs: 1000, each: loggedEachSecond, all: 5 * loggedEachSecond },
      clock,
    )
    for (const route of families) {
      this.#seconds.set(route, meters.of('http_request_duration_seconds', { route }))
      const byStatus = new Map<string, Meter>()
      for (const status of classes) byStatus.set(status, meters.of('http_requests_total', { route, status }))
      this.#requests.set(route, byStatus)
    }
    for (const code of Object.keys(errorCodes))
      this.#failures.set(code, meters.of('http_failures_total', { code }))
    this.#bytes = meters.of('get_data_stream_bytes_total')
    this.#broken = meters.of('get_data_stream_errors_total')
    this.#gone = meters.of('client_disconnects_total')
    this.#stalled = meters.of('client_stalls_total')
    this.#inFlight = meters.of('flows_in_flight')
    // The row may have belonged to a thread that was ended while it had flows.
    this.#inFlight.set(0)
    this.#hits = meters.of('contiguous_data_cache_hit_total')
    this.#misses = meters.of('contiguous_data_cache_miss_total')
  }

  begin(): number {
    this.#inFlight.add(1)
    return this.clock.monotonic()
  }

  /** Counts whether the content of this flow came from the store (`hit`) or from a source. */
  cached(hit: boolean): void {
    if (hit) this.#hits.add(1)
    else this.#misses.add(1)
  }

  /** Called exactly once a flow, after its last byte. */
  settle(flow: Flow, ending: Ending): void {
    flow.settled = true
    const ms = this.clock.monotonic() - flow.startedMs
    this.#inFlight.add(-1)
    this.#seconds.get(flow.family)?.add(ms / 1000)
    this.#bytes.add(ending.bytes)
    const { outcome } = ending
    if (outcome === 'broken') this.#broken.add(1)
    else if (outcome === 'aborted') this.#gone.add(1)
    else if (outcome === 'stalled') this.#stalled.add(1)
    const status = outcome === 'whole' ? classOf(ending.status) : 'aborted'
    this.#requests.get(flow.family)?.get(status)?.add(1)
    if (isContent(flow)) this.resources?.note(this.clock.now(), shownAs(flow), ending.bytes)
    const { reason, bytes, source, code = codeOfStatus(ending.status) } = ending
    if (outcome === 'whole' && code !== undefined) this.#failures.get(code)?.add(1)
    const level = levelOf(ending)
    const isLogged = this.log.isLevelEnabled(level)
    if (!isLogged && code === undefined) return
    const { method, path, requestId } = flow
    const shown = { requestId, method, path, status: ending.status, code, reason, outcome, bytes, source }
    const about = { ...shown, ms: Math.round(ms * 1000) / 1000 }
    if (!isLogged) this.#keepFault(about, flow.request.remoteAddress)
    else if (level === 'debug' || this.#mayLog()) this.log[level](about, 'request')
  }

  /** A client's fault is no line of the log, but the operator who is given its request id finds it in the console. */
  #keepFault(about: object, client: string): void {
    if (this.#keep === undefined || !this.#faults.take(client)) return
    const { thread } = this.log.bindings()
    const time = new Date(this.clock.now()).toISOString()
    this.#keep(JSON.stringify({ level: 20, time, thread, ...about, msg: 'request' }))
  }

  /**
   * A flood of bad requests would be a flood of log lines: only some are logged each second, and the number of the others.
   */
  #mayLog(): boolean {
    const second = Math.floor(this.clock.monotonic() / 1000)
    if (second !== this.#second) {
      if (this.#unsaid > 0)
        this.log.warn({ requests: this.#unsaid }, 'failed requests that were not logged one by one')
      this.#second = second
      this.#said = 0
      this.#unsaid = 0
    }
    if (this.#said < loggedEachSecond) {
      this.#said += 1
      return true
    }
    this.#unsaid += 1
    return false
  }
}

/** Lines about bad answers that one thread writes each second. */
const loggedEachSecond = 20

/** The path alone does not say which content a name's host was asked for. */
function shownAs({ naming, path }: Flow): string {
  return naming?.name === undefined ? path : `${naming.name}: ${path}`
}

function isContent({ family }: Flow): boolean {
  return family === 'data' || family === 'raw' || family === 'manifest'
}

function classOf(status: number): (typeof classes)[number] {
  if (status < 300) return '2xx'
  if (status < 400) return '3xx'
  return status < 500 ? '4xx' : '5xx'
}

/**
 * Good answers and errors of clients are logged at debug; a full queue is a warning, because it recovers without the
 * operator.
 */
function levelOf({ outcome, fault, status }: Ending): 'debug' | 'warn' | 'error' {
  if (status === 503) return 'warn'
  if (fault === 'self' || status === 500) return 'error'
  if (fault === 'upstream' || outcome === 'broken') return 'warn'
  return 'debug'
}

/** Answers and settles. HEAD gets the same head without the body. Where the client has left it only settles. */
export function answerFlow(
  ledger: Ledger,
  flow: Flow,
  answer: SmallAnswer,
  why: Pick<Ending, 'reason' | 'fault' | 'source'>,
): void {
  // The headers of the name are sent without content as well: the name was resolved.
  const lines = `${answer.lines ?? ''}${flow.naming?.block ?? ''}${flow.origin.varies}`
  flow.answered = true
  answerSmall(flow.request, flow.reply, flow.lines, { ...answer, lines })
  const outcome = flow.reply.aborted ? 'aborted' : 'whole'
  const code = answer.code === undefined ? {} : { code: answer.code }
  ledger.settle(flow, { status: answer.status, bytes: 0, outcome, ...code, ...why })
}

/** The same with a text, which is the reason where none is given. */
export function answerText(
  ledger: Ledger,
  flow: Flow,
  { status, text, lines = '' }: { readonly status: number; readonly text: string; readonly lines?: string },
  why: Partial<Pick<Ending, 'reason' | 'fault' | 'source'>> = {},
): void {
  answerFlow(ledger, flow, { status, type: textType, lines, body: text }, { reason: text, ...why })
}

/** A flow met a bug: never the client's fault, and never silent. */
export function answerFailed(ledger: Ledger, flow: Flow, error: unknown): void {
  const text = 'Internal server error'
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
  if (!flow.answered) answerText(ledger, flow, { status: 500, text }, { fault: 'self', reason })
  else if (!flow.settled) {
    ledger.settle(flow, { status: 500, bytes: 0, outcome: 'broken', fault: 'self', reason })
  }
}

/** Answers 405 with the methods of this route. */
export function answerWrongMethod(ledger: Ledger, flow: Flow, methods: readonly string[]): void {
  const lines = `\r\nAllow: ${[...methods, 'OPTIONS'].join(', ')}`
  answerText(ledger, flow, { status: 405, text: 'Method not allowed', lines }, { fault: 'client' })
}

/** Settles a flow whose client left before the answer. */
export function answerGone(ledger: Ledger, flow: Flow): void {
  flow.answered = true
  flow.reply.end({ status: 499, block: flow.lines })
  ledger.settle(flow, { status: 499, bytes: 0, outcome: 'aborted', reason: 'the client left' })
}

/** Answers with a refusal. Unknown ids may be cached for `notFound` (a Cache-Control value). */
export function answerRefusal(ledger: Ledger, flow: Flow, refusal: Refusal, notFound: string): void {
  const answer = refusedAnswer(refusal, contentAnswers)
  const { fault, message: reason } = refusal
  if (answer.status !== 404) answerFlow(ledger, flow, answer, { fault, reason })
  else
    answerFlow(
      ledger,
      flow,
      { ...answer, lines: `\r\nCache-Control: ${notFound}` },
      { fault: 'client', reason },
    )
}
