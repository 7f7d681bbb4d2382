import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { Generations } from '../../src/catalog/generations.js'
import { ChainIndex } from '../../src/catalog/index-reader.js'
import { openCatalogTables } from '../../src/catalog/tables.js'
import type { Chain } from '../../src/chain/chain.js'
import { refuse } from '../../src/format/refusal.js'
import type { SignedHeader } from '../../src/query/headers.js'
import { LateAnswers } from '../../src/query/late-answers.js'
import { MinedHeaders } from '../../src/query/mined-headers.js'
import { Answerer, type QueryAnswer } from '../../src/query/query-answerer.js'
import { queryLimits } from '../../src/query/query-limits.js'
import { collectGarbage } from '../collect-garbage.js'
import { bytesOf, manySegments } from './many-segments.js'

t.test('answers that wait have a bound together: the largest waits no longer', async (t) => {
  const waiting = new LateAnswers(100)
  const never = new Promise<void>(() => undefined)
  let arrive = (): void => undefined
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve
  })
  const small = waiting.until(arrived, 20)
  const large = waiting.until(never, 70)
  t.equal(waiting.bytes, 90)
  const next = waiting.until(arrived, 30)
  t.equal(await large, false)
  t.equal(waiting.bytes, 50)
  t.equal(await waiting.until(never, 101), false, 'also where it is the one that comes')
  arrive()
  t.same(await Promise.all([small, next]), [true, true])
  t.equal(waiting.bytes, 0)
})

t.test('many large answers that wait take no memory and nothing from a small one', async (t) => {
  const index = new ChainIndex(openCatalogTables(await manySegments()).environment, new Generations())
  let arrive: (header: SignedHeader) => void = () => undefined
  const header = new Promise<SignedHeader>((resolve) => {
    arrive = resolve
  })
  const limits = { ...queryLimits, timeMs: 60_000, wallMs: 60_000, waitingMaxBytes: 8 * 2 ** 20 }
  const answerer = new Answerer({ index, headers: { header: () => header }, clock: systemClock, limits })
  const ask = (query: string): QueryAnswer | Promise<QueryAnswer> =>
    answerer.answer({ query, operationName: null, variables: null }, answerer.effort())
  const small = ask('{ transactions(first: 5) { edges { node { signature } } } }')
  const names = Array.from({ length: 50 }, (_, at) => `a${at}: signature`).join(' ')
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const large = Array.from({ length: 100 }, () =>
    ask(`{ transactions(first: 100) { edges { node { ${names} } } } }`),
  )
  collectGarbage()
  const grown = process.memoryUsage().heapUsed - before
  // Each would be 3.4 million characters.
  t.ok(grown < 100 * 2 ** 20, `${grown} bytes`)
  const early = await Promise.all(large.slice(0, -2))
  t.ok(early.every(({ errors }) => errors[0]?.extensions.code === 'UPSTREAM_UNAVAILABLE'))
  t.same(JSON.parse(early[0]?.text ?? '').data.transactions.edges[0].node.a0, '')
  arrive({ signature: bytesOf('signature', 512), owner: bytesOf('owner', 512) })
  const { errors, text } = await small
  t.same(errors, [])
  const { edges } = JSON.parse(text).data.transactions
  t.equal(edges[4].node.signature, bytesOf('signature', 512).toString('base64url'))
})

t.test('what arrives is counted: no answer becomes larger than it may be', async (t) => {
  const index = new ChainIndex(openCatalogTables(await manySegments()).environment, new Generations())
  const headers = {
    header: async () => ({ signature: bytesOf('long', 20_000), owner: bytesOf('owner', 512) }),
  }
  const limits = { ...queryLimits, timeMs: 60_000, wallMs: 60_000, answerMaxBytes: 2 ** 20 }
  const answerer = new Answerer({ index, headers, clock: systemClock, limits })
  const ask = async (first: number, names: number): Promise<QueryAnswer> => {
    const fields = Array.from({ length: names }, (_, at) => `a${at}: signature`).join(' ')
    const query = `{ transactions(first: ${first}) { edges { node { ${fields} } } } }`
    return answerer.answer({ query, operationName: null, variables: null }, answerer.effort())
  }
  t.same((await ask(10, 1)).errors, [])
  for (const [first, names] of [
    [100, 1],
    [10, 200],
  ] as const) {
    const { errors, text } = await ask(first, names)
    t.match(errors, [{ extensions: { code: 'ANSWER_TOO_LARGE' } }])
    t.ok(text.length < 1000)
  }
})

t.test('a signature that only nodes have is fetched by turns of the client that queries', async (t) => {
  const index = new ChainIndex(openCatalogTables(await manySegments()).environment, new Generations())
  const absent = refuse('unknown', 'client', 'nothing here has it')
  const clients: unknown[] = []
  const transaction: Chain['transaction'] = async (_, { client } = {}) => {
    clients.push(client)
    return absent
  }
  const headers = new MinedHeaders({ header: async () => absent }, index, { transaction })
  const answerer = new Answerer({ index, headers, clock: systemClock, limits: queryLimits })
  const query = '{ transactions(first: 5) { edges { node { signature } } } }'
  const request = { query, operationName: null, variables: null }
  await answerer.answer(
    request,
    answerer.effort(() => false, '198.51.100.7'),
  )
  t.same(clients, Array(5).fill('198.51.100.7'))
})

t.test('what is not here in time is fetched no more', async (t) => {
  // Timers of the clock let a process end.
  const alive = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(alive))
  const index = new ChainIndex(openCatalogTables(await manySegments()).environment, new Generations())
  const absent = refuse('unknown', 'client', 'nothing here has it')
  let given = 0
  let hasLeft = false
  const transaction: Chain['transaction'] = (_, { signal } = {}) =>
    new Promise((resolve) => {
      hasLeft = true
      signal?.addEventListener('abort', () => {
        given += 1
        resolve(absent)
      })
    })
  const headers = new MinedHeaders({ header: async () => absent }, index, { transaction })
  const query = '{ transactions(first: 5) { edges { node { signature } } } }'
  const answered = async (waitMs: number, isGone?: () => boolean): Promise<void> => {
    const limits = { ...queryLimits, waitMs }
    const answerer = new Answerer({ index, headers, clock: systemClock, limits })
    await answerer.answer({ query, operationName: null, variables: null }, answerer.effort(isGone))
  }
  await answered(50)
  t.equal(given, 5)
  hasLeft = false
  await answered(3_600_000, () => hasLeft)
  t.ok(given > 5, 'nor what a client wants that has left')
})
