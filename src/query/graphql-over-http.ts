import { GraphQLError } from 'graphql'
import { parsedJson } from '../format/json.js'
import { type AnswerType, answerType, isJson, queryJsonType, responseType, wantsPage } from './media.js'
import {
  Answerer,
  type AnswererParts,
  onlyQueries,
  type QueryAnswer,
  type QueryRequest,
} from './query-answerer.js'
import type { IsGone, QueryEffort, Turn } from './query-effort.js'
import type { QueryAsk, QueryResponse } from './query-messages.js'
import { queryPage, queryPagePolicy } from './query-page.js'
import { type Refused, refusedWith, respond } from './response.js'
import { indexUnavailable } from './stable-pages.js'

/** Answers to GET may be kept so long: the pages of a popular application. */
const getSeconds = 30
/** When a client may try again where ClickHouse did not answer. */
const awaySeconds = 2

/**
 * Answers requests to the query address: POST and GET as in "GraphQL over HTTP", batches as a JSON list, and a
 * page for browsers. Takes and gives values: the route reads the socket.
 */
export class GraphqlOverHttp {
  readonly #answerer: Answerer
  readonly #limits: AnswererParts['limits']

  constructor(parts: AnswererParts) {
    this.#answerer = new Answerer(parts)
    this.#limits = parts.limits
  }

  /** Synchronous where nothing must be read from content. Rejects for bugs only. `turn`: for what follows a wait. */
  answer(
    request: QueryAsk,
    isGone?: IsGone,
    client?: string,
    turn?: Turn,
  ): QueryResponse | Promise<QueryResponse> {
    const type = answerType(request.accept)
    const effort = this.#answerer.effort(isGone, client, turn)
    if (request.method === 'POST') return this.#post(request, type, effort)
    if (request.method === 'GET' || request.method === 'HEAD')
      return varying(this.#get(request, type, effort))
    const refused = { status: 405, message: 'GET and POST are answered here' }
    return refusedWith(refused, type, ['Allow: GET, HEAD, POST'])
  }

  #get(
    request: QueryAsk,
    type: AnswerType | undefined,
    effort: QueryEffort,
  ): QueryResponse | Promise<QueryResponse> {
    const { query, accept } = request
    const given = new URLSearchParams(query)
    if (!given.has('query') && wantsPage(accept)) {
      const more = [`Content-Security-Policy: ${queryPagePolicy}`, 'Cache-Control: public, max-age=3600']
      return respond(200, queryPage, 'text/html', more)
    }
    if (type === undefined) return refusedWith(notAcceptable, type)
    if (query.length > this.#limits.sizeMaxBytes) {
      return refusedWith({ status: 413, message: 'The query is too long' }, type)
    }
    const read = readParameters({
      query: given.get('query'),
      operationName: given.get('operationName'),
      variables: readJson(given.get('variables')),
      extensions: readJson(given.get('extensions')),
    })
    if ('status' in read) return refusedWith(read, type)
    return this.#one(read, type, true, effort)
  }

