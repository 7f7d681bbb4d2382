import { GraphQLError } from 'graphql'
import type { Clock } from '../actor/clock.js'
import { Effort, type Stopwatch } from '../catalog/effort.js'
import type { TransactionsArguments } from './asking.js'
import type { QueryLimits } from './query-limits.js'

/** True where the client has left. */
export type IsGone = () => boolean

/**
 * The limits of one HTTP request, shared by all queries of a batch and all selections of each. They bound what it reads of
 * the index, how many values it has, and how large the answer is.
 */
export class QueryEffort extends Effort {
  #values = 0
  #bytes = 0

  constructor(
    private readonly limits: QueryLimits,
    work: Stopwatch,
    clock: Clock,
    private readonly isGone: IsGone = () => false,
  ) {
    const until = clock.monotonic() + limits.wallMs
    super(limits.stepsMax, limits.timeMs, work, () => clock.monotonic() > until || isGone())
  }

  /**
   * Before each query and selection. A spent effort ends pages early, but each of them still begins. Throws a
   * GraphQLError where twice the time was used or the client has left, so that nothing further begins.
   */
  begin(): void {
    if (this.usedMs <= 2 * this.limits.timeMs && !this.isGone()) return
    throw new GraphQLError('This request has used up the time that one request has: ask for less at once', {
      extensions: { code: 'QUERY_TOO_EXPENSIVE' },
    })
  }

  /** Counts the values of a selection. Throws a GraphQLError where there are more than a request may have. */
  values(args: object): void {
    this.#values += valuesOf(args)
    const { valuesMax } = this.limits
    if (this.#values <= valuesMax) return
    throw new GraphQLError(
      `The query asks for too much: more than ${valuesMax} values in all lists together`,
      { extensions: { code: 'QUERY_TOO_COMPLEX' } },
    )
  }

  /** Counts what was written. Throws a GraphQLError where the answer becomes larger than it may be. */
  written(bytes: number): void {
    this.#bytes += bytes
    const { answerMaxBytes } = this.limits
    if (this.#bytes <= answerMaxBytes) return
    throw new GraphQLError(
      `The answer would have more than ${answerMaxBytes} bytes: ask for fewer rows or fields at once`,
      { extensions: { code: 'ANSWER_TOO_LARGE' } },
    )
  }
}

/** Values in the lists of a field's arguments. */
function valuesOf(args: object): number {
  const tags = (args as TransactionsArguments).tags ?? []
  const lists = Object.values(args).map((value: unknown) => (Array.isArray(value) ? value.length : 0))
  return [...lists, ...tags.map(({ values }) => values.length)].reduce((sum, count) => sum + count, 0)
}
