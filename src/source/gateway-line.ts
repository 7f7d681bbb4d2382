import { Agent, type Dispatcher } from 'undici'
import type { Clock } from '../actor/clock.js'
import { type Refusal, refuse } from '../format/refusal.js'

export interface LineOptions {
  /** To the answer's head, connecting included. */
  readonly headMs: number
  /** Sockets kept to one gateway. */
  readonly connectionsMax: number
}

/** Questions to other gateways, and the sockets kept for them. */
export class GatewayLine {
  readonly #agent: Agent

  constructor(
    private readonly options: LineOptions,
    private readonly clock: Clock,
  ) {
    // Heads and pauses are watched here, by the clock; the client's own timers would only say the same less exactly.
    this.#agent = new Agent({
      connections: options.connectionsMax,
      connect: { timeout: options.headMs },
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  /**
   * Sends a question to the gateway at base URL `url` and waits for the head. A kept socket that was closed under us is no
   * answer: asked once more. Redirects are not followed.
   */
  async ask(
    url: string,
    question: { readonly method: 'GET' | 'HEAD'; readonly path: string; readonly headers: Lines },
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData | Refusal> {
    const head = new AbortController()
    const timer = this.clock.after(this.options.headMs, () => head.abort())
    const either = AbortSignal.any([signal, head.signal])
    const place = new URL(`${url.replace(/\/+$/, '')}${question.path}`)
    const { method, headers } = question
    const request = { origin: place.origin, path: place.pathname, method, headers, signal: either }
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#agent.request(request)
        } catch (error) {
          if (either.aborted) return refuse('late', 'upstream', `${url} did not answer in time`)
          const code = (error as { code?: string }).code
          if (attempt === 1 && (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET')) continue
          return refuse('upstream', 'upstream', `${url} cannot be reached: ${(error as Error).message}`)
        }
      }
    } finally {
      timer.cancel()
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }
}

type Lines = Readonly<Record<string, string>>

/** Reads what is left of a refused answer away if it is short, so that the socket can be used again. */
export function drop({ body }: Dispatcher.ResponseData): void {
  void body.dump({ limit: 65_536 }).catch(() => 'the socket is closed, which is as good')
}
