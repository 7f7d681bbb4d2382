import { systemClock } from '../../src/actor/clock.js'
import type { Stopwatch } from '../../src/catalog/effort.js'
import type { IndexRequest } from '../../src/catalog/index-protocol.js'
import type { FlushLimits } from '../../src/catalog/segment-upkeep.js'
import type { StableIndex } from '../../src/clickhouse/stable-index.js'
import { serve } from '../../src/http/listen.js'
import { GraphqlOverHttp } from '../../src/query/graphql-over-http.js'
import { type HeaderSource, noHeaders } from '../../src/query/headers.js'
import { createQueryHandler } from '../../src/query/query-handler.js'
import { type QueryLimits, queryLimits } from '../../src/query/query-limits.js'
import type { Environment } from '../../src/store/lmdb.js'
import { openHouse } from '../catalog/index-model.js'

interface RigOptions {
  readonly headers?: HeaderSource
  readonly limits?: Partial<QueryLimits>
  /** Counts the time that queries use. */
  readonly work?: Stopwatch
  /** Gives the environment that readers use. */
  readonly read?: (environment: Environment) => Environment
  readonly flush?: FlushLimits
  /** Milliseconds since 1970, as the keeper has them. */
  readonly now?: () => number
  /** Older blocks. */
  readonly stable?: StableIndex
}

/** The query address on a real socket, over an index that was given these messages. */
export async function openRig(
  requests: readonly IndexRequest[],
  { headers = noHeaders, limits = {}, work, read, flush, now, stable }: RigOptions = {},
) {
  const house = openHouse(undefined, read, flush, undefined, now)
  for (const request of requests) await house.apply([request])
  const thrown: unknown[] = []
  const all = { ...queryLimits, timeMs: 60_000, wallMs: 60_000, ...limits }
  const parts = { index: house.index, headers, clock: systemClock, limits: all, stable }
  const answers = new GraphqlOverHttp(work === undefined ? parts : { ...parts, work })
  const handle = createQueryHandler({
    threads: {
      ask: async (request) => answers.answer(request),
      holding: () => () => undefined,
    },
    sizeMaxBytes: all.sizeMaxBytes,
    clientOf: (request) => request.remoteAddress,
  })
  const server = serve(
    (request, reply) => {
      Promise.resolve(handle(request, reply, 'X-First: line')).catch((error: unknown) => thrown.push(error))
    },
    { host: '127.0.0.1', port: 0, stallMs: 5000, requestsMax: 100, onThrow: (error) => thrown.push(error) },
  )
  await server.listening
  const url = `http://127.0.0.1:${server.port}/graphql`
  const post = (body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  /** The whole answer of a query. */
  const ask = async (query: string, variables?: object): Promise<QueryResult> =>
    (await (await post({ query, variables })).json()) as QueryResult
  /** The whole answer of a query, past the socket: for thousands of them. */
  const askInside = async (query: string, variables?: object): Promise<QueryResult> => {
    const body = Buffer.from(JSON.stringify({ query, variables }))
    const answer = await answers.answer({ method: 'POST', query: '', contentType: 'application/json', body })
    return JSON.parse(answer.body) as QueryResult
  }
  const close = async (): Promise<void> => {
    await server.close(100)
    await house.close()
  }
  return { ...house, url, post, ask, askInside, thrown, close }
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Loose = any

export interface QueryResult {
  readonly data: Loose
  readonly errors?: readonly { readonly message: string; readonly extensions?: Record<string, unknown> }[]
  readonly extensions?: Record<string, unknown>
}
