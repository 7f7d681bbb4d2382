import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isLiar, type Lie, lieOf } from './lies.js'
import { type Listening, listening } from './listening.js'

export interface LiarsOptions {
  /** Base URL of the gateway whose answers are changed. */
  readonly truth: () => string | undefined
  /** Ids that are given for others: two at least, so that one differs from the requested id. Empty until they are known. */
  readonly others: () => readonly string[]
}

/** More connections than these are not accepted: a page and its worker need a dozen. */
const connectionsMax = 64
/** Requests to the gateway at once. */
const asksMax = 16
/** Questions by GraphQL are short. */
const bodyMax = 64 * 1024
/** How long the gateway may send nothing. */
const patienceMs = 30_000

const crossOrigin = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': '*',
  'access-control-expose-headers': '*',
}

/** Headers of one connection only (RFC 9110, 7.6.1), and those that this server sets itself. */
const ownLines = /^(connection|keep-alive|transfer-encoding|trailer|upgrade|date|access-control-.*)$/

/**
 * Gateways that lie, for demonstrations and tests: `/{kind}` below the address is the base URL of one. Each forwards to the
 * true gateway and changes its answer. Listens on 127.0.0.1 at any free port.
 */
export async function serveLiars(options: LiarsOptions): Promise<Listening> {
  // A new connection each time: one that the gateway closes in between would be a failure, and no lie.
  const agent = new Agent({ maxSockets: asksMax })
  const server = createServer((incoming, response) => {
    answer(options, agent, incoming, response).catch((error: Error) => {
      // The gateway or the client broke off: an answer that began ends short, so that nobody takes it for a whole one.
      if (response.headersSent) response.destroy()
      else refuse(response, 502, `the gateway did not answer: ${error.message}`)
    })
  })
  server.maxConnections = connectionsMax
  const { url, close } = await listening(server, '127.0.0.1', 0)
  return {
    url,
    close: () => {
      agent.destroy()
      server.closeAllConnections()
      return close()
    },
  }
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...crossOrigin, 'content-type': 'text/plain; charset=utf-8' }).end(`${text}\n`)
}

async function answer(
  { truth, others }: LiarsOptions,
  agent: Agent,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = 'GET', url = '/' } = incoming
  const [, kind = '', path = ''] = /^\/([^/]*)(.*)$/.exec(url) ?? []
  if (method === 'OPTIONS') return void response.writeHead(204, crossOrigin).end()
  if (!isLiar(kind) || !path.startsWith('/')) return refuse(response, 404, 'no such liar')
  const isQuestion = method === 'POST' && path === '/graphql'
  if (method !== 'GET' && method !== 'HEAD' && !isQuestion) return refuse(response, 405, 'it only answers')
  const [gateway, known] = [truth(), others()]
  if (gateway === undefined || known.length < 2)
    return refuse(response, 503, 'the gateway has not started yet')
  const lie = lieOf(kind, { path, range: incoming.headers.range }, known)
  if (lie.json !== undefined) {
    response.writeHead(200, { ...crossOrigin, 'content-type': 'application/json' })
    return void response.end(method === 'HEAD' ? undefined : lie.json)
  }
  const body = isQuestion ? await bodyOf(incoming) : undefined
  if (isQuestion && body === undefined) return refuse(response, 413, 'the question is too long')
  const original = await ask(agent, gateway, incoming, lie, body)
  const { statusCode = 502 } = original
  response.writeHead(statusCode, { ...linesOf(original, lie), ...crossOrigin })
  const size = Number(original.headers['content-length'] ?? 0)
  if (lie.flips && statusCode < 300 && size > 0) await pipeline(original, flipping(size >> 1), response)
  else await pipeline(original, response)
}

/** The gateway's answer, once its head is here. */
function ask(
  agent: Agent,
  gateway: string,
  { method, headers }: IncomingMessage,
  { path, range }: Lie,
  body: Buffer | undefined,
): Promise<IncomingMessage> {
  const type = headers['content-type']
  const sent = {
    // What is compressed cannot be changed in one place.
    'accept-encoding': 'identity',
    ...(range === undefined ? {} : { range }),
    ...(type === undefined || body === undefined ? {} : { 'content-type': type }),
    ...(body === undefined ? {} : { 'content-length': body.length }),
  }
  return new Promise((resolve, reject) => {
    const asking = request(gateway + path, { agent, method, headers: sent, timeout: patienceMs }, resolve)
    asking.on('timeout', () => asking.destroy(new Error('it says nothing')))
    asking.on('error', reject).end(body)
  })
}

/** The gateway's headers; a part that was moved is labelled as the requested one. */
function linesOf({ headers }: IncomingMessage, { contentRange }: Lie): Record<string, string | string[]> {
  const kept = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || ownLines.test(name) ? [] : [[name, value] as const],
  )
  const stated = headers['content-range']
  const moved =
    stated === undefined || contentRange === undefined ? {} : { 'content-range': contentRange(stated) }
  return { ...Object.fromEntries(kept), ...moved }
}

/** Changes one bit of the byte at `place`. */
function flipping(place: number): Transform {
  let at = 0
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      const here = place - at
      at += piece.length
      if (here < 0 || here >= piece.length) return done(null, piece)
      const changed = Buffer.from(piece)
      changed[here] = (changed[here] ?? 0) ^ 1
      done(null, changed)
    },
  })
}

/** Undefined where it is too long. */
async function bodyOf(incoming: IncomingMessage): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > bodyMax) return undefined
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}
