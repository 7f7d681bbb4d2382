import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isDiskError } from '../store/disk-error.js'
import type { BaseLayer, GrowingLayer } from './base-layer.js'
import { facilitate, facilitatorPath } from './devnet-facilitator.js'
import { type Listening, listening } from './listening.js'
import { jsonReply, type NodeReply, textReply } from './node-reply.js'
import { read } from './reads.js'
import { write } from './writes.js'

/** Nodes refuse larger ones: 10 MiB of inline data as base64url, and a header. */
const bodyMax = 15 << 20

/** Clients of nodes try again after such a status. */
const fullReply = textReply('The disk of this node is full or fails: nothing was changed.', 503)

/** Serves a chain over the HTTP interface of nodes. A chain that cannot grow answers 405 to what would change it. */
export async function serveChain(
  layer: BaseLayer | GrowingLayer,
  host: string,
  port: number,
): Promise<Listening> {
  const server = createServer((request, response) => {
    answer(layer, request).then(
      (reply) => send(request, response, reply),
      (error: unknown) => {
        // The change was undone, and the chain is what it was before.
        if (isDiskError(error)) return send(request, response, fullReply)
        // A bug: answers this request with it, then ends the process, because the chain may be wrong.
        response.writeHead(500).end()
        setImmediate(() => {
          throw error
        })
        return undefined
      },
    )
  })
  server.keepAliveTimeout = 30_000
  return listening(server, host, port)
}

async function answer(layer: BaseLayer | GrowingLayer, request: IncomingMessage): Promise<NodeReply> {
  const segments = segmentsOf(request.url ?? '/')
  const method = request.method ?? 'GET'
  if (segments === undefined) return jsonReply({ error: 'bad_request' }, 400)
  if (method === 'OPTIONS') return textReply('OK')
  const isPayment = 'submit' in layer && segments[0] === facilitatorPath
  if (method === 'GET' || method === 'HEAD') {
    const reply = isPayment ? facilitate(segments[1], undefined) : read(layer, segments)
    if (reply !== undefined) return reply
  } else if (method !== 'POST') return textReply('Method Not Allowed', 405)
  const body = await bodyOf(request)
  if (body === undefined) return textReply('Payload too large', 413)
  const settled = isPayment ? facilitate(segments[1], body) : undefined
  if (settled !== undefined) return settled
  const reply = 'submit' in layer ? write(layer, method, segments, body) : undefined
  if (reply !== undefined) return reply
  return method === 'POST' && !('submit' in layer)
    ? textReply('This node is read-only.', 405)
    : jsonReply({ error: 'Request type not found.' }, 400)
}

function segmentsOf(target: string): string[] | undefined {
  const path = target.split('?', 1)[0] ?? ''
  try {
    return path.replace(/^\//, '').replace(/\/$/, '').split('/').map(decodeURIComponent)
  } catch {
    return undefined
  }
}

/** The whole body as text; undefined where it is too large or incomplete. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const pieces: Buffer[] = []
  let size = 0
  if (Number(request.headers['content-length'] ?? 0) > bodyMax) return undefined
  try {
    // The rest of a body that is too large is left unread, and the socket open, so that the client gets the answer.
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += piece.length
      if (size > bodyMax) return undefined
      pieces.push(piece)
    }
  } catch {
    return undefined
  }
  return Buffer.concat(pieces).toString('utf8')
}

async function send(request: IncomingMessage, response: ServerResponse, reply: NodeReply): Promise<void> {
  const { status, type, body } = reply
  // Node's own date has a timer, which wakes the thread once more after each second with a request.
  response.sendDate = false
  const headers = {
    date: new Date().toUTCString(),
    'content-type': type,
    'access-control-allow-origin': '*',
    'access-control-allow-headers': '*',
    ...(request.complete ? {} : { connection: 'close' }),
  }
  if (typeof body === 'string' || body instanceof Uint8Array) {
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
    response.end(request.method === 'HEAD' ? undefined : body)
    return
  }
  response.writeHead(status, headers)
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  try {
    await pipeline(Readable.from(body), response)
  } catch {
    // The client left in the middle, so no answer is sent.
    response.destroy()
  }
}
