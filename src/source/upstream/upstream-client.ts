import type { Readable } from 'node:stream'
import type { Agent } from 'undici'
import { ExchangeError, type TlsTrust, tlsFailed } from '../../../native/client/client.js'
import type { Clock, Timer } from '../../actor/clock.js'
import { Deadlines } from '../../actor/deadlines.js'
import type { AnySignal } from '../../actor/lazy-signal.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { openAgent } from '../../http/agent.js'
import { bytesPerSecondMin } from '../../http/sender-pace.js'
import { nodesTrust } from './authorities.js'
import { NativeClient } from './native-client.js'
import { handlerOf } from './undici-answer.js'
import { UpstreamAnswer } from './upstream-answer.js'

export interface UpstreamClientOptions {
  /** To the answer's head, connecting included. */
  readonly headMs: number
  /** A body that is silent for so long, or too slow in the long run, is given up. */
  readonly stallMs: number
  /** Sockets kept to one gateway. */
  readonly connectionsMax: number
  /** Names of the header lines of answers that are read, in small letters. Absent: all; then undici sends all requests. */
  readonly reads?: readonly string[]
  /** A file of certificates that servers are checked against, beside those of Node (NODE_EXTRA_CA_CERTS). */
  readonly authoritiesFile?: string
}

export interface UpstreamRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Makes the body, which may be requested twice. Its length stands in `headers`. */
  readonly body?: () => Uint8Array | Readable
  /** Keeps the socket after a HEAD, too: the server is known to send no body then. */
  readonly isKept?: true
  /** Replaces the line's own `headMs`: the head comes after a long body. */
  readonly headMs?: number
}

/**
 * A socket without a request is kept for so long, where the gateway names no shorter time. A handshake of TLS costs as much as
 * ten small contents. Servers usually close a socket after a minute or more, so this is less.
 */
const idleMs = 50_000

/** A kept socket of undici was closed while the request was on its way. The other client sends such a request again by itself. */
function isClosedUnderUs(error: NodeJS.ErrnoException): boolean {
  const { code } = error
  return !(error instanceof ExchangeError) && (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET')
}

/** Base URL of a gateway, as a dispatcher takes it. */
interface Target {
  readonly origin: string
  /** Path before that of each request. */
  readonly base: string
}

/**
 * Requests to other gateways, and the sockets kept for them. GET goes by the addon `native/client` where that is there. All else
 * goes by undici, as does a gateway that the addon cannot reach over TLS.
 */
export class UpstreamClient {
  #agent: Agent | undefined
  #native: NativeClient | undefined
  readonly #heads: Deadlines
  readonly #targets = new Map<string, Target>()

  constructor(
    private readonly options: UpstreamClientOptions,
    private readonly clock: Clock,
  ) {
    this.#heads = new Deadlines(clock)
  }

  /**
   * Sends a request to the gateway at base URL `url` and waits for the head. The answer's body must be read or dropped;
   * `signal` ends it at any time. A kept socket that was closed under us is no answer: the request is sent
   * once more. Redirects are not followed. Refusals: `late`, `upstream`.
   */
  async request(url: string, request: UpstreamRequest, signal: AnySignal): Promise<UpstreamAnswer | Refusal> {
    let answer: UpstreamAnswer | undefined
    let isOver = signal.aborted
    const late = refuse('late', 'upstream', `${url} did not answer in time`)
    const giveUp = (): void => {
      isOver = true
      answer?.end(late)
    }
    const limit = this.#limit(request.headMs, giveUp)
    signal.addEventListener('abort', giveUp)
    const forget = (): void => signal.removeEventListener('abort', giveUp)
    let refusal: Refusal = late
    for (let attempt = 1; attempt <= 2 && !isOver; attempt += 1) {
      answer = this.#send(url, request)
      const broken = await answer.head
      if (broken === undefined) {
        limit.cancel()
        answer.whenOver(forget)
        return answer
      }
      refusal = refuse('upstream', 'upstream', `${url} cannot be reached: ${broken.message}`)
      if (!isClosedUnderUs(broken) && !this.#isElsewhere(url, broken)) break
    }
    limit.cancel()
    forget()
    return isOver ? late : refusal
  }

  /** Calls `giveUp` when the head is late. */
  #limit(headMs: number | undefined, giveUp: () => void): Timer {
    return headMs === undefined
      ? this.#heads.after(this.options.headMs, giveUp)
      : this.clock.after(headMs, giveUp)
  }

  /** TLS failed by one client: the other one is used. */
  #isElsewhere(url: string, { code }: NodeJS.ErrnoException): boolean {
    if (code !== tlsFailed) return false
    this.#native?.avoid(this.#target(url).origin)
    return true
  }

  #send(url: string, request: UpstreamRequest): UpstreamAnswer {
    const { method, path, headers } = request
    const native = method === 'GET' && request.body === undefined ? this.#nativeClient() : undefined
    const { origin, base } = this.#target(url)
    if (native?.serves(origin) !== true) return this.#sendByUndici(url, request)
    const answer = new UpstreamAnswer({ stallMs: this.options.stallMs, bytesPerSecondMin }, this.clock, true)
    answer.begin(native.request(origin, { method: 'GET', path: base + path, headers }, answer))
    return answer
  }

  #nativeClient(): NativeClient | undefined {
    const { reads, connectionsMax, authoritiesFile } = this.options
    if (reads === undefined || !NativeClient.isThere) return undefined
    const trust = (): TlsTrust => nodesTrust(authoritiesFile)
    this.#native ??= new NativeClient({ connectionsMax, reads, trust }, this.clock)
    return this.#native
  }

  #sendByUndici(url: string, { method, path, headers, body, isKept }: UpstreamRequest): UpstreamAnswer {
    const { stallMs, connectionsMax, headMs } = this.options
    const answer = new UpstreamAnswer({ stallMs, bytesPerSecondMin }, this.clock)
    // Heads and pauses are watched here, by the clock; the client's own timers would only say the same less exactly.
    this.#agent ??= openAgent({
      connections: connectionsMax,
      connect: { timeout: headMs },
      keepAliveTimeout: idleMs,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const { origin, base } = this.#target(url)
    const sent = {
      ...(body === undefined ? {} : { body: body() }),
      ...(isKept === true ? { reset: false } : {}),
    }
    this.#agent.dispatch({ origin, method, path: base + path, headers, ...sent }, handlerOf(answer))
    return answer
  }

  /** The gateways of one line are few, and given at the start. */
  #target(url: string): Target {
    let target = this.#targets.get(url)
    if (target === undefined) {
      const { origin, pathname } = new URL(url)
      target = { origin, base: pathname.replace(/\/+$/, '') }
      this.#targets.set(url, target)
    }
    return target
  }

  async close(): Promise<void> {
    this.#native?.destroy()
    await this.#agent?.destroy()
  }
}
