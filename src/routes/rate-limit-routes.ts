import { randomUUID } from 'node:crypto'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { isDenial, type Payments } from '../admission/admission-port.js'
import type { Balance } from '../admission/bucket-table.js'
import {
  type Buckets,
  BucketsUnreachable,
  hostOf,
  type Named,
  pathOf,
  resourceName,
} from '../admission/buckets.js'
import type { Clients } from '../admission/clients.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Operations } from '../http/operation.js'
import { answerSmall, jsonType, noStore } from '../http/small-answer.js'
import type { Route } from '../serving/route.js'

export interface RateLimitParts {
  /** `/gateway`, or the prefix of the vocabulary. */
  readonly pathPrefix: string
  readonly buckets: Buckets
  readonly clients: Clients
  readonly payments?: Payments
  isAdmin(request: Request): boolean
  readonly clock: Clock
  readonly log: Log
}

/** One bucket as these routes name it. */
interface Target {
  readonly kind: 'ip' | 'resource'
  /** The bucket, as `Credits` names it. */
  readonly bucket: string
  /** First fields of the answer. */
  readonly about: Readonly<Record<string, string>>
  find(): Promise<Balance | undefined>
}

/** An answer in JSON; `lines` with CRLF in front. */
interface RateLimitAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly lines?: string
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const bodyMaxBytes = 4096
const tokensMax = 2 ** 40

/** Balances of buckets, for everybody; top-ups for payers and the admin. A top-up goes to the bucket in the address. */
export function rateLimitRoutes(parts: RateLimitParts): Route[] {
  const start = `${parts.pathPrefix}/rate-limit`
  const statuses = [200, 400, 401, 402, 404, 413]
  const route = (
    path: string,
    about: Operations,
    targetOf: (request: Request, given: Given) => Target | RateLimitAnswer,
  ): Route => ({
    family: 'info',
    path,
    methods: ['GET', 'HEAD', 'POST'],
    about,
    handle: (request, reply, lines) => handle(parts, targetOf, request, reply, lines),
  })
  return [
    route(
      `${start}/ip/`,
      [{ path: `${start}/ip/{ip}`, summary: 'What a client has left; by POST a top-up', statuses }],
      (request) => ipOf(parts, request.path.slice(start.length + 4).replace(/\/$/, '')),
    ),
    route(
      `${start}/resource`,
      [
        {
          path: `${start}/resource`,
          summary: 'What a resource has left; by POST a top-up',
          statuses,
          query: ['path', 'method', 'host'],
        },
      ],
      (request, given) => resourceOf(parts, request, given),
    ),
  ]
}

/** Fields of a body and of the query; the query counts first. */
type Given = Readonly<Record<string, unknown>>

async function handle(
  parts: RateLimitParts,
  targetOf: (request: Request, given: Given) => Target | RateLimitAnswer,
  request: Request,
  reply: Reply,
  lines: string,
): Promise<void> {
  const query = Object.fromEntries(new URLSearchParams(request.query))
  const isPost = request.method === 'POST'
  const body = isPost ? await readBody(request) : {}
  const answer = await (async (): Promise<RateLimitAnswer> => {
    if (body === undefined) return wrong('Invalid request body')
    if (isRefusal(body)) return { status: 503, body: { error: body.message }, lines: '\r\nRetry-After: 1' }
    const target = targetOf(request, { ...body, ...query })
    if ('status' in target) return target
    return isPost ? topUp(parts, request, target, body) : balance(parts, target)
  })().catch((error: unknown): RateLimitAnswer => {
    if (!(error instanceof BucketsUnreachable)) throw error
    parts.log.warn({ err: error, path: request.path }, 'a bucket could not be reached')
    return { status: 503, body: { error: 'Buckets cannot be reached now' }, lines: '\r\nRetry-After: 1' }
  })
  if (reply.aborted) return
  const { status, lines: more = '' } = answer
  answerSmall(request, reply, lines, { status, lines: noStore + more, json: answer.body })
}

/** The JSON object in a request's body; an absent body is an empty object. Undefined where it is no object. A refusal: `busy`. */
async function readBody(request: Request): Promise<Given | Refusal | undefined> {
  const bytes = await request.body(bodyMaxBytes)
  if (isRefusal(bytes)) return bytes.refused === 'busy' ? bytes : undefined
  if (bytes.length === 0) return {}
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Given) : undefined
  } catch {
    return undefined
  }
}

function wrong(error: string, more: object = {}): RateLimitAnswer {
  return { status: 400, body: { error, ...more } }
}

function ipOf({ clients, buckets }: RateLimitParts, text: string): Target | RateLimitAnswer {
  const client = clients.at(decoded(text))
  if (client === undefined) return wrong('Invalid IP address format')
  return {
    kind: 'ip',
    bucket: client.address,
    about: { ip: client.address },
    find: () => buckets.ofClient(client),
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replace(/\/$/, ''))
  } catch {
    return ''
  }
}

