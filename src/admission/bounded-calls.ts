import { Backoff } from '../actor/backoff.js'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { Outage } from '../actor/outage.js'

export interface BoundedCallsOptions {
  readonly timeoutMs: number
  /** Calls under way at most; one more is not made. */
  readonly callsMax: number
  /** After five failures in a row no call is made for so long; after that, one failure is enough for the next pause. */
  readonly restMs: number
  readonly clock: Clock
  readonly log: Pick<Log, 'warn' | 'info'>
}

const failuresMax = 5

/**
 * Calls to a service that may be slow or unreachable: each has a timeout, their number is bounded, and after repeated
 * failures none is made for a while (circuit breaker).
 */
export class BoundedCalls {
  #calls = 0
  readonly #rest: Backoff
  #reason = ''
  readonly #outage: Outage

  constructor(private readonly options: BoundedCallsOptions) {
    const { restMs, clock, log } = options
    this.#outage = new Outage(log, 'Redis does not answer: it counts no limits', 'Redis answers again')
    this.#rest = new Backoff({ failuresMax, restMs, restMaxMs: restMs }, clock)
  }

  /** Undefined: not called, failed, or late; a late answer goes to `late`. Never rejects. */
  async wait<T>(
    isUp: () => boolean,
    run: () => Promise<T>,
    late?: (outcome: T) => void,
    timeoutMs = this.options.timeoutMs,
  ): Promise<T | undefined> {
    const { clock, callsMax } = this.options
    if (!isUp() || this.#calls >= callsMax || this.#rest.isOn) {
      this.#outage.failed({ reason: this.#reason })
      return undefined
    }
    this.#calls += 1
    let isOver = false
    let isEnded = false
    const call = run().then(
      (outcome) => {
        this.#calls -= 1
        isEnded = true
        if (isOver) late?.(outcome)
        else this.#well()
        return outcome
      },
      (error: Error) => {
        this.#calls -= 1
        isEnded = true
        this.#failed(error.message)
        return undefined
      },
    )
    return new Promise((resolve) => {
      const judge = (): void => {
        if (isEnded) return
        isOver = true
        this.#failed(`no answer after ${timeoutMs} ms`)
        resolve(undefined)
      }
      // After a stall of this thread its timers run before its sockets are read: an answer may have come in time.
      const timer = clock.after(timeoutMs, () => setImmediate(judge))
      void call.then((outcome) => {
        timer.cancel()
        resolve(outcome)
      })
    })
  }

  /** Keeps an error of the connection as the reason for the next log line. */
  noteReason(error: Error): void {
    this.#reason = error.message
  }

  #well(): void {
    this.#rest.well()
    this.#outage.well()
  }

  #failed(reason: string): void {
    this.#reason = reason
    this.#rest.failed()
    if (this.#rest.isDue) this.#outage.failed({ reason: this.#reason })
  }
}
