import {
  type DocumentNode,
  GraphQLError,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  parse,
  specifiedRules,
  validate,
} from 'graphql'
import type { Clock } from '../actor/clock.js'
import { processorTime } from '../actor/processor-time.js'
import type { Stopwatch } from '../catalog/effort.js'
import type { ChainIndex } from '../catalog/index-reader.js'
import type { StableIndex } from '../clickhouse/stable-index.js'
import { Recent } from '../store/recent.js'
import { QueryContext, type Warning } from './context.js'
import type { HeaderSource } from './headers.js'
import { LateAnswers } from './late-answers.js'
import { type IsGone, QueryEffort, shownError, type Turn } from './query-effort.js'
import type { QueryLimits } from './query-limits.js'
import type { QueryMeters, QueryOutcome } from './query-meters.js'
import { outOfShape, shapeLimits } from './query-shape.js'
import { writeRoots, writers } from './roots.js'
import { schema } from './schema.js'
import { planOf, type SelectionPlan } from './selected.js'
import { Texts } from './texts.js'
import { VariableReader, type Variables } from './variables.js'
import { tooMuch } from './weigh.js'

/** A query as it comes in, its shape already checked. */
export interface QueryRequest {
  readonly query: string
  readonly operationName: string | null | undefined
  readonly variables: Readonly<Record<string, unknown>> | null | undefined
}

/** `refused`: the query was not carried out at all, for its errors. */
export interface QueryAnswer {
  readonly refused: boolean
  readonly errors: readonly GraphQLError[]
  readonly warnings: readonly Warning[]
  /** The whole answer as JSON. */
  readonly text: string
}

export interface AnswererParts {
  readonly index: ChainIndex
  readonly headers: HeaderSource
  readonly clock: Clock
  readonly limits: QueryLimits
  readonly meters?: QueryMeters
  /** Older blocks; absent: the index has all of them. */
  readonly stable?: StableIndex | undefined
  /** Counts the time of the processor; absent: that of this thread. */
  readonly work?: Stopwatch
}

/** Parsed queries that are cached; an application sends the same few again and again. */
const documentsMax = 100
/** Longest query that is cached: its parsed form takes about fifty times its text. */
const rememberedCharsMax = 2048
const errorsMax = 20
/** Code of the error that a mutation or subscription is answered with. */
export const onlyQueries = 'ONLY_QUERIES'
/** Answers queries. Every request has an effort of its own, which bounds how much of the index it may read. */
export class Answerer {
  readonly #documents = new Recent<string, DocumentNode>(documentsMax)
  readonly #plans = new WeakMap<OperationDefinitionNode, SelectionPlan>()
  readonly #readers = new WeakMap<OperationDefinitionNode, VariableReader>()
  readonly #texts: Texts
  readonly #waiting: LateAnswers

  constructor(private readonly parts: AnswererParts) {
    this.#texts = new Texts()
    this.#waiting = new LateAnswers(parts.limits.waitingMaxBytes)
  }

  /** The effort of one HTTP request, shared by all queries of a batch. */
  effort(isGone?: IsGone, client?: string, turn?: Turn): QueryEffort {
    const { limits, clock, work = processorTime } = this.parts
    return new QueryEffort(limits, work, clock, isGone, client, turn)
  }

  /** Synchronous, except where a signature or key must be read from content. Rejects for bugs only. */
  answer(request: QueryRequest, effort: QueryEffort): QueryAnswer | Promise<QueryAnswer> {
    const { meters, clock } = this.parts
    const started = clock.monotonic()
    const counted = (answer: QueryAnswer): QueryAnswer => {
      meters?.count(outcomeOf(answer), clock.monotonic() - started)
      return answer
    }
    effort.resume()
    const answer = this.#answer(request, effort)
    effort.rest()
    if (!(answer instanceof Promise)) return counted(answer)
    return answer.then((late) => {
      effort.rest()
      return counted(late)
    })
  }