function resourceOf({ buckets }: RateLimitParts, request: Request, given: Given): Target | RateLimitAnswer {
  const field = (name: string): string | undefined => {
    const value = given[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const path = field('path')
  if (path === undefined) return wrong('Missing required parameter: path')
  const method = (field('method') ?? 'GET').toUpperCase()
  if (!methods.includes(method)) return wrong('Invalid HTTP method', { validMethods: methods })
  const host = field('host') ?? request.header('host')
  if (host === undefined) return wrong('Missing required parameter: host')
  if (!path.startsWith('/') || /\s/.test(path) || /\s/.test(host)) return wrong('Invalid path or host')
  const named: Named = { method, path, header: (name) => (name === 'host' ? host : undefined) }
  const about = { method, host: hostOf(named), path: pathOf(named) }
  return { kind: 'resource', bucket: resourceName(named), about, find: () => buckets.ofResource(named) }
}

async function balance(parts: RateLimitParts, target: Target): Promise<RateLimitAnswer> {
  const found = await target.find()
  if (found !== undefined) return { status: 200, body: stateOf(parts, target, found) }
  const message = 'Nothing was taken from this bucket lately: it is full'
  return { status: 404, body: { error: 'Bucket not found', message } }
}

/** Refills are computed at reading, so the balance is that of this moment. */
function stateOf(
  { buckets, clock }: RateLimitParts,
  target: Target,
  found: Balance,
): Record<string, unknown> {
  const { capacity, refillPerSecond: refillRate } = buckets.rules[target.kind]
  return { ...target.about, ...found, capacity, refillRate, lastRefill: clock.now() }
}

async function topUp(
  parts: RateLimitParts,
  request: Request,
  target: Target,
  body: Given,
): Promise<RateLimitAnswer> {
  const asker = parts.clients.of(request).address
  const paying = parts.payments?.topUp(request, target.bucket, asker)
  if (paying !== undefined) {
    const paid = await paying
    if (isDenial(paid)) {
      const { status } = paid
      if (status === 503 || status === 409) return { status, body: failed(paid.reason), lines: paid.lines }
      return { status: 402, body: failed(paid.reason), lines: paid.lines.replace(noStore, '') }
    }
    const { tokens: tokensAdded, amount: paymentAmount, multiplier: multiplierApplied } = paid
    return added(parts, target, { tokensAdded, paymentAmount, multiplierApplied }, paid.lines)
  }
  if (!parts.isAdmin(request)) {
    const offer = request.header('authorization') === undefined ? offerOf(parts, request) : undefined
    if (offer !== undefined) return offer
    const message = 'A payment or the admin key is needed'
    return { status: 401, body: { error: 'Unauthorized', message } }
  }
  const { tokens, tokenType = 'paid' } = body
  if (typeof tokens !== 'number' || !Number.isInteger(tokens) || tokens <= 0 || tokens > tokensMax) {
    return wrong('Invalid tokens value')
  }
  if (tokenType === 'regular') {
    return wrong('Regular token top-up not yet supported', { message: 'Regular tokens refill by themselves' })
  }
  if (tokenType !== 'paid') return wrong('Invalid tokenType', { message: 'tokenType must be "paid"' })
  await parts.buckets.credit(target.bucket, `admin:${randomUUID()}`, tokens)
  parts.log.info({ bucket: target.bucket, tokens }, 'the admin added tokens')
  return added(parts, target, { tokensAdded: tokens, tokenType, multiplierApplied: 1 }, '')
}

/** The offer of the smallest payment, for clients that pay what is offered. Undefined where nothing is sold. */
function offerOf({ payments }: RateLimitParts, request: Request): RateLimitAnswer | undefined {
  const denial = payments?.demand({ request, bytes: 0, contentType: jsonType })
  if (denial?.contentType !== jsonType) return undefined
  const { status, body, lines } = denial
  return { status, body: JSON.parse(body.toString()), lines: lines.replace(noStore, '') }
}

function failed(message: string): Record<string, string> {
  return { error: 'Payment failed', message }
}

async function added(
  parts: RateLimitParts,
  target: Target,
  topUp: object,
  lines: string,
): Promise<RateLimitAnswer> {
  const found = await target.find()
  const state = found === undefined ? target.about : stateOf(parts, target, found)
  return { status: 200, body: { ...state, topUp }, lines }
}

/** The part of the info answer about limits. */
export function limitsInfo({ rules }: Pick<Buckets, 'rules'>): Record<string, unknown> {
  const of = (kind: 'ip' | 'resource'): Record<string, number> => {
    const { capacity, refillPerSecond: refillRate } = rules[kind]
    return {
      capacity,
      refillRate,
      capacityBytes: capacity * 1024,
      refillRateBytesPerSec: refillRate * 1024,
    }
  }
  return { enabled: true, dataEgress: { buckets: { resource: of('resource'), ip: of('ip') } } }
}

/** What each client gets without paying. */
export function allowanceOf({ rules: { ip } }: Pick<Buckets, 'rules'>): {
  readonly bytes: number
  readonly bytesPerSecond: number
} {
  return { bytes: ip.capacity * 1024, bytesPerSecond: ip.refillPerSecond * 1024 }
}
