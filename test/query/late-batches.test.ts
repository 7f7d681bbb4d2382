/** Batches that have waited for content: what follows is answered by turns, so that others are answered in between. */
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import type { StableIndex } from '../../src/clickhouse/stable-index.js'
import { GraphqlOverHttp } from '../../src/query/graphql-over-http.js'
import { type HeaderSource, noHeaders, type SignedHeader } from '../../src/query/headers.js'
import type { Turn } from '../../src/query/query-effort.js'
import { queryLimits } from '../../src/query/query-limits.js'
import type { QueryAsk, QueryReply } from '../../src/query/query-messages.js'
import { QueryScheduler } from '../../src/query/scheduler.js'
import { eventually } from '../eventually.js'
import { bytesOf, manySegments } from './many-segments.js'

const batches = 20
const inBatch = 10
const queue = { waitingMax: 64, clientMax: 32, waitMs: 60_000 }

const ask = (body: unknown): QueryAsk => ({
  method: 'POST',
  query: '',
  contentType: 'application/json',
  body: Buffer.from(JSON.stringify(body)),
})

const signature = { query: '{ transactions(first: 1) { edges { node { signature } } } }' }
const quick = { query: '{ transactions(first: 1) { edges { node { id } } } }' }

t.test('what follows a wait in batches of one client keeps no others waiting', async (t) => {
  const index = new ChainIndex(openCatalogTables(await manySegments()).environment, new Generations())
  let arrive: (header: SignedHeader) => void = () => undefined
  const header = new Promise<SignedHeader>((resolve) => {
    arrive = resolve
  })
  let begun = 0
  const headers: HeaderSource = {
    header: () => {
      begun += 1
      return header
    },
  }
  const limits = { ...queryLimits, timeMs: 60_000, wallMs: 60_000 }
  const answers = new GraphqlOverHttp({ index, headers, clock: systemClock, limits })
  const log = { error: (fault: unknown) => t.fail(String(fault)) }
  const scheduler = new QueryScheduler({ answers, queue, clock: systemClock, work: systemClock, log })
  const order: string[] = []
  const noted = (name: string, reply: Promise<QueryReply>): Promise<QueryReply> =>
    reply.finally(() => order.push(name))
  const batch = [signature, ...new Array(inBatch - 1).fill(quick)]
  const greedy = Array.from({ length: batches }, () =>
    noted(
      'greedy',
      scheduler.ask(ask(batch), '198.51.100.7', () => false),
    ),
  )
  await noted(
    'before',
    scheduler.ask(ask(quick), '203.0.113.1', () => false),
  )
  await eventually('all batches wait', () => begun === batches)
  arrive({ signature: bytesOf('signature', 512), owner: bytesOf('owner', 512) })
  const other = noted(
    'other',
    scheduler.ask(ask(quick), '203.0.113.1', () => false),
  )
  const replies = await Promise.all(greedy)
  await other
  t.equal(order.indexOf('before'), 0)
  t.ok(order.indexOf('other') < batches / 2, `after ${order.indexOf('other')} of ${batches} batches`)
  for (const reply of replies) {
    t.ok('body' in reply)
    const text = 'body' in reply ? Buffer.from(reply.body as Uint8Array).toString() : '[]'
    t.equal((JSON.parse(text) as unknown[]).length, inBatch)
  }
})

t.test('each field of a query that waits for another engine is written in a turn of its own', async (t) => {
  const index = new ChainIndex(openCatalogTables(await manySegments()).environment, new Generations())
  // It has no block yet, which it states later.
  const stable = { heights: async () => pause(1) } as unknown as StableIndex
  const limits = { ...queryLimits, timeMs: 60_000, wallMs: 60_000 }
  const answers = new GraphqlOverHttp({ index, headers: noHeaders, clock: systemClock, limits, stable })
  let turns = 0
  const turn: Turn = async (work) => {
    turns += 1
    return work()
  }
  const field = 'transactions(first: 1) { edges { node { id } } }'
  const query = `{ a: ${field} b: ${field} c: ${field} }`
  const answer = await answers.answer(ask({ query }), () => false, 'client', turn)
  const { data } = JSON.parse(answer.body) as { data: Record<string, { edges: unknown[] }> }
  t.strictSame(
    Object.values(data).map(({ edges }) => edges.length),
    [1, 1, 1],
  )
  t.equal(turns, 3)
})
