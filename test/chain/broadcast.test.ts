import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import {
  Broadcast,
  type BroadcastOptions,
  commonFailure,
  type NodeOutcome,
} from '../../src/chain/broadcast.js'
import { eventually } from '../eventually.js'
import { nodeThat, patient } from './hostile.js'

const usual: BroadcastOptions = {
  successesMin: 3,
  concurrency: 3,
  abortMs: 30_000,
  responseMs: 30_000,
  perNodeMax: 20,
}

/** Nodes that answer each with its status, or never. */
async function outcomeOf(
  t: Test,
  statuses: readonly (number | 'never')[],
  options: Partial<BroadcastOptions> = {},
) {
  const nodes = await Promise.all(
    statuses.map((status) =>
      nodeThat(t, (request, response: ServerResponse) => {
        request.resume()
        if (status !== 'never') response.writeHead(status).end('{}')
      }),
    ),
  )
  const all = { ...patient, nodes: nodes.map(({ url }) => url) }
  const broadcast = new Broadcast(all, { ...usual, ...options }, systemClock)
  t.teardown(() => broadcast.close())
  const outcome = await broadcast.chunk('{}')
  return { outcome, reached: nodes.filter(({ requested }) => requested.length > 0).length }
}

t.test('enough nodes must take a chunk, all of them where few are configured', async (t) => {
  t.match((await outcomeOf(t, [200])).outcome, { enough: true, successCount: 1, failureCount: 0 })
  t.match((await outcomeOf(t, [200, 500])).outcome, { enough: false, successCount: 1, failureCount: 1 })
  t.match((await outcomeOf(t, [500, 200, 208, 303])).outcome, { enough: true, successCount: 3 })
  const many = await outcomeOf(t, [200, 200, 200, 200, 200, 200], { concurrency: 1 })
  t.equal(many.outcome.successCount, 3)
  t.equal(many.reached, 3, 'nobody is told in vain')
})

/** Preferred nodes and others, each with its status. */
async function preferring(
  t: Test,
  preferred: readonly number[],
  others: readonly number[],
  options: Partial<BroadcastOptions> & { readonly preferredMin: number },
) {
  const open = (statuses: readonly number[]) =>
    Promise.all(
      statuses.map((status) =>
        nodeThat(t, (request, response: ServerResponse) => {
          request.resume()
          response.writeHead(status).end('{}')
        }),
      ),
    )
  const [first, rest] = [await open(preferred), await open(others)]
  const terms = { nodes: first.map(({ url }) => url), successesMin: options.preferredMin }
  const all = { ...patient, nodes: rest.map(({ url }) => url) }
  const broadcast = new Broadcast(
    all,
    { ...usual, concurrency: 1, ...options, preferred: terms },
    systemClock,
  )
  t.teardown(() => broadcast.close())
  const outcome = await broadcast.chunk('{}')
  const reached = [first, rest].map((nodes) => nodes.filter(({ requested }) => requested.length > 0).length)
  return { outcome, reached }
}

t.test('preferred nodes get a chunk first, and so many of them must take it', async (t) => {
  const well = await preferring(t, [200, 200, 200], [200], { successesMin: 2, preferredMin: 2 })
  t.match(well, { outcome: { enough: true, successCount: 2, preferredSuccessCount: 2 }, reached: [2, 0] })
  const filled = await preferring(t, [200, 500], [200, 200], { successesMin: 3, preferredMin: 1 })
  t.match(filled, { outcome: { enough: true, successCount: 3, preferredSuccessCount: 1 }, reached: [2, 2] })
  const lacking = await preferring(t, [200, 500, 500], [200, 200, 200], { successesMin: 2, preferredMin: 2 })
  t.match(lacking.outcome, { enough: false, preferredSuccessCount: 1 })
  t.same(lacking.reached, [3, 1], 'others are told no more than must take it')
  const few = await preferring(t, [200], [200], { successesMin: 2, preferredMin: 5 })
  t.match(few.outcome, { enough: true, preferredSuccessCount: 1 }, 'all of them where few are configured')
  const none = await preferring(t, [], [200, 200], { successesMin: 2, preferredMin: 2 })
  t.match(none.outcome, { enough: true, preferredSuccessCount: 2 }, 'without a list all are preferred')
})

t.test('the bound of final refusals can be set', async (t) => {
  const { reached } = await outcomeOf(t, [400, 400, 400, 200], { concurrency: 1, refusalsMax: 2 })
  t.equal(reached, 2)
})

