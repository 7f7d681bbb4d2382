import { BoundedMap } from '../actor/bounded-map.js'
import type { Clock } from '../actor/clock.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { type OutwardOptions, OutwardTurns } from './outward-turns.js'

/** Answers that are remembered, some hundred bytes each. */
const rememberedMax = 10_000
const rememberedMs = 3000

/**
 * Questions to a service of others about ids that strangers name. One id is requested once at a time, and not again for some
 * seconds where it came to nothing. All questions have turns (`OutwardTurns`).
 */
export class StrangersQuestions<Answer extends object> {
  readonly #turns: OutwardTurns
  readonly #flights = new Map<string, Promise<Answer | Refusal>>()
  /** Answers that came to nothing, and until when they are good, of the monotonic clock. */
  readonly #nothing = new BoundedMap<string, { readonly answer: Answer; readonly untilMs: number }>(
    rememberedMax,
  )

  /** `isNothing`: of an answer, whether the request has named an id that is good for nothing. */
  constructor(
    options: OutwardOptions,
    private readonly isNothing: (answer: Answer) => boolean,
    private readonly clock: Clock,
  ) {
    this.#turns = new OutwardTurns(options, clock)
  }

  /**
   * The answer to `question` about an id, when it is the turn of `client` (an IP address). Refusals: those of the question, and
   * `busy` where there is no turn for it. Rejects as `question` does.
   */
  async ask(
    client: string,
    id: string,
    question: () => Promise<Answer | Refusal>,
  ): Promise<Answer | Refusal> {
    const before = this.#known(id)
    if (before !== undefined) return before
    const refusal = await this.#turns.wait(client)
    if (refusal !== undefined) return refusal
    // Another client may have requested it meanwhile. The turn of this one costs it nothing then.
    const known = this.#known(id)
    const answer = await (known ?? this.#ask(id, question))
    if (known !== undefined || isRefusal(answer) || !this.isNothing(answer)) this.#turns.noteUseful(client)
    return answer
  }

  #known(id: string): Promise<Answer | Refusal> | Answer | undefined {
    const known = this.#nothing.get(id)
    const isGood = known !== undefined && known.untilMs > this.clock.monotonic()
    return isGood ? known.answer : this.#flights.get(id)
  }

  async #ask(id: string, question: () => Promise<Answer | Refusal>): Promise<Answer | Refusal> {
    const asking = question()
    this.#flights.set(id, asking)
    try {
      const answer = await asking
      if (!isRefusal(answer) && this.isNothing(answer))
        this.#nothing.set(id, { answer, untilMs: this.clock.monotonic() + rememberedMs })
      return answer
    } finally {
      this.#flights.delete(id)
    }
  }
}
