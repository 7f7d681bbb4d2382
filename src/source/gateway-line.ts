import type { Agent } from 'undici'
import type { Clock } from '../actor/clock.js'
import { type Refusal, refuse } from '../format/refusal.js'
import { openAgent } from '../http/agent.js'
import { bytesPerSecondMin } from '../http/sender-pace.js'
import { LineAnswer } from './line-answer.js'

export interface LineOptions {
  /** To the answer's head, connecting included. */
  readonly headMs: number
  /** A body that is silent for so long, or too slow in the long run, is given up. */
  readonly stallMs: number
  /** Sockets kept to one gateway. */
  readonly connectionsMax: number
}

export interface LineQuestion {
  readonly method: 'GET' | 'HEAD'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** Questions to other gateways, and the sockets kept for them. */
export class GatewayLine {
  readonly #agent: Agent
  readonly #places = new Map<string, { origin: string; base: string }>()

  constructor(
    private readonly options: LineOptions,
    private readonly clock: Clock,
  ) {
    // Heads and pauses are watched here, by the clock; the client's own timers would only say the same less exactly.
    this.#agent = openAgent({
      connections: options.connectionsMax,
      connect: { timeout: options.headMs },
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  /**
   * Sends a question to the gateway at base URL `url` and waits for the head. The answer's body must be read or dropped;
   * `signal` ends it at any time. A kept socket that was closed under us is no answer: asked once more. Redirects are not
   * followed. Refusals: `late`, `upstream`.
   */
  async ask(url: string, question: LineQuestion, signal: AbortSignal): Promise<LineAnswer | Refusal> {
    let answer: LineAnswer | undefined
    let isOver = signal.aborted
    const late = refuse('late', 'upstream', `${url} did not answer in time`)
    const giveUp = (): void => {
      isOver = true
      answer?.end(late)
    }
    const timer = this.clock.after(this.options.headMs, giveUp)
    signal.addEventListener('abort', giveUp)
    const forget = (): void => signal.removeEventListener('abort', giveUp)
    let refusal: Refusal = late
    for (let attempt = 1; attempt <= 2 && !isOver; attempt += 1) {
      answer = this.#send(url, question)
      const broken = await answer.head
      if (broken === undefined) {
        timer.cancel()
        answer.whenOver(forget)
        return answer
      }
      refusal = refuse('upstream', 'upstream', `${url} cannot be reached: ${broken.message}`)
      const { code } = broken as { code?: string }
      if (code !== 'UND_ERR_SOCKET' && code !== 'ECONNRESET') break
    }
    timer.cancel()
    forget()
    return isOver ? late : refusal
  }

  #send(url: string, { method, path, headers }: LineQuestion): LineAnswer {
    const { stallMs } = this.options
    const answer = new LineAnswer({ stallMs, bytesPerSecondMin }, this.clock)
    const { origin, base } = this.#placeOf(url)
    this.#agent.dispatch({ origin, path: base + path, method, headers }, answer)
    return answer
  }

  /** The gateways of one line are few, and given at the start. */
  #placeOf(url: string): { origin: string; base: string } {
    let place = this.#places.get(url)
    if (place === undefined) {
      const { origin, pathname } = new URL(url)
      place = { origin, base: pathname.replace(/\/+$/, '') }
      this.#places.set(url, place)
    }
    return place
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }
}
