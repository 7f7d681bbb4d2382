import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Clock } from './clock.js'
import { FairSlots } from './fair-slots.js'

export interface TimedTurnsOptions {
  /** Questions that run at once. */
  readonly atOnce: number
  /** That wait, of all who ask. */
  readonly waitingMax: number
  /** Calls of one client at most, with those that run; absent: as many as of all. */
  readonly eachMax?: number
  /** One that was not begun after so many milliseconds is never begun. */
  readonly patienceMs: number
}

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
    const slot = await this.#slots.waitFor(client, this.options.patienceMs, this.clock)
    if (isRefusal(slot)) return slot
    try {
      return await ask()
    } finally {
      slot()
    }
  }
}

/** Whether a question was refused because others ask, and not because the service behind them is away. */
export function isOutOfTurn({ refused, fault }: Refusal): boolean {
  return refused === 'busy' || (refused === 'late' && fault === 'self')
}
