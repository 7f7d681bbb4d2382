import { Backoff } from '../actor/backoff.js'
import type { Clock } from '../actor/clock.js'
import { FairSlots } from '../actor/fair-slots.js'
import { LazySignal } from '../actor/lazy-signal.js'
import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import { UpstreamClient, type UpstreamRequest } from '../source/upstream/upstream-client.js'

export interface ClickhouseOptions {
  /** Base URL without a path. */
  readonly url: string
  readonly database: string
  readonly user: string
  readonly password: string
  /** Until the answer to a query, connecting included. */
  readonly timeoutMs: number
  /** The same for a statement that writes. */
  readonly writeMs: number
  /** Statements under way at once, and that wait for their turn; more are refused. */
  readonly slots: number
  readonly waitingMax: number
  /** How many of those one client may have. */
  readonly clientMax: number
}

/** Why ClickHouse is not used now; undefined: it is well, as far as is known. */
export type ClickhouseFault = 'away' | 'credentials' | 'denied' | 'tables' | 'failed'

/** For whom a statement is. */
export interface Asker {
  /** Address of the client; '': this service itself. */
  readonly client: string
}

/** Settings of one statement, as ClickHouse names them. */
export type StatementSettings = Readonly<Record<string, string | number>>

const restOptions = { failuresMax: 3, restMs: 1000, restMaxMs: 30_000 }
/** While one statement tries whether ClickHouse is well again, others wait for so long. */
const trialMs = 500
const errorMaxBytes = 65_536
/** ClickHouse ends a query itself, before nobody waits for it any longer. */
const ownTimeShare = 0.7
const memoryMaxBytes = 2 ** 30
/** A statement with all values of a query, in hexadecimal digits. */
const statementMaxBytes = 4 * 2 ** 20
/**
 * Codes of ClickHouse's exceptions for which no statement succeeds. Any other code is about one statement: whoever sends it is
 * refused, and nobody else has to wait.
 */
const codes: ReadonlyMap<number, ClickhouseFault> = new Map([
  ...[193, 194, 516].map((code): [number, ClickhouseFault] => [code, 'credentials']),
  ...[497, 164].map((code): [number, ClickhouseFault] => [code, 'denied']),
  ...[47, 60, 81].map((code): [number, ClickhouseFault] => [code, 'tables']),
])
const tableUnknown = 60
/** A statement is too large, or needs more time, memory, rows or bytes than one may take. */
const boundCodes = new Set([158, 159, 160, 161, 162, 167, 168, 191, 241, 306, 307])
/** The answer is larger than the statement allows. */
const resultCode = 396
/** It has no room for one more statement now. */
const crowdedCodes = new Set([202, 203, 439])
/** The answer to a statement would be too large: for fewer rows it is not. */
export const answerTooLarge = refuse('too-large', 'client', 'the answer of ClickHouse would be too large')
const tooLarge = refuse('too-large', 'client', 'ClickHouse needs more than a query may take')

/**
 * The HTTP interface of one ClickHouse, with time-outs, bounds and a pause after failures of our own. Its credentials travel in
 * header lines, and stand in no message and no log.
 */
export class ClickhouseClient {
  readonly #client: UpstreamClient
  readonly #slots: FairSlots
  readonly #rest: Backoff
  #fault: ClickhouseFault | undefined

  constructor(
    private readonly options: ClickhouseOptions,
    private readonly clock: Clock,
  ) {
    const { timeoutMs: headMs, slots: max, waitingMax, clientMax: eachMax } = options
    this.#client = new UpstreamClient({ headMs, stallMs: headMs, connectionsMax: max }, clock)
    this.#slots = new FairSlots({ max, waitingMax, eachMax, clock })
    this.#rest = new Backoff(restOptions, clock)
  }

  get fault(): ClickhouseFault | undefined {
    return this.#fault
  }

  /**
   * The answer to a query, at most `maxBytes`, about. Statements wait in a fair line by client, each for `timeoutMs` at most, and
   * a client is charged the time that its statements take. Refusals: `busy` (left alone after failures, or too many wait),
   * `late`, `unknown` (a table is not there), `upstream`, and `too-large` where the statement met one of its own bounds: of its
   * length, time, memory or bytes. These ClickHouse itself watches, so that no costly query looks like a failure. Never rejects.
   */
  async ask(
    sql: string,
    maxBytes: number,
    settings: StatementSettings = {},
    { client }: Asker = { client: '' },
  ): Promise<Buffer | Refusal> {
    const body = Buffer.from(sql)
    if (body.length > statementMaxBytes) return tooLarge
    const bounds = {
      max_execution_time: (this.options.timeoutMs * ownTimeShare) / 1000,
      max_result_bytes: maxBytes,
      max_memory_usage: memoryMaxBytes,
      max_query_size: statementMaxBytes,
    }
    const query = { readonly: '2', ...bounds, ...settings }
    const once = (): Promise<Buffer | Refusal> =>
      this.#send(query, body, maxBytes * 2, this.options.timeoutMs)
    return this.#guarded(once, client)
  }

