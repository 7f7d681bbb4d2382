import { GraphQLError } from 'graphql'
import type { Effort } from '../catalog/effort.js'
import { isRefusal } from '../format/refusal.js'
import type { Reply, Request } from '../http/exchange.js'
import { statusOf } from '../http/status.js'
import { type Answer, Answerer, type AnswererParts, onlyQueries, type QueryRequest } from './answer.js'
import { type AnswerType, answerType, isJson, jsonType, responseType, wantsPage } from './media.js'
import { queryPage, queryPagePolicy } from './page.js'

/** Answers GraphQL over HTTP. `lines` go first into the head of whatever is answered. */
export type QueryHandler = (request: Request, reply: Reply, lines: string) => void | Promise<void>

/** Answers to GET may be kept so long: the pages of a popular application. */
const getSeconds = 30

/** Refused before any GraphQL: a status and what to say. */
interface Refused {
  readonly status: number
  readonly message: string
}

/**
 * The handler of the query address: POST and GET as in "GraphQL over HTTP", batches as a JSON list, and a
 * page for browsers. Answers GET on the spot where nothing must be read from content.
 */
export function createQueryHandler(parts: AnswererParts): QueryHandler {
  const handler = new Handler(new Answerer(parts), parts.limits)
  return (request, reply, lines) => handler.handle(new Exchange(request, reply, lines))
}

/** One request and the way back, with what every answer has in common. */
class Exchange {
  readonly type: AnswerType | undefined

  constructor(
    readonly request: Request,
    private readonly reply: Reply,
    private readonly lines: string,
  ) {
    this.type = answerType(request.header('accept'))
  }

  refuse({ status, message }: Refused, more: readonly string[] = []): void {
    const body = JSON.stringify({ errors: [{ message, extensions: { code: 'BAD_REQUEST' } }] })
    this.send(status, body, this.type ?? jsonType, more)
  }

  send(status: number, body: string, type: string, more: readonly string[]): void {
    const head = [`Content-Type: ${type}; charset=utf-8`, 'X-Content-Type-Options: nosniff', ...more]
    const block = this.lines === '' ? head.join('\r\n') : `${this.lines}\r\n${head.join('\r\n')}`
    this.reply.end({ status, block }, body)
  }
}

class Handler {
  constructor(
    private readonly answerer: Answerer,
    private readonly limits: AnswererParts['limits'],
  ) {}

  handle(exchange: Exchange): void | Promise<void> {
    const { method } = exchange.request
    if (method === 'POST') return this.#post(exchange)
    if (method === 'GET') return this.#get(exchange)
    return exchange.refuse({ status: 405, message: 'GET and POST are answered here' }, ['Allow: GET, POST'])
  }

  #get(exchange: Exchange): void | Promise<void> {
    const { request, type } = exchange
    const asked = new URLSearchParams(request.query)
    if (!asked.has('query') && wantsPage(request.header('accept'))) {
      const more = [`Content-Security-Policy: ${queryPagePolicy}`, 'Cache-Control: public, max-age=3600']
      return exchange.send(200, queryPage, 'text/html', more)
    }
    if (type === undefined) return exchange.refuse(notAcceptable)
    if (request.query.length > this.limits.sizeMaxBytes) {
      return exchange.refuse({ status: 413, message: 'The query is too long' })
    }
    const read = readParameters({
      query: asked.get('query'),
      operationName: asked.get('operationName'),
      variables: readJson(asked.get('variables')),
      extensions: readJson(asked.get('extensions')),
    })
    if ('status' in read) return exchange.refuse(read)
    return this.#one(exchange, read, type, true)
  }

  async #post(exchange: Exchange): Promise<void> {
    const { request, type } = exchange
    const json = isJson(request.header('content-type'))
    const body = await request.body(this.limits.sizeMaxBytes)
    if (isRefusal(body)) return exchange.refuse({ status: statusOf[body.refused], message: body.message })
    if (!json) return exchange.refuse({ status: 415, message: 'Send application/json in UTF-8' })
    if (type === undefined) return exchange.refuse(notAcceptable)
    const asked = readJson(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'))
    if (Array.isArray(asked)) return this.#batch(exchange, asked, type)
    const read = readParameters(asked)
    if ('status' in read) return exchange.refuse(read)
    return this.#one(exchange, read, type, false)
  }

  #one(exchange: Exchange, asked: QueryRequest, type: AnswerType, isGet: boolean): void | Promise<void> {
    const answer = this.answerer.answer(asked, this.answerer.effort())
    const send = ({ refused, errors, warnings, text }: Answer): void => {
      // JSON clients of old read errors from the body of a good answer.
      const writes = isGet && errors[0]?.extensions.code === onlyQueries
      const status = writes ? 405 : refused && type === responseType ? 400 : 200
      const whole = errors.length === 0 && warnings.length === 0
      const keep = whole ? `Cache-Control: public, max-age=${getSeconds}` : 'Cache-Control: no-store'
      const more = writes ? ['Allow: POST'] : isGet ? [keep, 'Vary: Accept'] : []
      exchange.send(status, text, type, more)
    }
    return answer instanceof Promise ? answer.then(send) : send(answer)
  }

  async #batch(exchange: Exchange, list: readonly unknown[], type: AnswerType): Promise<void> {
    const { batchMax } = this.limits
    if (list.length === 0 || list.length > batchMax) {
      return exchange.refuse({ status: 400, message: `A batch has 1 to ${batchMax} queries` })
    }
    const effort = this.answerer.effort()
    const answers: string[] = []
    for (const asked of list) answers.push(await this.#ofBatch(asked, effort))
    exchange.send(200, `[${answers.join(',')}]`, type, [])
  }

  async #ofBatch(asked: unknown, effort: Effort): Promise<string> {
    const read = readParameters(asked)
    if ('status' in read) return JSON.stringify({ errors: [new GraphQLError(read.message)] })
    return (await this.answerer.answer(read, effort)).text
  }
}

const notAcceptable: Refused = { status: 406, message: `Answers are ${responseType} or ${jsonType}` }
const noJson = Symbol('not JSON')

/** The value of a JSON text; null where the text is absent or empty. */
function readJson(text: string | null): unknown {
  if (text === null || text === '') return null
  try {
    return JSON.parse(text)
  } catch {
    // What is wrong with it is said where it is used.
    return noJson
  }
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The parameters of a query (GraphQL over HTTP, section 5.1), or what is wrong with them. */
function readParameters(asked: unknown): QueryRequest | Refused {
  const bad = (message: string): Refused => ({ status: 400, message })
  if (asked === noJson) return bad('The body is not JSON')
  if (!isMap(asked)) return bad('Send a JSON object with a query')
  const { query, operationName, variables, extensions } = asked
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
