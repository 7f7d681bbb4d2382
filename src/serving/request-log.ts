import { channel } from 'node:diagnostics_channel'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { logRingWriter } from '../actor/log-ring.js'
import type { Meter, Meters } from '../actor/meter.js'
import { RateWindow } from '../actor/rate-window.js'
import type { SampleRings } from '../actor/sample-rings.js'
import { codeOfStatus, errorCodes } from '../http/error-codes.js'
import { type Ending, type Exchange, type Family, families } from './request-exchange.js'

const classes = ['2xx', '3xx', '4xx', '5xx', 'aborted'] as const

/** What a subscriber of the channel gets. */
export interface EndedExchange {
  readonly exchange: Exchange
  readonly status: number
}

/** The end of each exchange is published here where somebody subscribed, such as tests and tracers. */
export const endChannel = channel('sluice:end')

/** Counts and logs exchanges: one line each. */
export class RequestLog {
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
  #logged = 0
  #unlogged = 0

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
    // The row may have belonged to a thread that was ended while it had exchanges.
    this.#inFlight.set(0)
    this.#hits = meters.of('contiguous_data_cache_hit_total')
    this.#misses = meters.of('contiguous_data_cache_miss_total')
  }

  begin(): number {
    this.#inFlight.add(1)
    return this.clock.monotonic()
  }

  /** Counts whether the content of this exchange came from the store (`hit`) or from a source. */
  cached(hit: boolean): void {
    if (hit) this.#hits.add(1)
    else this.#misses.add(1)
  }

  /** Called exactly once an exchange, after its last byte. */
  finish(exchange: Exchange, ending: Ending): void {
    exchange.finished = true
    if (endChannel.hasSubscribers)
      endChannel.publish({ exchange, status: ending.status } satisfies EndedExchange)
    const ms = this.clock.monotonic() - exchange.startedMs
    this.#inFlight.add(-1)
    this.#seconds.get(exchange.family)?.add(ms / 1000)
    this.#bytes.add(ending.bytes)
    const { outcome } = ending
    if (outcome === 'broken') this.#broken.add(1)
    else if (outcome === 'aborted') this.#gone.add(1)
    else if (outcome === 'stalled') this.#stalled.add(1)
    const status = outcome === 'whole' ? classOf(ending.status) : 'aborted'
    this.#requests.get(exchange.family)?.get(status)?.add(1)
    if (isContent(exchange)) this.resources?.note(this.clock.now(), shownAs(exchange), ending.bytes)
    const { reason, bytes, source, code = codeOfStatus(ending.status) } = ending
    if (outcome === 'whole' && code !== undefined) this.#failures.get(code)?.add(1)
    const level = levelOf(ending)
    const isLogged = this.log.isLevelEnabled(level)
    if (!isLogged && code === undefined) return
    const { method, path, requestId } = exchange
    const shown = { requestId, method, path, status: ending.status, code, reason, outcome, bytes, source }
    const about = { ...shown, ms: Math.round(ms * 1000) / 1000 }
    if (!isLogged) this.#keepFault(about, exchange.request.remoteAddress)
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
      if (this.#unlogged > 0)
        this.log.warn({ requests: this.#unlogged }, 'failed requests that were not logged one by one')
      this.#second = second
      this.#logged = 0
      this.#unlogged = 0
    }
    if (this.#logged < loggedEachSecond) {
      this.#logged += 1
      return true
    }
    this.#unlogged += 1
    return false
  }
}

/** Lines about bad answers that one thread writes each second. */
const loggedEachSecond = 20

/** The path alone does not identify the content of a name's host. */
function shownAs({ naming, path }: Exchange): string {
  return naming?.name === undefined ? path : `${naming.name}: ${path}`
}

function isContent({ family }: Exchange): boolean {
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
