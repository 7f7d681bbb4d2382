import type { Clock } from '../actor/clock.js'
import { expected } from '../format/bug.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { Upstream } from '../http/upstream.js'
import { ordersPath } from './port.js'
import type { RemoteCreditsOptions } from './remote.js'
import { makeServiceToken } from './service-token.js'

const answerMaxBytes = 1 << 20

/** The way to the `UsdcPort` of a payment service elsewhere: `usdcBy` makes the port of its `ask`. */
export class RemoteUsdc {
  readonly #upstream: Upstream
  readonly #url: URL

  /** `limitMs`: for one answer; a settlement takes seconds. */
  constructor(
    private readonly options: RemoteCreditsOptions,
    private readonly clock: Clock,
  ) {
    this.#url = new URL(options.url)
    const { connectionsMax, limitMs } = options
    this.#upstream = new Upstream({
      connections: connectionsMax,
      connect: { timeout: limitMs },
      pipelining: 1,
    })
  }

  /** Refusals: `late`, `upstream`, and what the service itself refuses with. Never rejects but for bugs. */
  async ask(request: object): Promise<unknown> {
    const { secret, limitMs } = this.options
    const late = new AbortController()
    const timer = this.clock.after(limitMs, () => late.abort())
    try {
      const answer = await this.#upstream.request({
        ...{ origin: this.#url.origin, method: 'POST', signal: late.signal, body: JSON.stringify(request) },
        path: `${this.#url.pathname.replace(/\/$/, '')}${ordersPath}`,
        headers: {
          authorization: `Bearer ${makeServiceToken(secret, this.clock.now())}`,
          'content-type': 'application/json',
          'user-agent': 'sluice',
        },
      })
      const pieces: Buffer[] = []
      let size = 0
      for await (const piece of answer.body as AsyncIterable<Buffer>) {
        size += piece.length
        if (size > answerMaxBytes) return refuse('upstream', 'upstream', 'the payment service said too much')
        pieces.push(piece)
      }
      return replyOf(answer.statusCode, Buffer.concat(pieces).toString())
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

function replyOf(status: number, text: string): object | Refusal {
  // It sells nothing for USDC.
  if (status === 404) return refuse('unknown', 'upstream', 'no USDC is taken by x402')
  const wrong = (): Refusal => refuse('upstream', 'upstream', `the payment service: status ${status}`)
  try {
    const value: unknown = JSON.parse(text)
    return status === 200 && typeof value === 'object' && value !== null ? value : wrong()
  } catch (error) {
    if (error instanceof SyntaxError) return wrong()
    throw error
  }
}
