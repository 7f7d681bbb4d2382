import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Requester } from '../../src/actor/requester.js'
import { ChunkHolders } from '../../src/chain/chunk-holders.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import type { ChainOptions } from '../../src/chain/remote-chain-options.js'
import { isRefusal, refuse } from '../../src/format/refusal.js'
import { chainSources } from '../../src/source/roots/chain-sources.js'
import { inOrder } from '../../src/source/upstream/in-order.js'
import { taken, wantedOf } from '../conformance/source.js'
import { eventually } from '../eventually.js'
import { HandClock } from '../names/hand-clock.js'
import { weave } from '../source/weave.js'
import { nodeThat, patient } from './hostile.js'

const answer = JSON.stringify({ chunk: 'AAEC', data_path: Buffer.alloc(64).toString('base64url') })

type Act = (request: IncomingMessage, response: ServerResponse) => void

const having: Act = (request, response) => {
  if (request.url?.startsWith('/chunk/') === true) response.end(answer)
  else response.writeHead(404).end()
}
const lacking: Act = (_, response) => response.writeHead(404).end()
const silent: Act = () => undefined

/** Chunks that were requested of a node, without the two forms of each request. */
function offsetsOf({ requested }: { readonly requested: readonly string[] }): string[] {
  return [...new Set(requested.map((line) => line.replace(/^\D+2?\//, '')))]
}

/** Time stands still until a test turns it: no node is queried because another one is slow. */
async function stage(
  t: Test,
  { preferred, others }: { readonly preferred: readonly Act[]; readonly others: readonly Act[] },
  options: Partial<ChainOptions> = {},
  clock = new HandClock(),
  holders = new ChunkHolders(clock),
) {
  const open = (acts: readonly Act[]) => Promise.all(acts.map((act) => nodeThat(t, act)))
  const [first, rest] = [await open(preferred), await open(others)]
  const [nodes, chunkNodes] = [rest.map(({ url }) => url), first.map(({ url }) => url)]
  const chain = new RemoteChain({ ...patient, ...options, nodes, chunkNodes }, clock, undefined, holders)
  t.teardown(() => chain.close())
  return { chain, clock, preferred: first, others: rest }
}

t.test('chunks are asked of preferred nodes first, and nothing else is', async (t) => {
  const { chain, preferred, others } = await stage(t, { preferred: [having, having], others: [having] })
  t.notOk(isRefusal(await chain.chunk(7)))
  t.notOk(isRefusal(await chain.chunk(8)))
  t.same([...preferred.flatMap(offsetsOf), ...others.flatMap(offsetsOf)].toSorted(), ['7', '8'])
  t.same(others[0]?.requested, [])
  await chain.height()
  t.same(others[0]?.requested, ['GET /height'])
  t.notOk(preferred.some(({ requested }) => requested.includes('GET /height')))
})

t.test(
  'gateways are asked for chunks before nodes, behind them, or alone, and never too many of them',
  async (t) => {
    const place = ['before', 'behind', 'alone'] as const
    const requested = async (at: number, gateways: readonly Act[], node: Act, queriedMax = 5) => {
      const opened = await Promise.all(gateways.map((act) => nodeThat(t, act)))
      const urls = opened.map(({ url }) => url)
      const chunkGateways = { urls, place: place[at] ?? 'alone', queriedMax }
      const { chain, others } = await stage(t, { preferred: [], others: [node] }, { chunkGateways })
      const outcome = await chain.chunk(7)
      await chain.height()
      t.notOk(opened.some(({ requested: paths }) => paths.includes('GET /height')))
      return [!isRefusal(outcome), opened.flatMap(offsetsOf).length, others.flatMap(offsetsOf).includes('7')]
    }
    t.same(await requested(0, [having], having), [true, 1, false])
    t.same(await requested(1, [having], having), [true, 0, true])
    t.same(await requested(1, [having], lacking), [true, 1, true])
    t.same(await requested(0, [lacking, lacking, lacking], having, 2), [true, 2, true])
    t.same(await requested(2, [lacking], having), [false, 1, false])
    t.same(await requested(2, [], having), [true, 0, true], 'without gateways nodes are left')
  },
)

t.test('a gateway that is known to lack a part of the weave comes behind nodes', async (t) => {
  const gateway = await nodeThat(t, lacking)
  const chunkGateways = { urls: [gateway.url], place: 'before', queriedMax: 5 } as const
  const { chain } = await stage(t, { preferred: [], others: [having] }, { chunkGateways })
  for (const offset of [7, 8, 9]) t.notOk(isRefusal(await chain.chunk(offset)))
  t.same(offsetsOf(gateway), ['7'])
})

t.test('a node named in both lists is one node', async (t) => {
  const node = await nodeThat(t, lacking)
  const chain = new RemoteChain({ ...patient, nodes: [node.url], chunkNodes: [`${node.url}/`] }, systemClock)
  t.teardown(() => chain.close())
  t.match(await chain.chunk(7), { refused: 'unknown' })
  t.equal(node.requested.length, 2, 'once in each form')
})

t.test('who had a chunk of the same part of the weave is asked before preferred nodes', async (t) => {
  const clock = new HandClock()
  const holders = new ChunkHolders(clock)
  const { chain, preferred, others } = await stage(
    t,
    { preferred: [lacking, lacking, lacking, lacking, lacking], others: [having] },
    {},
    clock,
    holders,
  )
  t.notOk(isRefusal(await chain.chunk(7)), 'more nodes are asked than one answer has attempts')
  t.same(preferred.flatMap(offsetsOf), ['7', '7', '7', '7', '7'])
  t.notOk(isRefusal(await chain.chunk(8)))
  t.same(preferred.flatMap(offsetsOf).includes('8'), false)
  const next = new ChunkHolders(clock)
  next.takeOver(JSON.parse(JSON.stringify(holders.kept())))
  const nodes = others.map(({ url }) => url)
  const again = new RemoteChain(
    { ...patient, nodes, chunkNodes: preferred.map(({ url }) => url) },
    clock,
    undefined,
    next,
  )
  t.teardown(() => again.close())
  t.notOk(isRefusal(await again.chunk(9)))
  t.same(preferred.flatMap(offsetsOf).includes('9'), false, 'also after a restart')
})

t.test('a silent node is not waited for, and not asked first the next time', async (t) => {
  const { chain, clock, preferred, others } = await stage(t, { preferred: [silent], others: [having] })
  const asking = chain.chunk(7)
  await eventually('it is queried', () => preferred[0]!.requested.length > 0)
  await clock.turn(500)
  t.notOk(isRefusal(await asking), 'long before its time is over')
  t.same([offsetsOf(preferred[0]!), offsetsOf(others[0]!)], [['7'], ['7']])
  t.notOk(isRefusal(await chain.chunk(8)))
  t.same(offsetsOf(preferred[0]!), ['7'])
  t.equal(chain.underWay, 0)
})

t.test('whoever has a rate of its own spends it on one node at a time', async (t) => {
  const nodes = await Promise.all([nodeThat(t, having), nodeThat(t, having)])
  const clock = new HandClock()
  const pace = () => new Promise<void>((resolve) => clock.after(700, resolve))
  const given = { ...patient, nodes: nodes.map(({ url }) => url) }
  const chain = new RemoteChain(given, clock, pace)
  t.teardown(() => chain.close())
  for (const offset of [7, 8]) {
    const asking = chain.chunk(offset)
    await clock.turn(700)
    t.notOk(isRefusal(await asking))
  }
  t.same(nodes.map(offsetsOf), [['7', '8'], []])
})

t.test('no more than three nodes have a request for one chunk at the same time', async (t) => {
  const { chain, clock, preferred } = await stage(t, { preferred: Array(6).fill(silent), others: [silent] })
  const end = new AbortController()
  const asking = chain.chunk(7, { signal: end.signal })
  const queried = (): number => preferred.filter(({ requested }) => requested.length > 0).length
  await clock.turn(4000)
  await eventually('three are queried', () => queried() >= 3)
  await clock.turn(4000)
  t.equal(queried(), 3)
  end.abort()
  t.ok(isRefusal(await asking))
  t.equal(chain.underWay, 0)
})

t.test('wrong chunks of preferred nodes are passed over', async (t) => {
  const { chain, others } = await stage(t, { preferred: [having, having], others: [having] })
  const wrong = refuse('forged', 'upstream', 'wrong')
  const right = others[0]?.url
  const chunk = await chain.chunk(7, undefined, ({ node }) => (node === right ? true : wrong))
  t.match(chunk, { node: right })
})

t.test('a gateway that has no chunk never stands in for a node that rests', async (t) => {
  let isBroken = true
  const node = await nodeThat(t, (request, response) => {
    if (isBroken) response.writeHead(400 + 3).end()
    else having(request, response)
  })
  const gateway = await nodeThat(t, lacking)
  for (const place of ['before', 'behind'] as const) {
    isBroken = true
    const chunkGateways = { urls: [gateway.url], place, queriedMax: 5 }
    const chain = new RemoteChain({ ...patient, nodes: [node.url], chunkGateways }, systemClock)
    t.teardown(() => chain.close())
    t.match(await chain.chunk(7), { refused: 'upstream' }, 'the node is resting from now on')
    t.match(await chain.chunk(8), { refused: 'upstream' }, 'not unknown: no node has stated so')
    isBroken = false
    t.notOk(isRefusal(await chain.chunk(9)), 'it is queried while it rests')
  }
})

t.test('nodes are queried for a chunk however many gateways come first', async (t) => {
  const gateways = await Promise.all(Array.from({ length: 60 }, () => nodeThat(t, lacking)))
  const chunkGateways = { urls: gateways.map(({ url }) => url), place: 'before', queriedMax: 60 } as const
  const { chain } = await stage(t, { preferred: [], others: [having] }, { chunkGateways })
  t.notOk(isRefusal(await chain.chunk(7)))
})

t.test(
  'an unproven chunk counts against its sender only where another one has a chunk that proves',
  async (t) => {
    const wrong = refuse('forged', 'upstream', 'wrong')
    const agreeing = await stage(t, { preferred: [], others: [having, having, lacking] })
    t.match(await agreeing.chain.chunk(7, undefined, () => wrong), { refused: 'forged' })
    t.notOk(isRefusal(await agreeing.chain.chunk(8)), 'all agree, so none rests, and none is left out')
    const { chain, others } = await stage(t, { preferred: [], others: [having, having, having] })
    const requests = (): number[] => others.map(({ requested }) => new Set(offsetsOf({ requested })).size)
    const right = others[2]?.url
    t.notOk(isRefusal(await chain.chunk(9, undefined, ({ node }) => (node === right ? true : wrong))))
    const before = requests()
    t.notOk(isRefusal(await chain.chunk(10)))
    t.same(requests(), [before[0], before[1], before[2]! + 1], 'those that were wrong rest')
  },
)

t.test('content whose chunks do not come in time is had from the next source', async (t) => {
  const { chain, post } = await weave(t)
  const body = randomBytes(300_000)
  const id = await post(body)
  let isSilent = true
  const stopping = new Proxy(chain, {
    get(target, name: keyof typeof chain) {
      if (name === 'chunk' && isSilent)
        return (_: number, { signal }: Requester) =>
          new Promise((resolve) =>
            signal.addEventListener('abort', () => resolve(refuse('late', 'upstream', 'no answer'))),
          )
      const own = target[name]
      return typeof own === 'function' ? own.bind(target) : own
    },
  })
  const location = { depthMax: 10, headersMax: 100, headerMaxBytes: 1_000_000 }
  const options = { aheadMax: 4, concurrencyMax: 8, firstDataMs: 300 }
  const [chunks, , whole] = chainSources(stopping, options, location).sources
  if (chunks === undefined || whole === undefined) throw new Error('sources are missing')
  const found = await chunks.open(wantedOf(id), new AbortController().signal)
  if (isRefusal(found)) throw new Error(found.message)
  const pieces: unknown[] = []
  for await (const piece of found.body) pieces.push(piece)
  t.match(pieces, [{ refused: 'late', message: /chunks brought no byte within/ }])
  const other = await inOrder('all', [whole]).open(wantedOf(id), new AbortController().signal)
  if (isRefusal(other)) throw new Error(other.message)
  t.same(await taken(other), body)
  isSilent = false
  const good = await chunks.open(wantedOf(id), new AbortController().signal)
  if (isRefusal(good)) throw new Error(good.message)
  t.same(await taken(good), body)
})