  #post(
    { contentType, body = new Uint8Array(0) }: QueryAsk,
    type: AnswerType | undefined,
    effort: QueryEffort,
  ): QueryResponse | Promise<QueryResponse> {
    if (!isJson(contentType))
      return refusedWith({ status: 415, message: 'Send application/json in UTF-8' }, type)
    if (type === undefined) return refusedWith(notAcceptable, type)
    const parsedBody = readJson(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'))
    if (Array.isArray(parsedBody)) return this.#batch(parsedBody, type, effort)
    const read = readParameters(parsedBody)
    if ('status' in read) return refusedWith(read, type)
    return this.#one(read, type, false, effort)
  }

  #one(
    query: QueryRequest,
    type: AnswerType,
    isGet: boolean,
    effort: QueryEffort,
  ): QueryResponse | Promise<QueryResponse> {
    const answer = this.#answerer.answer(query, effort)
    const responseOf = ({ refused, errors, warnings, text }: QueryAnswer): QueryResponse => {
      // Older clients, which accept `application/json`, expect errors in the body of a 200.
      const writes = isGet && errors[0]?.extensions.code === onlyQueries
      const isAway = errors.some(({ extensions }) => extensions.code === indexUnavailable)
      const status = writes ? 405 : isAway ? 503 : refused && type === responseType ? 400 : 200
      const whole = errors.length === 0 && warnings.length === 0
      const keep = whole ? `Cache-Control: public, max-age=${getSeconds}` : 'Cache-Control: no-store'
      const more = writes ? ['Allow: POST'] : isGet ? [keep] : []
      if (isAway) more.push(`Retry-After: ${awaySeconds}`)
      return respond(status, text, type, more)
    }
    return answer instanceof Promise ? answer.then(responseOf) : responseOf(answer)
  }

  async #batch(list: readonly unknown[], type: AnswerType, effort: QueryEffort): Promise<QueryResponse> {
    const { batchMax } = this.#limits
    if (list.length === 0 || list.length > batchMax) {
      return refusedWith({ status: 400, message: `A batch has 1 to ${batchMax} queries` }, type)
    }
    const answers: string[] = []
    effort.batch(list.length)
    let hasWaited = false
    for (const entry of list) {
      // Until the first wait the batch has the turn in which it began. Afterwards each query needs one: else the batches that
      // have waited for the same would run one after the other, while no other client is answered.
      const begin = (): BegunQuery => ({ answer: this.#ofBatch(entry, effort) })
      const { answer } = hasWaited ? await effort.turn(begin) : begin()
      if (answer instanceof Promise) hasWaited = true
      // Awaited only where it is a promise: the scheduler counts the processor time that is used before the first
      // await.
      answers.push(answer instanceof Promise ? (await answer).text : answer.text)
    }
    return respond(200, `[${answers.join(',')}]`, type)
  }

  #ofBatch(entry: unknown, effort: QueryEffort): BegunQuery['answer'] {
    const read = readParameters(entry)
    if ('status' in read) return { text: JSON.stringify({ errors: [new GraphQLError(read.message)] }) }
    return this.#answerer.answer(read, effort)
  }
}

/** A query of a batch. */
interface BegunQuery {
  readonly answer: Pick<QueryAnswer, 'text'> | Promise<QueryAnswer>
}

/** What is answered to GET depends on what the client takes: a page for browsers, and two types for programs. */
function varying(answer: QueryResponse | Promise<QueryResponse>): QueryResponse | Promise<QueryResponse> {
  if (answer instanceof Promise) return answer.then(varying)
  return { ...answer, lines: [...answer.lines, 'Vary: Accept'] }
}

const notAcceptable: Refused = { status: 406, message: `Answers are ${responseType} or ${queryJsonType}` }
const noJson = Symbol('not JSON')
/** More than the lists of a query may have in all. */
const valuesMax = 50_000

/** The value of a JSON text; null where the text is absent or empty. */
function readJson(text: string | null): unknown {
  if (text === null || text === '') return null
  const value = parsedJson(text, { values: valuesMax })
  // The caller reports it.
  return value === undefined ? noJson : value
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The parameters of a query (GraphQL over HTTP, section 5.1), or what is wrong with them. */
function readParameters(given: unknown): QueryRequest | Refused {
  const bad = (message: string): Refused => ({ status: 400, message })
  if (given === noJson) return bad('The body is not JSON')
  if (!isMap(given)) return bad('Send a JSON object with a query')
  const { query, operationName, variables, extensions } = given
  if (typeof query !== 'string' || query === '') return bad('query must be a text')
  if (operationName !== undefined && operationName !== null && typeof operationName !== 'string') {
    return bad('operationName must be a text')
  }
  if (variables !== undefined && variables !== null && !isMap(variables)) {
    return bad('variables must be an object')
  }
  if (extensions !== undefined && extensions !== null && !isMap(extensions)) {
    return bad('extensions must be an object')
  }
  return { query, operationName: operationName || null, variables }
}
