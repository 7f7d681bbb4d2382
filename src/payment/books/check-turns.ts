import type { Clock } from '../../actor/clock.js'
import { TimedTurns } from '../../actor/timed-turns.js'
import type { Refusal } from '../../format/refusal.js'
import type { CheckOrder } from '../credits-port.js'

/** How long a question waits for its turn: an upload that gets no answer is refused within a second. */
const patienceMs = 800
/** Turns of uploads. A database has more connections than questions at once, so that reservations find one free. */
const ofUploads = { atOnce: 4, waitingMax: 512, patienceMs }
/** Turns of clients that ask for the balance of a wallet without a key. */
const ofQuestions = { atOnce: 1, waitingMax: 512, patienceMs }

/**
 * The order in which checks of credits begin. Anybody causes checks, with headers that nobody has verified yet, so a few run at a
 * time, by turns of clients, networks and providers. Questions that bring no bytes have a line of their own, and what spends
 * credits or gives them back (`reserve`, `settle`, `refund`) does not wait here. A check whose asker does not wait any more is
 * never begun.
 */
export class CheckTurns {
  readonly #uploads: TimedTurns
  readonly #questions: TimedTurns

  constructor(clock: Pick<Clock, 'after'>) {
    this.#uploads = new TimedTurns(ofUploads, clock)
    this.#questions = new TimedTurns(ofQuestions, clock)
  }

  /** Runs a check in its turn. Refusals: `busy` (too many wait), `late` (not begun in time). What it throws is thrown on. */
  run<Answer>(
    check: () => Promise<Answer>,
    { asker = '', isQuestion }: Pick<CheckOrder, 'asker' | 'isQuestion'> = {},
  ): Promise<Answer | Refusal> {
    return (isQuestion === true ? this.#questions : this.#uploads).run(asker, check)
  }
}
