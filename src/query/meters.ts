import type { Meter, MeterRow, Meters } from '../actor/meter.js'

/** The numbers of this room; the program's table of meters takes them in. */
export const queryMeterRows: readonly MeterRow[] = [
  {
    name: 'graphql_requests_total',
    kind: 'counter',
    help: 'Queries by outcome: answered whole, in part, with errors, or refused before anything was read.',
    labels: { outcome: ['whole', 'partial', 'error', 'refused'] },
  },
  {
    name: 'graphql_request_duration_seconds',
    kind: 'histogram',
    help: 'From a query whose text is here to its whole answer.',
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 12],
  },
]

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
