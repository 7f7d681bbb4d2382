import { lookup } from 'node:dns'
import { isIP } from 'node:net'
import {
  type AnswerControl,
  type Answering,
  HttpClient,
  type TlsTrust,
} from '../../../native/client/client.js'
import type { Clock } from '../../actor/clock.js'

/** A body up to this size comes as one piece. */
const wholeMaxBytes = 128 * 1024

/** After this time the addresses of a host are looked up again, beside the requests. */
const locatedMs = 30_000

/** After a failure of TLS, Node's own client asks this server for so long. */
const elsewhereMs = 60_000

/** Values of header lines that go out: no control characters, so that none can begin a line of its own. */
const plainValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** What may stand in a request line. */
const plainPath = /^[\x21-\x7e]+$/

/** What is known of one origin: its addresses, and whether requests go to it this way. */
interface OriginState {
  readonly origin: number
  readonly host: string
  readonly port: number
  /** What stands in the Host line. */
  readonly authority: string
  /** The address is the name. */
  readonly isFixed: boolean
  /** Requests go another way until then, by the monotonic clock. */
  elsewhereMs: number
  locatedMs: number
  isLookingUp: boolean
  /** Called when the first addresses are there; with an error where there are none. */
  waiting: ((error: Error | undefined) => void)[]
}

export interface NativeRequest {
  readonly method: 'GET' | 'HEAD'
  /** With its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

export interface NativeClientOptions {
  readonly connectionsMax: number
  /** Names of the header lines of answers that are read, in small letters. */
  readonly reads: readonly string[]
  /** What servers are checked against; called once, before the first request over TLS. */
  readonly trust: () => TlsTrust
}

/** Requests by the client of this program (native/client): host names, heads, and which servers it can serve. */
export class NativeClient {
  readonly #client: HttpClient
  readonly #origins = new Map<string, OriginState | undefined>()
  /** Those of the last request, and their text. */
  #headers: NativeRequest['headers'] | undefined
  #lines: string | undefined
  #hasTrust: boolean | undefined

  /** Throws where the addon is not there. */
  constructor(
    private readonly options: NativeClientOptions,
    private readonly clock: Clock,
  ) {
    const { reads: names, connectionsMax } = options
    this.#client = new HttpClient({ names, connectionsMax, wholeMaxBytes })
  }

  /** Whether the addon is there. */
  static get isThere(): boolean {
    return HttpClient.isThere
  }

  /** Whether requests to `origin` (a URL's) can go this way now. */
  serves(origin: string): boolean {
    const state = this.#stateOf(origin)
    return state !== undefined && state.elsewhereMs <= this.clock.monotonic()
  }

  /** TLS with `origin` failed: Node may know better, which has more settings. */
  avoid(origin: string): void {
    const state = this.#stateOf(origin)
    if (state !== undefined) state.elsewhereMs = this.clock.monotonic() + elsewhereMs
  }

  /** Sends a request to an origin that is served. `answering` may hear of an error before this returns. */
  request(origin: string, { method, path, headers }: NativeRequest, answering: Answering): AnswerControl {
    const state = this.#stateOf(origin)
    const lines = this.#linesOf(headers)
    if (state === undefined || lines === undefined || !plainPath.test(path)) {
      answering.onError(new Error('a header line has characters that it must not have'))
      return nothing
    }
    const head = `${method} ${path} HTTP/1.1\r\nhost: ${state.authority}\r\n${lines}\r\n`
    if (this.#locate(state)) return this.#client.request(state.origin, head, method === 'HEAD', answering)
    return new Waiting(
      state,
      () => this.#client.request(state.origin, head, method === 'HEAD', answering),
      answering,
    )
  }

  destroy(): void {
    this.#client.destroy()
  }

  /** Undefined: a value has characters that it must not have. Most requests have the very lines of the one before. */
  #linesOf(headers: NativeRequest['headers']): string | undefined {
    if (headers !== this.#headers) {
      this.#lines = linesOf(headers)
      this.#headers = headers
    }
    return this.#lines
  }

  /** Undefined: this client does not serve this origin. */
  #stateOf(origin: string): OriginState | undefined {
    if (this.#origins.has(origin)) return this.#origins.get(origin)
    const state = this.#newState(new URL(origin))
    this.#origins.set(origin, state)
    return state
  }

  #newState({ protocol, hostname, port, host: authority }: URL): OriginState | undefined {
    const isSecure = protocol === 'https:'
    if (isSecure) this.#hasTrust ??= this.#client.trust(this.options.trust())
    if (isSecure ? this.#hasTrust !== true : protocol !== 'http:') return undefined
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    const isFixed = isIP(host) !== 0
    const state: OriginState = {
      origin: this.#client.origin(),
      host,
      port: port === '' ? (isSecure ? 443 : 80) : Number(port),
      authority,
      isFixed,
      elsewhereMs: Number.NEGATIVE_INFINITY,
      locatedMs: Number.NEGATIVE_INFINITY,
      isLookingUp: false,
      waiting: [],
    }
    if (isSecure) this.#client.secure(state.origin, host, isFixed)
    if (isFixed) this.#client.locate(state.origin, [host], state.port)
    return state
  }

  /** True: it has addresses. They are looked up anew where they are old. */
  #locate(state: OriginState): boolean {
    if (state.isFixed) return true
    if (this.clock.monotonic() - state.locatedMs > locatedMs && !state.isLookingUp) this.#lookUp(state)
    return state.locatedMs > Number.NEGATIVE_INFINITY
  }

  #lookUp(state: OriginState): void {
    state.isLookingUp = true
    lookup(state.host, { all: true }, (error, found) => {
      state.isLookingUp = false
      if (error === null && found.length > 0) {
        // Some networks have addresses of version 6 that lead nowhere, and such an attempt is long.
        const ips = found.toSorted((one, other) => one.family - other.family).map(({ address }) => address)
        this.#client.locate(state.origin, ips, state.port)
        state.locatedMs = this.clock.monotonic()
      }
      const { waiting } = state
      state.waiting = []
      const failed = state.locatedMs === Number.NEGATIVE_INFINITY
      for (const go of waiting) go(failed ? (error ?? new Error('its host has no address')) : undefined)
    })
  }
}

const nothing: AnswerControl = { pause: () => undefined, resume: () => undefined, drop: () => undefined }

/** A request that waits for addresses. */
class Waiting implements AnswerControl {
  #sent: AnswerControl | undefined
  #isOver = false

  constructor(state: OriginState, send: () => AnswerControl, answering: Answering) {
    state.waiting.push((error) => {
      if (this.#isOver) return
      if (error === undefined) this.#sent = send()
      else answering.onError(error)
    })
  }

  pause(): void {
    this.#sent?.pause()
  }

  resume(): void {
    this.#sent?.resume()
  }

  drop(): void {
    this.#isOver = true
    this.#sent?.drop()
  }
}

function linesOf(headers: NativeRequest['headers']): string | undefined {
  let lines = ''
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!plainValue.test(value)) return undefined
    lines += `${name}: ${value}\r\n`
  }
  return lines
}