  #answer(request: QueryRequest, effort: QueryEffort): QueryAnswer | Promise<QueryAnswer> {
    const spent = usedUp(effort)
    if (spent !== undefined) return refused([spent])
    const document = this.#document(request.query)
    if (!('kind' in document)) return refused(document)
    const operation = getOperationAST(document, request.operationName)
    if (operation === null || operation === undefined) {
      const named = typeof request.operationName === 'string'
      return refused([
        new GraphQLError(named ? 'There is no operation of this name' : 'Say which operation is meant'),
      ])
    }
    const given = request.variables ?? {}
    const variables = this.#variables(operation).read(given)
    if (isErrors(variables)) return refused(variables)
    const error = tooMuch(document, operation, variables, this.parts.limits)
    if (error !== undefined) return refused([error])
    const { index, limits, headers, clock, stable } = this.parts
    index.refresh()
    const context = new QueryContext(
      index,
      this.#texts,
      effort,
      limits,
      headers,
      clock,
      this.#waiting,
      stable,
    )
    const { roots } = this.#plan(document, operation, variables)
    const { data, errors } = writeRoots({ document, operation, variables, given }, roots, context)
    return data instanceof Promise
      ? data.then((settled) => finished(settled, errors, context))
      : finished(data, errors, context)
  }

  #variables(operation: OperationDefinitionNode): VariableReader {
    const known = this.#readers.get(operation) ?? new VariableReader(operation)
    this.#readers.set(operation, known)
    return known
  }

  #plan(
    document: DocumentNode,
    operation: OperationDefinitionNode,
    variables: Readonly<Record<string, unknown>>,
  ): SelectionPlan {
    const known = this.#plans.get(operation)
    if (known !== undefined) return known
    const plan = planOf(document, operation, variables, writers)
    if (plan.isLasting) this.#plans.set(operation, plan)
    return plan
  }

  #document(query: string): DocumentNode | readonly GraphQLError[] {
    const known = this.#documents.get(query)
    if (known !== undefined) return known
    const document = read(query, this.parts.limits)
    if (query.length <= rememberedCharsMax && 'kind' in document) this.#documents.set(query, document)
    return document
  }
}

function read(query: string, { tokensMax }: QueryLimits): DocumentNode | readonly GraphQLError[] {
  let document: DocumentNode
  try {
    document = parse(query, { maxTokens: tokensMax })
  } catch (error) {
    if (error instanceof GraphQLError) return [error]
    // The parser recurses as deep as the text is nested; a stack overflow means that it is no real query.
    if (error instanceof RangeError) return [new GraphQLError('The query is nested too deeply')]
    throw error
  }
  const shape = outOfShape(document, shapeLimits)
  if (shape !== undefined) return [shape]
  const writes = document.definitions.some(
    (node) => node.kind === Kind.OPERATION_DEFINITION && node.operation !== 'query',
  )
  if (writes)
    return [new GraphQLError('Only queries are answered here', { extensions: { code: onlyQueries } })]
  const errors = validate(schema, document, specifiedRules, { maxErrors: errorsMax })
  return errors.length === 0 ? document : errors
}

function usedUp(effort: QueryEffort): GraphQLError | undefined {
  try {
    effort.goOn()
    return undefined
  } catch (error) {
    return shownError(error)
  }
}

function isErrors(read: Variables | readonly GraphQLError[]): read is readonly GraphQLError[] {
  return Array.isArray(read)
}

function outcomeOf({ refused, errors, warnings }: QueryAnswer): QueryOutcome {
  if (refused) return 'refused'
  if (errors.length > 0) return 'error'
  return warnings.length === 0 ? 'whole' : 'partial'
}

function refused(errors: readonly GraphQLError[]): QueryAnswer {
  return { refused: true, errors, warnings: [], text: JSON.stringify({ errors }) }
}

/** Adds the errors and warnings that the context collected. */
function finished(data: string, thrown: readonly GraphQLError[], context: QueryContext): QueryAnswer {
  context.end()
  const { warnings } = context
  const errors = [...thrown, ...context.errors]
  const before = errors.length === 0 ? '' : `"errors":${JSON.stringify(errors)},`
  const behind = warnings.length === 0 ? '' : `,"extensions":${JSON.stringify({ warnings })}`
  return { refused: false, errors, warnings, text: `{${before}"data":${data}${behind}}` }
}
