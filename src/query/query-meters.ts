import type { Meter, Meters } from '../actor/meter.js'

export type QueryOutcome = 'whole' | 'partial' | 'error' | 'refused'

/** Counts queries. */
export class QueryMeters {
  readonly #outcomes: Readonly<Record<QueryOutcome, Meter>>
  readonly #seconds: Meter

  constructor(meters: Meters) {
    const of = (outcome: QueryOutcome): Meter => meters.of('graphql_requests_total', { outcome })
    this.#outcomes = {
      whole: of('whole'),
      partial: of('partial'),
      error: of('error'),
      refused: of('refused'),
    }
    this.#seconds = meters.of('graphql_request_duration_seconds')
  }

  count(outcome: QueryOutcome, ms: number): void {
    this.#outcomes[outcome].add(1)
    this.#seconds.add(ms / 1000)
  }
}
