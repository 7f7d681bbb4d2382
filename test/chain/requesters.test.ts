import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { Chain } from '../../src/chain/chain.js'
import { ChunkFinder } from '../../src/chain/chunk-finder.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import { encodeBundle } from '../../src/format/bundle.js'
import type { Id } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { chainSources } from '../../src/source/roots/chain-sources.js'
import { taken, wantedOf } from '../conformance/source.js'
import { eventually } from '../eventually.js'
import { bundleTags, item, weave } from '../source/weave.js'
import { nodeThat, patient } from './hostile.js'

const client = '198.51.100.7'
const never = new AbortController().signal

/** The chain, and for whom each call to it was made. */
function recorded(chain: Chain): { readonly chain: Chain; readonly calls: [string, unknown][] } {
  const calls: [string, unknown][] = []
  const proxy = new Proxy(chain, {
    get(target, name: keyof Chain) {
      const method = target[name].bind(target) as (...given: unknown[]) => unknown
      return (...given: unknown[]) => {
        const requester = given.find((one) => typeof one === 'object' && one !== null && 'signal' in one)
        calls.push([name, (requester as { client?: string } | undefined)?.client])
        return method(...given)
      }
    },
  })
  return { chain: proxy, calls }
}

t.test(
  'one client with many calls, or many networks of one provider, leave others their turns',
  async (t) => {
    const open: [string, ServerResponse][] = []
    const node = await nodeThat(t, ({ url = '' }, response) => open.push([url, response]))
    const chain = new RemoteChain(
      { ...patient, nodes: [node.url], callsMax: 1, waitingMax: 1000 },
      systemClock,
    )
    t.teardown(() => chain.close())
    let height = 0
    const call = (client?: string): number => {
      height += 1
      void chain.blockByHeight(height, { client, signal: never })
      return height
    }
    for (let count = 0; count < 20; count += 1) call('203.0.113.1')
    for (let network = 0; network < 20; network += 1) call(`203.0.${network}.1`)
    const others = [call(client), call(), call('2001:db8::1')]
    const order: number[] = []
    for (let count = 0; count < 8; count += 1) {
      await eventually('a call comes', () => open.length > 0)
      const [url, response] = open.shift()!
      order.push(Number(url.split('/').at(-1)))
      response.writeHead(404).end()
    }
    const places = others.map((one) => order.indexOf(one))
    t.ok(
      places.every((place) => place > 0 && place < 6),
      `others come at ${places} of ${order}`,
    )
  },
)

t.test('large answers are read a few at a time, half of them for one client', async (t) => {
  const pad = 'x'.repeat(4_000_000)
  const hash = Buffer.alloc(48, 1).toString('base64url')
  const held: (() => void)[] = []
  let left = 0
  const node = await nodeThat(t, ({ url = '', socket }, response) => {
    socket.once('close', () => {
      left += 1
    })
    const height = Number(url.split('/').at(-1))
    const text = JSON.stringify({
      indep_hash: hash,
      previous_block: hash,
      height,
      timestamp: 1_700_000_000,
      txs: [],
      tx_root: '',
      weave_size: '7',
      block_size: '0',
      pad,
    })
    response.setHeader('content-length', text.length)
    if (height > 2) response.end(text)
    else response.write(text.slice(0, 1000), () => held.push(() => response.end(text.slice(1000))))
  })
  const chain = new RemoteChain(
    { ...patient, nodes: [node.url], callsMax: 16, connectionsMax: 16, stallMs: 20_000 },
    systemClock,
  )
  t.teardown(() => chain.close())
  const came: unknown[] = []
  const call = (height: number, client: string): Promise<unknown> =>
    chain.blockByHeight(height, { client, signal: never }).then((block) => came.push(block))
  const greedy = [1, 2].map((height) => call(height, client))
  await eventually('two are held', () => held.length === 2)
  greedy.push(...[3, 4, 5, 6].map((height) => call(height, client)))
  await call(7, '203.0.113.1')
  t.match(came, [{ height: 7 }], 'another client has a turn, and only that')
  await eventually('nobody who waits for a turn holds an answer', () => left === 4)
  for (const go of held) go()
  await Promise.all(greedy)
  t.equal(left, 4, 'each is requested once more')
  t.equal(came.filter((block) => !isRefusal(block)).length, 7)
})

t.test('each call to a node that a request leads to takes a turn of its client', async (t) => {
  const { chain, post, devnet } = await weave(t)
  devnet.mine(3)
  const small = await post(randomBytes(1000))
  const large = await post(randomBytes(600_000))
  const inside = item(randomBytes(2000))
  const rootId = await post(encodeBundle([inside]), bundleTags)
  devnet.mine(3)
  const location = { depthMax: 10, headersMax: 100, headerMaxBytes: 1_000_000 }

  for (const [name, id, hints] of [
    ['chunks', large, {}],
    ['chunks-offset-aware', inside.id, { rootId }],
    ['chunks-offset-aware', large, {}],
    ['tx-data', small, {}],
  ] as const) {
    const { chain: heard, calls } = recorded(chain)
    const { sources } = chainSources(heard, { aheadMax: 4, concurrencyMax: 8 }, location)
    const source = sources.find((one) => one.name === name)
    const bytes = await taken(await source!.open({ ...wantedOf(id as Id, hints), client }, never))
    t.notOk(isRefusal(bytes), name)
    t.ok(calls.length >= 2, `${name} calls nodes`)
    t.same(
      calls.filter(([, whose]) => whose !== client),
      [],
      `${name} calls nodes by turns of the client`,
    )
  }

  const place = await chain.transactionOffset(large)
  if (isRefusal(place)) throw new Error(place.message)
  const { chain: heard, calls } = recorded(chain)
  const bounds = { flightsMax: 8, searchesMax: 4, fetchedCacheBytes: 1 << 20, postedCacheBytes: 1 << 20 }
  const finder = new ChunkFinder(heard, systemClock, { ...bounds, deadlineMs: 20_000, nameMs: 20_000 })
  const found = await finder.find(place.start + 300_000, client)
  t.notOk(isRefusal(found))
  for (const name of ['blockByHeight', 'chunk', 'transaction', 'transactionOffset'])
    t.ok(
      calls.some(([called]) => called === name),
      `the finder calls ${name}`,
    )
  // The tip is fetched once for all who look for a chunk at that time.
  t.same(
    calls.filter(([name, whose]) => name !== 'currentBlock' && whose !== client),
    [],
    'the finder calls nodes by turns of the client',
  )
})
