import { Backoff } from '../actor/backoff.js'
import { type Clock, withinTime } from '../actor/clock.js'
import { GroupCommit } from '../ledger/group.js'
import { isRefusedData } from '../ledger/postgres-session.js'

export interface DatabaseCallsOptions {
  readonly clock: Clock
  /** A caller does not wait longer for an answer. */
  readonly limitMs: number
  /** After a failure no call is made for so long. */
  readonly restMs: number
  /** Called on each failure: an error of the database, or no answer in time. Not on values that the database refused. */
  readonly onFailed?: (error: Error) => void
  readonly onWell?: () => void
}

/** Calls of the cluster's PostgreSQL on behalf of a client who waits: each has a time limit, and a failure pauses all of them. */
export class DatabaseCalls {
  readonly #rest: Backoff

  constructor(private readonly options: DatabaseCallsOptions) {
    const { clock, restMs } = options
    this.#rest = new Backoff({ failuresMax: 1, restMs, restMaxMs: restMs }, clock)
  }

  get isPaused(): boolean {
    return this.#rest.isOn
  }

  /** Undefined: paused, failed, late, or a value was refused (SQLSTATE class 22). Rejects with what is a bug of the caller. */
  async call<T>(run: () => Promise<T>): Promise<{ readonly answer: T } | undefined> {
    if (this.#rest.isOn) return undefined
    const { clock, limitMs } = this.options
    const running = run().then(
      (answer) => ({ answer }),
      (error: unknown) => ({ error }),
    )
    const outcome = await withinTime(clock, limitMs, running, { error: new Error('no answer in time') })
    if ('answer' in outcome) {
      this.well()
      return outcome
    }
    if (!isRefusedData(outcome.error)) this.failed(outcome.error)
    return undefined
  }

  /**
   * A call for orders of many clients: those that come while one call runs are the next one, at most `ordersMax`. `run` resolves
   * with one outcome for each. The function resolves with undefined where the call did, or where an order has waited for longer
   * than the limit: a long line is no failure of the database.
   */
  grouped<Order, Outcome>(
    run: (orders: readonly Order[]) => Promise<readonly Outcome[]>,
    ordersMax: number,
  ): (order: Order) => Promise<Outcome | undefined> {
    const { clock, limitMs } = this.options
    const group = new GroupCommit<Order, Outcome | undefined>(
      async (orders) => (await this.call(() => run(orders)))?.answer ?? orders.map(() => undefined),
      ordersMax,
    )
    return async (order) =>
      this.isPaused ? undefined : withinTime(clock, limitMs, group.add(order), undefined)
  }

  /** For work that nobody waits for, and that so has no time limit here. */
  well(): void {
    this.#rest.well()
    this.options.onWell?.()
  }

  /** Throws what is a bug of the caller. */
  failed(error: unknown): void {
    if (!(error instanceof Error) || error instanceof TypeError) throw error
    this.#rest.failed()
    this.options.onFailed?.(error)
  }
}