  /** Carries out a statement that writes; `rows` is its data. */
  async write(sql: string, rows?: Buffer, settings: StatementSettings = {}): Promise<'done' | Refusal> {
    const body = rows ?? Buffer.from(sql)
    const query = rows === undefined ? settings : { query: sql, ...settings }
    const done = await this.#guarded(() => this.#send(query, body, errorMaxBytes, this.options.writeMs), '')
    return isRefusal(done) ? done : 'done'
  }

  async #guarded(act: () => Promise<Buffer | Refusal>, client: string): Promise<Buffer | Refusal> {
    if (this.#rest.isOn) return refuse('busy', 'upstream', 'ClickHouse failed; it is tried again soon')
    if (this.#rest.isDue) this.#rest.hold(trialMs)
    const slot = await this.#slots.waitFor(client, this.options.timeoutMs, this.clock)
    if (isRefusal(slot)) return slot
    try {
      return await act()
    } finally {
      slot()
    }
  }

  async #send(
    query: StatementSettings,
    body: Buffer,
    maxBytes: number,
    headMs: number,
  ): Promise<Buffer | Refusal> {
    const { url, database, user, password } = this.options
    // The answer is whole before its status: a failure never stands behind rows.
    const words = new URLSearchParams({ database, wait_end_of_query: '1' })
    for (const [name, value] of Object.entries(query)) words.set(name, String(value))
    const request: UpstreamRequest = {
      method: 'POST',
      path: `/?${words}`,
      headers: {
        'x-clickhouse-user': user,
        'x-clickhouse-key': password,
        'content-type': 'application/octet-stream',
        'content-length': String(body.length),
      },
      body: () => body,
      headMs,
    }
    const stop = new LazySignal()
    const overall = this.clock.after(headMs, () => stop.abort())
    const answer = await this.#client.request(url, request, stop.signal)
    if (isRefusal(answer)) {
      overall.cancel()
      return this.#failed('away', answer)
    }
    const isWell = answer.statusCode === 200 && answer.headers['x-clickhouse-exception-code'] === undefined
    const pieces = await answer.collect(isWell ? maxBytes : errorMaxBytes)
    overall.cancel()
    if (isRefusal(pieces)) return this.#failed('away', pieces)
    const bytes = Buffer.concat(pieces)
    return isWell ? this.#well(bytes) : this.#refused(answer.statusCode, bytes)
  }

  #well(bytes: Buffer): Buffer {
    this.#recovered()
    this.#fault = undefined
    return bytes
  }

  /** It answers: nobody has to wait any longer. */
  #recovered(): void {
    if (this.#rest.isDue) this.#rest.hold(0)
    this.#rest.well()
  }

  #refused(status: number, text: Buffer): Refusal {
    const words = text.toString('utf8', 0, 400).replaceAll(/\s+/g, ' ').trim()
    const code = Number(/Code: (\d+)/.exec(words)?.[1])
    const fault = codes.get(code)
    const refusal = refuse('upstream', 'upstream', `ClickHouse answers ${status}: ${words}`)
    // Without a code it may be a proxy before ClickHouse that answers.
    if (Number.isNaN(code)) return this.#failed('failed', refusal)
    if (fault !== undefined && code !== tableUnknown) return this.#failed(fault, refusal)
    this.#recovered()
    this.#fault = fault
    if (code === tableUnknown) return refuse('unknown', 'upstream', 'ClickHouse has no such table')
    if (code === resultCode) return answerTooLarge
    if (boundCodes.has(code)) return tooLarge
    if (crowdedCodes.has(code))
      return refuse('busy', 'upstream', 'ClickHouse has no room for a statement now')
    return refusal
  }

  #failed(fault: ClickhouseFault, refusal: Refusal): Refusal {
    // Those that were under way together count as one more failure only until the pause begins.
    if (!this.#rest.isOn) this.#rest.failed()
    this.#fault = fault
    const message = refusal.message.replace(this.options.url, 'ClickHouse')
    return { ...refusal, message }
  }

  close(): Promise<void> {
    return this.#client.close()
  }
}
