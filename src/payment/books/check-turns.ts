import type { Clock } from '../../actor/clock.js'
import { FairSlots } from '../../actor/fair-slots.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'

/** Checks that run at once. A database has more connections for questions: reservations find one free. */
const atOnce = 4
/** Checks that wait. */
const waitingMax = 512
/** Those who ask wait for so long: an upload that gets no answer is refused within a second. */
const patienceMs = 800

const late = refuse('late', 'self', 'the check of credits has waited for too long')

/**
 * The order in which checks of credits begin. Anybody causes checks, with headers that nobody has verified yet, so a few run at a
 * time, and what spends credits or gives them back (`reserve`, `settle`, `refund`) does not wait here. A check whose asker does
 * not wait any more is never begun.
 */
export class CheckTurns {
  readonly #slots = new FairSlots({ max: atOnce, waitingMax })

  constructor(private readonly clock: Pick<Clock, 'after'>) {}

  /** Runs a check in its turn. Refusals: `busy` (too many wait), `late` (not begun in time). What it throws is thrown on. */
  async run<Answer>(check: () => Promise<Answer>): Promise<Answer | Refusal> {
    const slot = await this.#turn()
    if (isRefusal(slot)) return slot
    try {
      return await check()
    } finally {
      slot()
    }
  }

  async #turn(): Promise<(() => void) | Refusal> {
    const slot = this.#slots.take()
    if (typeof slot !== 'string') return slot
    const over = new AbortController()
    const timer = this.clock.after(patienceMs, () => over.abort())
    const waited = await this.#slots.wait('', over.signal)
    timer.cancel()
    return over.signal.aborted && isRefusal(waited) ? late : waited
  }
}
