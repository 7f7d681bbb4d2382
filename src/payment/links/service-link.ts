import type { Clock } from '../../actor/clock.js'
import { expected } from '../../format/bug.js'
import { textOfBytes } from '../../format/bytes.js'
import { Gathered } from '../../format/gathered.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { Upstream } from '../../http/upstream.js'
import { makeServiceToken } from '../requests/service-token.js'

export interface ServiceLinkOptions {
  /** The payment service, without a trailing slash. */
  readonly url: string
  /** PRIVATE_ROUTE_SECRET of both. */
  readonly secret: string
  /** Time limit of one answer: an upload must not wait for long. */
  readonly limitMs: number
  readonly connectionsMax: number
}

/** What the payment service answered. */
export interface PaymentAnswer {
  readonly status: number
  readonly text: string
}

const answerMaxBytes = 1 << 20

/** Connections to the protected routes of a payment service on another machine. */
export class ServiceLink {
  readonly #upstream: Upstream
  readonly #base: URL

  constructor(
    private readonly options: ServiceLinkOptions,
    private readonly clock: Clock,
  ) {
    this.#base = new URL(options.url)
    const { connectionsMax, limitMs } = options
    this.#upstream = new Upstream({
      connections: connectionsMax,
      connect: { timeout: limitMs },
      pipelining: 1,
    })
  }

  /**
   * Asks `path` (below the service's URL, with its slash and query); POST with this JSON where there is one, else GET.
   * Refusals: `late`, `upstream`. Never rejects but for bugs.
   */
  async ask(path: string, json?: string, limitMs = this.options.limitMs): Promise<PaymentAnswer | Refusal> {
    const { secret } = this.options
    const late = new AbortController()
    const timer = this.clock.after(limitMs, () => late.abort())
    try {
      const answer = await this.#upstream.request({
        origin: this.#base.origin,
        method: json === undefined ? 'GET' : 'POST',
        signal: late.signal,
        path: `${this.#base.pathname.replace(/\/$/, '')}${path}`,
        headers: {
          authorization: `Bearer ${await makeServiceToken(secret, this.clock.now())}`,
          'user-agent': 'sluice',
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(json === undefined ? {} : { body: json }),
      })
      const gathered = new Gathered()
      for await (const piece of answer.body as AsyncIterable<Buffer>) {
        if (gathered.sizeBytes + piece.length > answerMaxBytes)
          return refuse('upstream', 'upstream', 'the answer of the payment service is too large')
        gathered.add(piece)
      }
      return { status: answer.statusCode, text: textOfBytes(gathered.bytes()) }
    } catch (error) {
      if (late.signal.aborted)
        return refuse('late', 'upstream', `the payment service gave no answer in ${limitMs} ms`)
      return refuse('upstream', 'upstream', `the payment service: ${expected(error).message}`)
    } finally {
      timer.cancel()
    }
  }

  close(): Promise<void> {
    return this.#upstream.destroy()
  }
}
