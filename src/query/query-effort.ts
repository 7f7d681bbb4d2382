import { GraphQLError } from 'graphql'
import type { Clock } from '../actor/clock.js'
import { Effort, OutOfEffort, type Stopwatch } from '../catalog/effort.js'
import type { TransactionsArguments } from './asking.js'
import type { QueryLimits } from './query-limits.js'

/** Fields that are written between two looks at the clocks: each costs no more than a look-up. */
const fieldsPerLook = 64

/** A page that is read within the time of a request is written until so many times of it are used; twice is the end of all. */
const pageTimes = 1.5
/** Part of the largest answer that pages fill. */
const pagesShare = 0.5
/**
 * Part of the largest answer that the first row of a page may have beyond it, and all first rows together: a page has a row,
 * however large. One of a stranger with 500 kB of control characters is 3 MB of JSON, and must not take others their answer.
 */
const [firstRowShare, firstRowsShare] = [0.2, 1] as const

/** Questions of one request to another engine: some for each of its selections. */
const asksMax = 200

/** Runs what a request still has to do after it has waited, when it is its client's turn. Resolves with what that gives. */
export type Turn = <T>(work: () => T) => Promise<T>

const atOnce: Turn = async (work) => work()

/** True where the client has left. */
export type IsGone = () => boolean

/**
 * The limits of one HTTP request, shared by all queries of a batch and all selections of each. They bound what it reads of
 * the index, how many values it has, and how large the answer is.
 */
export class QueryEffort extends Effort {
  #values = 0
  #bytes = 0
  /** Bytes of first rows among these that count no more, and what the first row to be written may still have of them. */
  #beyond = 0
  #firstRowLeft = 0
  #fields = 0
  #isLate = false
  #queriesLeft = 1
  #wallMs = 0
  #awayCount = 0
  #awayMs = 0
  /** When the thread went on with it; undefined while it waits. */
  #wallSince: number | undefined

  constructor(
    private readonly limits: QueryLimits,
    work: Stopwatch,
    private readonly clock: Clock,
    private readonly isGone: IsGone = () => false,
    /** Address of the client, whose share of other engines it takes. */
    readonly client = '',
    /** For what follows a wait. */
    readonly turn: Turn = atOnce,
  ) {
    super(limits.stepsMax, limits.timeMs, work)
    this.#wallSince = clock.monotonic()
  }

  /** Time that it held the thread, reads of the disk included. */
  get #heldMs(): number {
    return this.#wallMs + (this.#wallSince === undefined ? 0 : this.clock.monotonic() - this.#wallSince)
  }

  protected override isOver(times: number): boolean {
    return this.#heldMs > times * this.limits.wallMs || this.isGone()
  }

  /** Nobody waits for the answer any more. */
  get hasNoReader(): boolean {
    return this.isGone()
  }

  override rest(): void {
    super.rest()
    this.#wallMs = this.#heldMs
    this.#wallSince = undefined
  }

  override resume(): void {
    super.resume()
    this.#wallSince ??= this.clock.monotonic()
  }

  /**
   * Waits for another engine, while the thread does something else. Throws an OutOfEffort where one request needs it too often,
   * or has waited for too long.
   */
  async away<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    this.#awayCount += 1
    if (this.#awayCount > asksMax || this.#awayMs > this.limits.wallMs || this.isGone())
      throw new OutOfEffort('it has waited for too long')
    const sinceMs = this.clock.monotonic()
    this.rest()
    try {
      return await ask()
    } finally {
      this.#awayMs += this.clock.monotonic() - sinceMs
      this.resume()
    }
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

  /**
   * Counts fields, or parts of them, that are written. Asks now and then whether there is time for more: so no page of an answer,
   * however often its fields are repeated, takes longer than a request may. Throws an OutOfEffort.
   */
  writing(fields = 1): void {
    this.#fields += fields
    if (this.#fields < fieldsPerLook) return
    this.#fields = 0
    this.goOn()
    this.#isLate ||= this.hasUsed(pageTimes)
  }

  /** Whether a page that is written ends at its next row: what is left of the time is for the rest of the answer. */
  get isLate(): boolean {
    return this.#isLate
  }

  /** Says how many queries the request has, if there are several. */
  batch(queries: number): void {
    this.#queriesLeft = queries
  }

  /**
   * Begins the next query of the request. Returns at how many bytes its pages end: those that are left have the same room each.
   * Pages have a part of what an answer may have, so that one large row more does not make an error of all.
   */
  nextQuery(): number {
    const room = this.limits.answerMaxBytes * pagesShare - this.#bytes
    const end = this.#bytes + room / Math.max(1, this.#queriesLeft)
    this.#queriesLeft -= 1
    return end
  }

  /** Bytes written so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Runs `write`, which writes the first row of a page. What it throws is thrown on. */
  firstRow<T>(write: () => T): T {
    this.#firstRowLeft = this.limits.answerMaxBytes * firstRowShare
    try {
      return write()
    } finally {
      this.#firstRowLeft = 0
    }
  }

  /** Counts what was written. Throws a GraphQLError where the answer becomes larger than it may be. */
  written(bytes: number): void {
    this.#bytes += bytes
    const { answerMaxBytes } = this.limits
    const beyond = Math.min(bytes, this.#firstRowLeft, answerMaxBytes * firstRowsShare - this.#beyond)
    this.#firstRowLeft -= beyond
    this.#beyond += beyond
    if (this.#bytes - this.#beyond <= answerMaxBytes) return
    throw new GraphQLError(
      `The answer would have more than ${answerMaxBytes} bytes: ask for fewer rows or fields at once`,
      { extensions: { code: 'ANSWER_TOO_LARGE' } },
    )
  }
}

/** What a query is answered with where it failed; throws what is a bug. */
export function shownError(error: unknown): GraphQLError {
  if (error instanceof GraphQLError) return error
  if (!(error instanceof OutOfEffort)) throw error
  return new GraphQLError('This request has used up the time that one request has: ask for less at once', {
    extensions: { code: 'QUERY_TOO_EXPENSIVE' },
  })
}

/** Values in the lists of a field's arguments. */
function valuesOf(args: object): number {
  const tags = (args as TransactionsArguments).tags ?? []
  const lists = Object.values(args).map((value: unknown) => (Array.isArray(value) ? value.length : 0))
  return [...lists, ...tags.map(({ values }) => values.length)].reduce((sum, count) => sum + count, 0)
}
