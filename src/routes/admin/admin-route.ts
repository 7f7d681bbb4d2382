import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import { noteChange } from '../../actor/log-ring.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Reply, Request } from '../../http/exchange.js'
import type { Operation, Operations } from '../../http/operation.js'
import { answerSmall, noStore, textType } from '../../http/small-answer.js'
import { refusedAnswer } from '../../serving/refused-answer.js'
import type { Route } from '../../serving/route.js'
import type { AdminKey } from './admin-key.js'
import type { Order, OrderAnswer } from './order.js'

const bodyMaxBytes = 100_000

export interface AdminRouteParts {
  readonly pathPrefix: string
  readonly key: AdminKey
  /** At least one. */
  readonly orders: readonly Order[]
  readonly log: Log
  /** Address of the client, for the audit. */
  readonly clientOf: (request: Request) => string
  /** Gives the times of changes in the history. Absent: who passed the order on notes it. */
  readonly clock?: Clock
}

class AdminRoute implements Route {
  readonly family = 'other'
  readonly isForOperators = true
  readonly path: string
  readonly methods = ['GET', 'HEAD', 'PUT', 'POST', 'DELETE', 'PATCH']
  readonly about: Operations

  constructor(private readonly parts: AdminRouteParts) {
    const { pathPrefix, orders } = parts
    this.path = `${pathPrefix}/admin/`
    const [first, ...others] = orders.map((order) => operationOf(this.path, order))
    if (first === undefined) throw new Error('an admin route without orders')
    this.about = [first, ...others]
  }

  async handle(request: Request, reply: Reply, first: string): Promise<void> {
    const sendAnswer = (answer: OrderAnswer): void => answerSmall(request, reply, first, smallOf(answer))
    if (!this.parts.key.opens(request)) return sendAnswer({ status: 401, body: 'Unauthorized' })
    const path = request.path.slice(this.path.length).replace(/\/$/, '')
    const here = this.parts.orders.filter((order) => isAt(order, path))
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const order = here.find((one) => one.method === method)
    if (order === undefined) {
      const allow = here.map((one) => one.method)
      return sendAnswer(
        here.length === 0
          ? { status: 404, body: 'Not found' }
          : { status: 405, body: 'Method not allowed', allow },
      )
    }
    const { query } = request
    const client = this.parts.clientOf(request)
    const body = await readJson(request, order.bodyMaxBytes ?? bodyMaxBytes)
    if (isRefusal(body)) {
      const answer = refusedAnswer(body)
      return answerSmall(request, reply, first, { ...answer, lines: `${answer.lines}${noSniff}` })
    }
    if (reply.aborted) return reply.end({ status: 499, block: first })
    const rest = order.path.endsWith('/') ? path.slice(order.path.length) : ''
    const call = {
      body: body.json,
      rest,
      query: new URLSearchParams(query),
      by: `admin at ${client}`,
    }
    try {
      const outcome = await order.act(call)
      if (this.parts.clock !== undefined && method !== 'GET' && outcome.status < 300)
        noteChange(
          { kind: 'order', what: changeIn(method, path, body.json), by: call.by },
          this.parts.clock.now(),
        )
      sendAnswer(outcome)
    } catch (error) {
      // An exception in an order must not end the gateway; the operator gets its message.
      this.parts.log.error({ err: error, path: request.path }, 'an admin order failed')
      sendAnswer({ status: 500, body: error instanceof Error ? error.message : String(error) })
    }
  }
}

/** Everything under `{prefix}/admin/`: the key first, then the order, then its body. Never rate limited, never cached. */
export function adminRoute(parts: AdminRouteParts): Route {
  return new AdminRoute(parts)
}

const bodyShownMaxLength = 500

/** What an order has changed, for the history. */
function changeIn(method: string, path: string, body: unknown): string {
  const text = body === undefined ? '' : ` ${JSON.stringify(body)}`
  const shown = text.length > bodyShownMaxLength ? `${text.slice(0, bodyShownMaxLength)}…` : text
  return `${method} ${path}${shown}`
}

function operationOf(start: string, order: Order): Operation {
  const { path, method, summary, statuses, rest, queryNames, type, shape } = order
  if (path.endsWith('/') !== (rest !== undefined)) throw new Error(`${path}: nothing says what is behind it`)
  return {
    path: `${start}${path}${rest === undefined ? '' : `{${rest}}`}`,
    methods: method === 'GET' ? ['GET', 'HEAD'] : [method],
    summary,
    statuses: [...statuses, 400],
    operator: true,
    ...(queryNames === undefined ? {} : { query: queryNames }),
    ...(type === undefined ? {} : { type }),
    ...(shape === undefined ? {} : { shape }),
  }
}

function isAt({ path }: Order, requested: string): boolean {
  const lower = requested.toLowerCase()
  return path.endsWith('/') ? lower.startsWith(path) && lower.length > path.length : lower === path
}

async function readJson(
  request: Request,
  sizeMaxBytes: number,
): Promise<{ readonly json: unknown } | Refusal> {
  const bytes = await request.body(sizeMaxBytes)
  if (isRefusal(bytes)) return bytes
  if (bytes.length === 0) return { json: undefined }
  try {
    return {
      json: JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')) as unknown,
    }
  } catch {
    return { refused: 'malformed', fault: 'client', message: 'Malformed JSON' }
  }
}

const noSniff = '\r\nX-Content-Type-Options: nosniff'

function smallOf({
  status,
  body,
  type = textType,
  retryAfterSeconds,
  allow,
}: OrderAnswer): Parameters<typeof answerSmall>[3] {
  const retry = retryAfterSeconds === undefined ? '' : `\r\nRetry-After: ${retryAfterSeconds}`
  const allowed = allow === undefined ? '' : `\r\nAllow: ${allow.join(', ')}`
  const lines = `${noStore}${retry}${allowed}${noSniff}`
  return typeof body === 'string' ? { status, type, lines, body } : { status, lines, json: body }
}
