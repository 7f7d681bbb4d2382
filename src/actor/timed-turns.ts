import { isRefusal, type Refusal, refuse } from '../format/refusal.js'
import type { Clock } from './clock.js'
import { FairSlots } from './fair-slots.js'

export interface TimedTurnsOptions {
  /** Questions that run at once. */
  readonly atOnce: number
  /** That wait, of all who ask. */
  readonly waitingMax: number
  /** Of one client, with those that run; absent: as many as of all. */
  readonly eachMax?: number
  /** One that was not begun after so many milliseconds is never begun. */
  readonly patienceMs: number
}

const late = refuse('late', 'self', 'the question has waited for too long')

/** Turns for short questions that anybody causes: a few at a time, by clients, networks and providers (`FairLine`). */
export class TimedTurns {
  readonly #slots: FairSlots

  constructor(
    private readonly options: TimedTurnsOptions,
    private readonly clock: Pick<Clock, 'after'>,
  ) {
    const { atOnce, waitingMax, eachMax } = options
    this.#slots = new FairSlots({ max: atOnce, waitingMax, ...(eachMax === undefined ? {} : { eachMax }) })
  }

  /**
   * Runs `ask` in the turn of this client (its IP address; '': of none). Refusals: `busy` (too many wait), `late` (not begun in
   * time), both with the fault of this program or of the client. What `ask` throws is thrown on.
   */
  async run<Answer>(client: string, ask: () => Promise<Answer>): Promise<Answer | Refusal> {
    const slot = await this.#turn(client)
    if (isRefusal(slot)) return slot
    try {
      return await ask()
    } finally {
      slot()
    }
  }

  async #turn(client: string): Promise<(() => void) | Refusal> {
    const slot = this.#slots.take(client)
    if (typeof slot !== 'string') return slot
    const over = new AbortController()
    const timer = this.clock.after(this.options.patienceMs, () => over.abort())
    const waited = await this.#slots.wait(client, over.signal)
    timer.cancel()
    return over.signal.aborted && isRefusal(waited) ? late : waited
  }
}

/** Whether a question was refused because others ask, and not because the service behind them is away. */
export function isOutOfTurn({ refused, fault }: Refusal): boolean {
  return refused === 'busy' || (refused === 'late' && fault === 'self')
}
