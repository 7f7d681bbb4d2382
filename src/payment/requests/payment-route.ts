import type { RateWindow } from '../../actor/rate-window.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Reply, Request } from '../../http/exchange.js'
import { answerSmall, htmlType, noStore, textType } from '../../http/small-answer.js'
import { statusOf } from '../../http/status.js'
import { isLedgerGone } from '../../ledger/ledger-port.js'
import { fittingRoutes, mapGroup, patternGroups, patternMethods } from '../../serving/path-patterns.js'
import type { Route } from '../../serving/route.js'
import { diskRefusal, isDiskError } from '../../store/disk-error.js'
import type { RequestTurns } from './request-turns.js'

/**
 * What a route answers: a text for people and clients alike, or JSON. `lines`: each with CRLF in front. A text that says what is
 * wrong stands in the status line, too, where some clients look for it.
 */
export type RouteAnswer =
  | { readonly status: number; readonly text: string; readonly lines?: string; readonly reason?: string }
  | { readonly status: number; readonly json: unknown; readonly lines?: string }
  | { readonly status: number; readonly html: string; readonly lines?: string }

/** One request to the payment service, read before anything is waited for. */
export interface RouteRequest {
  readonly request: Request
  /** Address of the client, behind the proxies that are trusted. */
  readonly client: string
  /** What stands in place of the names in braces, decoded; in the order of the path. */
  readonly path: readonly string[]
  readonly query: URLSearchParams
  /** The body, for routes that take one. */
  readonly body: Uint8Array
  header(name: string): string | undefined
}

export interface PaymentRoute {
  /** A path with names in braces: `/v1/price/{currency}/{amount}`. */
  readonly path: string
  readonly summary: string
  readonly statuses: readonly number[]
  readonly query?: readonly string[]
  readonly type?: string
  readonly method?: 'GET' | 'POST'
  /** Bodies up to so many bytes; 0 or absent: none is read. */
  readonly bodyMax?: number
  readonly operator?: true
  /** Each answer leaves a record in the ledger, which nobody has paid for: their number is limited (`RequestLimits.recorded`). */
  readonly isRecorded?: true
  answer(call: RouteRequest): Promise<RouteAnswer>
}

/** Limits of each client, so that no client delays others. */
export interface RequestLimits {
  /** How often the signatures of the clients of one network are looked at. */
  readonly signed: Pick<RateWindow, 'take'>
  readonly turns: Pick<RequestTurns, 'begin' | 'trust'>
  /** How often the clients of one network get answers that are kept. */
  readonly recorded: Pick<RateWindow, 'take'>
}

/** Routes for a host (`serviceHost`). Those that begin alike are one route there, and the longest beginning goes first. */
export function paymentHostRoutes(
  routes: readonly PaymentRoute[],
  limits: RequestLimits,
  clientOf: (request: Request) => string = (request) => request.remoteAddress,
): Route[] {
  return [...patternGroups(routes)].map(([path, members]) => ({
    family: 'payment',
    path,
    methods: [...new Set(members.flatMap(patternMethods))],
    about: mapGroup(members, (route) => {
      const { path: full, summary, statuses, query, type, operator } = route
      return {
        path: full,
        summary,
        statuses,
        methods: patternMethods(route),
        ...(query === undefined ? {} : { query }),
        ...(type === undefined ? {} : { type }),
        ...(operator === undefined ? {} : { operator }),
      }
    }),
    handle: (request, reply, lines) => {
      // A false signature costs nothing to make, and checking it costs more than any other request.
      const isSigned = request.header('x-signature') !== undefined
      const client = clientOf(request)
      const isOften = isSigned && !limits.signed.take(client)
      const { recorded } = limits
      const context = { members, client, turns: isOften ? undefined : limits.turns, recorded }
      return answerOfGroup(context, request, reply, lines)
    },
  }))
}

interface GroupContext {
  readonly members: readonly PaymentRoute[]
  readonly client: string
  /** Undefined: the client's network has sent too many requests. */
  readonly turns: RequestLimits['turns'] | undefined
  readonly recorded: RequestLimits['recorded']
}

/** Requests from this machine are not counted: an operator's, or those behind a proxy that names no client. */
const ownShape = /^127\.|^::1$/

