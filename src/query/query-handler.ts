import { isRefusal, type Refusal } from '../format/refusal.js'
import type { Reply, Request, Sent } from '../http/exchange.js'
import { statusOf } from '../http/status.js'
import type { Content } from '../store/content.js'
import { answerType } from './media.js'
import type { QueryAsk, QueryReply, QueryResponse } from './query-messages.js'
import { refusedWith } from './response.js'

/** Answers GraphQL over HTTP. `lines` go first into the head of whatever is answered. */
export type QueryHandler = (request: Request, reply: Reply, lines: string) => Promise<void>

/** The query threads, as an edge thread uses them (lines.ts). */
export interface QueryThreads {
  /** Never rejects. `onGone` registers a callback for the client's departure. */
  ask(request: QueryAsk, client: string, onGone: (left: () => void) => void): Promise<QueryReply>
  /**
   * So many bytes of an answer wait for their client, until the function that comes back is called. `drop` ends the answer where
   * others need the room.
   */
  holding(client: string, bytes: number, drop: () => void): () => void
}

export interface QueryRouteParts {
  readonly threads: QueryThreads
  /** Bytes of a request's body at most. */
  readonly sizeMaxBytes: number
  /** Whose turn a request takes. */
  clientOf(request: Request): string
  /** Called for each request for which there was no room. */
  readonly onBusy?: () => void
}

/** Bodies up to this size are handed to the HTTP server at once, without counting them as held. */
const smallBytes = 16 * 1024
/** Retry-After of a client that was refused because all places were taken. */
const againSeconds = 1

/**
 * The handler of the query address on an edge thread: reads the request, has it answered by a query thread, writes
 * the answer. The query is not parsed here, so the work on this thread does not depend on the query, only on its
 * size.
 */
export function createQueryHandler(parts: QueryRouteParts): QueryHandler {
  const { threads, sizeMaxBytes, clientOf, onBusy } = parts
  return async (request, reply, lines) => {
    // Everything is read from the request before the first await, because the request is not valid after it.
    const { method, query } = request
    const [accept, contentType] = [request.header('accept'), request.header('content-type')]
    const client = clientOf(request)
    const body = method === 'POST' ? await request.body(sizeMaxBytes) : undefined
    if (isRefusal(body)) {
      const refused = { status: statusOf[body.refused], message: body.message }
      await send(reply, lines, refusedWith(refused, answerType(accept)), undefined)
      return
    }
    const queryRequest: QueryAsk = {
      method,
      query,
      ...(accept === undefined ? {} : { accept }),
      ...(contentType === undefined ? {} : { contentType }),
      ...(body === undefined ? {} : { body }),
    }
    const answer = await threads.ask(queryRequest, client, (left) => reply.onAbort(left))
    if (isRefusal(answer) && answer.refused === 'busy') onBusy?.()
    const response = isRefusal(answer) ? refusalResponse(answer, accept) : answer
    const held = typeof response.body === 'string' ? undefined : new HeldBody(response.body)
    const sent = send(reply, lines, response, held)
    if (sent === undefined || held === undefined) return
    if (sent instanceof Promise) {
      const release = threads.holding(client, held.sizeBytes, () => held.drop())
      await sent
      release()
    }
    held.drop()
  }
}

/** The body of a large answer, which its client may take slowly, or which has to make room. */
class HeldBody implements Content {
  readonly sizeBytes: number
  #isDropped = false

  constructor(private readonly bytes: Uint8Array) {
    this.sizeBytes = bytes.length
  }

  read(start: number, end: number): Uint8Array | undefined {
    return this.#isDropped ? undefined : this.bytes.subarray(start, end)
  }

  ready(): Promise<boolean> {
    return Promise.resolve(!this.#isDropped)
  }

  close(): void {
    this.drop()
  }

  /**
   * Frees its memory at once: the client gets no more of it. Otherwise some 60 MB of answers a second make V8 collect the whole
   * heap of this thread several times a second, and all its other requests wait meanwhile.
   */
  drop(): void {
    if (this.#isDropped) return
    this.#isDropped = true
    structuredClone(undefined, { transfer: [this.bytes.buffer as ArrayBuffer] })
  }
}

function refusalResponse(refusal: Refusal, accept: string | undefined): QueryResponse {
  const isBusy = refusal.refused === 'busy'
  const refused = { status: isBusy ? 503 : 500, message: isBusy ? refusal.message : 'Something went wrong' }
  const more = isBusy ? [`Retry-After: ${againSeconds}`] : []
  return refusedWith(refused, answerType(accept), more, isBusy ? 'BUSY' : 'INTERNAL_SERVER_ERROR')
}

/** Undefined where the server keeps the body; a promise where the client does not take all of it at once. */
function send(
  reply: Reply,
  first: string,
  { status, lines, body }: Exclude<QueryReply, Refusal>,
  held: HeldBody | undefined,
): Sent | Promise<Sent> | undefined {
  const head = lines.join('\r\n')
  const block = first === '' ? head : `${first}\r\n${head}`
  if (held === undefined || body.length <= smallBytes) {
    reply.end({ status, block }, body)
    return undefined
  }
  return reply.stream({ status, block }, [{ start: 0, end: held.sizeBytes }], held)
}
