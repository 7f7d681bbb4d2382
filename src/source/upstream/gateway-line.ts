import type { Agent } from 'undici'
import { ExchangeError } from '../../../native/client/client.js'
import type { Clock } from '../../actor/clock.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { openAgent } from '../../http/agent.js'
import { bytesPerSecondMin } from '../../http/sender-pace.js'
import { LineAnswer } from './line-answer.js'
import { PlainLine } from './plain-line.js'
import { handlerOf } from './undici-answer.js'

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

/** A kept socket of undici was closed. The client of our own knows when that is so, and asks again by itself. */
function isClosedUnderUs(error: Error): boolean {
  const { code } = error as { code?: string }
  return !(error instanceof ExchangeError) && (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET')
}

/** How the questions to one gateway go out. */
interface Way {
  readonly base: string
  send(question: LineQuestion, answer: LineAnswer): void
}

/**
 * Questions to other gateways, and the sockets kept for them. Over plain HTTP they go by the client of our own, over TLS, and
 * where its addon is not there, by undici.
 */
export class GatewayLine {
  #agent: Agent | undefined
  #plain: PlainLine | undefined
  readonly #ways = new Map<string, Way>()

  constructor(
    private readonly options: LineOptions,
    private readonly clock: Clock,
  ) {}

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
      if (!isClosedUnderUs(broken)) break
    }
    timer.cancel()
    forget()
    return isOver ? late : refusal
  }

  #send(url: string, question: LineQuestion): LineAnswer {
    const { stallMs } = this.options
    const answer = new LineAnswer({ stallMs, bytesPerSecondMin }, this.clock)
    const way = this.#wayTo(url)
    way.send({ ...question, path: way.base + question.path }, answer)
    return answer
  }

  /** The gateways of one line are few, and given at the start. */
  #wayTo(url: string): Way {
    let way = this.#ways.get(url)
    if (way === undefined) {
      const { origin, pathname } = new URL(url)
      const base = pathname.replace(/\/+$/, '')
      way = PlainLine.serves(origin) ? this.#plainly(origin, base) : this.#byUndici(origin, base)
      this.#ways.set(url, way)
    }
    return way
  }

  #plainly(origin: string, base: string): Way {
    this.#plain ??= new PlainLine(this.options.connectionsMax, this.clock)
    const plain = this.#plain
    return { base, send: (question, answer) => answer.begin(plain.ask(origin, question, answer)) }
  }

  #byUndici(origin: string, base: string): Way {
    // Heads and pauses are watched here, by the clock; the client's own timers would only say the same less exactly.
    this.#agent ??= openAgent({
      connections: this.options.connectionsMax,
      connect: { timeout: this.options.headMs },
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const agent = this.#agent
    return { base, send: (question, answer) => agent.dispatch({ origin, ...question }, handlerOf(answer)) }
  }

  async close(): Promise<void> {
    this.#plain?.destroy()
    await this.#agent?.destroy()
  }
}