/** Has the route of a group answer whose path and method are those of the request, within the limits of its client. */
async function answerOfGroup(
  { members, client, turns, recorded }: GroupContext,
  request: Request,
  reply: Reply,
  lines: string,
): Promise<void> {
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const ofMethod = members.filter((one) => (one.method ?? 'GET') === method)
  const found = fittingRoutes(ofMethod, request.path)
    .map(({ route, values }) => ({ route, path: decoded(values) }))
    .find((one) => one.path !== undefined)
  if (found === undefined) {
    answerSmall(request, reply, lines, { status: 404, type: textType, lines: noStore, body: 'Not found' })
    return
  }
  if (turns === undefined) return answerTooOften(request, reply, lines)
  const { route, path = [] } = found
  const isCounted = route.isRecorded === true && !ownShape.test(client)
  if (isCounted && !recorded.take(client)) return answerTooOften(request, reply, lines, 60)
  const query = new URLSearchParams(request.query)
  const { bodyMax = 0 } = route
  const body = bodyMax > 0 ? await request.body(bodyMax) : new Uint8Array(0)
  if (isRefusal(body)) {
    const status = statusOfBody(body)
    const more = status === 503 ? `${noStore}\r\nRetry-After: 1` : noStore
    answerSmall(request, reply, lines, { status, type: textType, lines: more, body: body.message })
    return
  }
  const authorization = route.operator === true ? request.header('authorization') : undefined
  const left = new AbortController()
  reply.onAbort(() => left.abort())
  const over = await turns.begin(client, authorization, left.signal)
  if (isRefusal(over)) {
    if (left.signal.aborted) return
    if (over.fault === 'client') return answerTooOften(request, reply, lines)
    sendAnswer(request, reply, lines, { status: 503, text: over.message, lines: '\r\nRetry-After: 1' })
    return
  }
  const call: RouteRequest = { request, client, path, query, body, header: (name) => request.header(name) }
  const answer = await runRoute(route, call).finally(over)
  if (answer.status !== 401) turns.trust(authorization)
  sendAnswer(request, reply, lines, answer)
}

function statusOfBody({ refused }: Refusal): number {
  if (refused === 'late') return 408
  return refused === 'too-large' || refused === 'busy' ? statusOf[refused] : 400
}

function answerTooOften(request: Request, reply: Reply, first: string, seconds = 1): void {
  const lines = `${noStore}\r\nRetry-After: ${seconds}`
  answerSmall(request, reply, first, { status: 429, type: textType, lines, body: 'Too Many Requests' })
}

/** Runs the route. An unreachable database is answered 503, so that clients repeat the request. */
async function runRoute(route: PaymentRoute, call: RouteRequest): Promise<RouteAnswer> {
  try {
    return await route.answer(call)
  } catch (error) {
    if (!isLedgerGone(error)) throw error
    const known = route.path.includes('/approvals') ? 'Database error' : 'Cloud Database Unavailable'
    const text = isDiskError(error) ? `${known}: ${diskRefusal(error).message}` : known
    return { status: 503, text, lines: '\r\nRetry-After: 5' }
  }
}

function sendAnswer(request: Request, reply: Reply, first: string, answer: RouteAnswer): void {
  const { status, lines = '' } = answer
  if ('json' in answer) {
    answerSmall(request, reply, first, { status, lines, json: answer.json })
  } else if ('html' in answer) {
    answerSmall(request, reply, first, { status, type: htmlType, lines, body: answer.html })
  } else {
    const { text, reason = status < 400 ? undefined : text } = answer
    const reasonPart = reason === undefined || reason === '' ? {} : { reason }
    answerSmall(request, reply, first, { status, type: textType, lines, body: text, ...reasonPart })
  }
}

/** The values of the names in a path; undefined where one is empty, or is no percent-encoding. */
function decoded(values: readonly string[]): readonly string[] | undefined {
  const texts = values.map(decode)
  return texts.every((text) => text !== undefined && text !== '') ? (texts as string[]) : undefined
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    if (error instanceof URIError) return undefined
    throw error
  }
}

/** An answer in plain text. */
export function plainAnswer(status: number, text: string): RouteAnswer {
  return { status, text }
}

/** An answer 200 in JSON. `lines`: header lines, each with CRLF in front. */
export function json(value: unknown, lines = ''): RouteAnswer {
  return { status: 200, json: value, lines }
}