t.test('after five final refusals no other node is asked', async (t) => {
  const { outcome, reached } = await outcomeOf(t, [400, 400, 400, 400, 400, 400, 400, 200], {
    concurrency: 1,
  })
  t.equal(reached, 5)
  t.match(outcome, { enough: false, successCount: 0, failureCount: 5 })
  t.equal(commonFailure(outcome.results), 400)
})

t.test('a node that does not answer is given up, and reported as late', async (t) => {
  const { outcome } = await outcomeOf(t, ['never', 200, 200, 200], { responseMs: 2000, successesMin: 4 })
  t.match(outcome, { enough: false, successCount: 3 })
  const late = outcome.results.find(({ success }) => !success)
  t.match(late, { statusCode: 504, timedOut: true, canceled: false })
  const gone = new Broadcast({ ...patient, nodes: ['http://127.0.0.1:1'] }, usual, systemClock)
  t.teardown(() => gone.close())
  t.match((await gone.chunk('{}')).results, [{ statusCode: 502, timedOut: false }])
})

t.test('a node with too many posts under way is skipped', async (t) => {
  const node = await nodeThat(t, (request) => void request.resume())
  const options = { ...usual, abortMs: 500, responseMs: 20_000, perNodeMax: 2 }
  const broadcast = new Broadcast({ ...patient, nodes: [node.url] }, options, systemClock)
  t.teardown(() => broadcast.close())
  const outcomes = [1, 2, 3].map(() => broadcast.chunk('{}'))
  t.match(await Promise.race(outcomes), { results: [{ skipped: true, statusCode: 503 }] })
  t.equal(node.requested.length, 2)
  await broadcast.close()
})

t.test('a client with many posts does not keep the others from a node', async (t) => {
  const held: (() => void)[] = []
  const node = await nodeThat(t, (request, response) => {
    request.resume()
    held.push(() => void response.writeHead(400).end('{}'))
  })
  const broadcast = new Broadcast({ ...patient, nodes: [node.url] }, { ...usual, perNodeMax: 4 }, systemClock)
  t.teardown(() => broadcast.close())
  const refused: string[] = []
  const post = (client: string): Promise<void> =>
    broadcast.chunk('{}', client).then(() => void refused.push(client))
  const posts = Array.from({ length: 30 }, () => post('203.0.113.1'))
  await eventually('the client has its share of the places', () => held.length === 2)
  posts.push(post('198.51.100.1'))
  await eventually('another finds one', () => held.length === 3)
  for (let answered = 0; answered < posts.length; answered += 1) {
    await eventually('a post came', () => held.length > answered)
    held[answered]?.()
  }
  await Promise.all(posts)
  t.ok(refused.indexOf('198.51.100.1') < 8, `answered as number ${refused.indexOf('198.51.100.1')}`)
})

t.test(
  'the status of a failure is the most common one; between equals the mistake of the client',
  async (t) => {
    const of = (...statuses: number[]): NodeOutcome[] =>
      statuses.map((statusCode) => ({
        peer: '',
        success: statusCode === 200,
        statusCode,
        canceled: false,
        timedOut: false,
      }))
    t.equal(commonFailure([]), 500, 'nobody was told')
    t.equal(commonFailure(of(200, 502, 400, 502)), 502)
    t.equal(commonFailure(of(502, 400)), 400)
    t.equal(commonFailure(of(504, 502)), 502)
  },
)

t.test('a chunk that enough nodes took waits for no other one', async (t) => {
  const held: ServerResponse[] = []
  const slow = await nodeThat(t, (request, response: ServerResponse) => {
    request.resume()
    held.push(response)
  })
  const quick = await nodeThat(t, (request, response: ServerResponse) => {
    request.resume()
    response.writeHead(200).end('{}')
  })
  const options = { ...usual, successesMin: 1, concurrency: 2, perNodeMax: 1 }
  const broadcast = new Broadcast({ ...patient, nodes: [slow.url, quick.url] }, options, systemClock)
  t.teardown(() => broadcast.close())
  t.match(await broadcast.chunk('{"number":1}'), { enough: true })
  await eventually('the slow node has the first one', () => held.length === 1)
  t.match(await broadcast.chunk('{"number":22}'), { enough: true })
  held[0]?.writeHead(200).end('{}')
  // Whoever waited for the place of the slow node has it before this one.
  void broadcast.chunk('{"number":3}')
  await eventually('the slow node has another one', () => held.length === 2)
  t.equal(held[1]?.req.headers['content-length'], String('{"number":3}'.length))
})
