import { randomBytes } from 'node:crypto'
import t from 'tap'
import { Breaker } from '../../../src/actor/breaker.js'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { encodeBundle } from '../../../src/format/bundle.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { unknownForNow } from '../../../src/source/refusals.js'
import { chainSources } from '../../../src/source/roots/chain-sources.js'
import { OffsetAwareChunks } from '../../../src/source/roots/chunks.js'
import { GatewayRoots, type RootLookupOptions } from '../../../src/source/roots/root-lookup.js'
import { taken, wantedOf } from '../../conformance/source.js'
import { someId, trail, upstream } from '../rig.js'
import { bundleItem, bundleTags, item, weave } from '../weave.js'

const never = new AbortController().signal
const unsure = { refused: 'unknown', isUnsure: true }
const breaker = { burst: 5, perMinute: 60, failuresMax: 3, coolMs: 1000 }

function options(gateways: readonly string[], more: Partial<RootLookupOptions> = {}): RootLookupOptions {
  const bounds = { headMs: 60_000, rememberedMax: 3, rememberedMs: 1000, hopsMax: 3 }
  return { gateways, breaker, ...bounds, ownHosts: ['own.example'], release: 'test', ...more }
}

/** A clock turned by hand; its timers are real. */
function handClock(): Clock & { ms: number } {
  return {
    ms: 0,
    ...systemClock,
    monotonic() {
      return this.ms
    },
  }
}

t.test('the answer to HEAD is used, else that of the offsets route, in either vocabulary', async (t) => {
  const [root, path] = [someId(), someId()]
  const byHead = await upstream((_, response) => {
    response.setHeader('x-ar-io-root-transaction-id', root)
    response.setHeader('x-ar-io-root-item-offset', '96')
    response.setHeader('x-ar-io-root-item-size', '200')
    response.end()
  })
  const byRoute = await upstream((request, response) => {
    if (request.url?.startsWith('/gateway/offsets/') !== true) return void response.writeHead(404).end()
    response.end(JSON.stringify({ rootTxId: root, path: [root, path], rootOffset: 7, size: 9 }))
  })
  const roots = new GatewayRoots(options([byHead.url]), systemClock)
  t.same(await roots.find(someId(), trail, never), { rootId: root, itemOffset: 96, itemSize: 200 })
  t.equal(byHead.requests.length, 1, 'one question is enough')
  const others = new GatewayRoots(options([byRoute.url]), systemClock)
  const found = await others.find(someId(), trail, never)
  t.same(found, { rootId: root, path: [root, path], itemOffset: 7, itemSize: 9 })
  await Promise.all([roots.close(), others.close(), byHead.close(), byRoute.close()])
})

t.test('answers are remembered for a time, also that an id is unknown', async (t) => {
  const clock = handClock()
  const server = await upstream((_, response) => response.writeHead(404).end())
  const roots = new GatewayRoots(options([server.url]), clock)
  const id = someId()
  await roots.find(id, trail, never)
  const requestsBefore = server.requests.length
  t.equal(await roots.find(id, trail, never), undefined)
  t.equal(server.requests.length, requestsBefore, 'not asked again')
  clock.ms = 1001
  await roots.find(id, trail, never)
  t.ok(server.requests.length > requestsBefore)
  await Promise.all([roots.close(), server.close()])
})

t.test('an absence for a request with a via list is not remembered for others', async (t) => {
  const [root, id] = [someId(), someId()]
  const server = await upstream((request, response) => {
    const isPlain = request.headers['x-ar-io-hops'] === '1'
    if (isPlain) response.setHeader('x-ar-io-root-transaction-id', root)
    response.writeHead(isPlain ? 200 : 503).end()
  })
  const roots = new GatewayRoots(options([server.url]), systemClock)
  for (let turn = 0; turn < 4; turn += 1) {
    const longer = { ...trail, hops: 1, via: ['a.example'] }
    t.match(await roots.find(id, longer, never), unsure)
    t.equal(await roots.find(id, { ...trail, via: ['127.0.0.1'] }, never), undefined, 'it is not asked')
  }
  t.equal(server.requests.length, 4)
  t.match(await roots.find(id, trail, never), { rootId: root }, 'neither forgotten nor shut')
  await Promise.all([roots.close(), server.close()])
})

t.test('a flood of unknown ids does not become a flood at a gateway', async (t) => {
  const server = await upstream((_, response) => response.writeHead(404).end())
  const roots = new GatewayRoots(options([server.url]), handClock())
  await Promise.all(Array.from({ length: 40 }, () => roots.find(someId(), trail, never)))
  t.equal(server.requests.filter(({ method }) => method === 'HEAD').length, breaker.burst)
  await Promise.all([roots.close(), server.close()])
})

t.test('who wants many look-ups leaves others their share of the few', async (t) => {
  const clock = handClock()
  const server = await upstream((_, response) => response.writeHead(404).end())
  const few = { ...breaker, burst: 5, perMinute: 6 }
  const roots = new GatewayRoots(options([server.url], { breaker: few }), clock)
  const looked = async (client: string): Promise<boolean> => {
    const before = server.requests.length
    await roots.find(someId(), trail, never, client)
    return server.requests.length > before
  }
  let had = 0
  for (let second = 0; second < 120; second += 1) {
    clock.ms += 1000
    for (let more = 0; more < 3; more += 1) await looked(`198.51.100.${more}`)
    if (second % 11 === 10 && (await looked('203.0.113.7'))) had += 1
  }
  t.ok(had >= 5, `${had} of 10 of the other one, whose even share are six in two minutes`)
  await Promise.all([roots.close(), server.close()])
})

t.test(
  'neither six machines of a provider nor the networks of an IPv6 /32 take the share of others',
  async (t) => {
    for (const networkOf of [
      (at: number) => `198.51.${at % 6}.7`,
      (at: number) => `2001:db8:${at % 999}::1`,
    ]) {
      const clock = handClock()
      const server = await upstream((_, response) => response.writeHead(404).end())
      const roots = new GatewayRoots(
        options([server.url], { breaker: { ...breaker, burst: 5, perMinute: 6 } }),
        clock,
      )
      let had = 0
      for (let second = 0; second < 240; second += 1) {
        clock.ms += 1000
        for (let more = 0; more < 3; more += 1)
          await roots.find(someId(), trail, never, networkOf(3 * second + more))
        if (second % 22 !== 21) continue
        if (!isRefusal(await roots.find(someId(), trail, never, '203.0.113.7'))) had += 1
      }
      t.ok(had >= 9, `${had} of 10`)
      await Promise.all([roots.close(), server.close()])
    }
  },
)

t.test('that nobody could be called is no absence', async (t) => {
  const clock = handClock()
  let isWell = true
  const server = await upstream((_, response) => response.writeHead(isWell ? 404 : 500).end())
  const few = { ...breaker, burst: 1, perMinute: 6 }
  const roots = new GatewayRoots(options([server.url], { breaker: few }), clock)
  const [known, unknown] = [someId(), someId()]
  t.equal(await roots.find(known, trail, never, '198.51.100.7'), undefined)
  t.match(await roots.find(unknown, trail, never, '198.51.100.7'), unsure)
  t.equal(
    await roots.find(known, trail, never, '198.51.100.7'),
    undefined,
    'one that is remembered costs none',
  )
  clock.ms += 60_000
  isWell = false
  t.match(await roots.find(unknown, trail, never), unsure, 'nor that it failed')
  clock.ms += 60_000
  isWell = true
  t.equal(await roots.find(unknown, trail, never), undefined)
  await Promise.all([roots.close(), server.close()])

  const refusing = { find: async () => unknownForNow() }
  const absent = { open: async () => refuse('unknown', 'client', 'Not found') }
  const source = new OffsetAwareChunks(absent as never, absent as never, refusing)
  const wanted = { id: unknown, provenance: trail, client: '' }
  t.match(await source.open(wanted as never, new AbortController().signal), unsure)
})

t.test('while no gateway is called after failures nothing is an absence, and that is stated', async (t) => {
  const clock = handClock()
  let isWell = false
  const server = await upstream((_, response) => response.writeHead(isWell ? 404 : 500).end())
  let failing = 0
  const roots = new GatewayRoots(options([server.url]), clock, (gateways) => {
    failing = gateways
  })
  for (let time = 0; time < breaker.failuresMax; time += 1)
    t.match(await roots.find(someId(), trail, never), unsure)
  t.equal(failing, 1)
  const id = someId()
  t.match(await roots.find(id, trail, never), unsure)
  t.equal(server.requests.length, breaker.failuresMax)
  clock.ms += 60_000
  isWell = true
  t.equal(await roots.find(id, trail, never), undefined)
  t.equal(failing, 0)
  await Promise.all([roots.close(), server.close()])
})

t.test('a gateway that has not looked everywhere knows of no absence', async (t) => {
  for (const status of [404, 410]) {
    let isSure = false
    const server = await upstream((_, response) => {
      if (!isSure) response.setHeader('Retry-After', '10')
      response.writeHead(status).end()
    })
    const roots = new GatewayRoots(options([server.url]), handClock())
    const id = someId()
    t.match(await roots.find(id, trail, never), unsure)
    isSure = true
    t.equal(await roots.find(id, trail, never), undefined, 'it was not remembered')
    await Promise.all([roots.close(), server.close()])
  }
})

t.test('a gateway that fails is not asked for a while', (t) => {
  const clock = handClock()
  const guard = new Breaker({ ...breaker, burst: 100, perMinute: 6000 }, clock)
  for (let turn = 0; turn < 3; turn += 1) {
    t.ok(guard.take())
    guard.tell(false)
  }
  t.notOk(guard.take())
  clock.ms = 1001
  t.ok(guard.take())
  guard.tell(false)
  t.notOk(guard.take(), 'still failing: one question was enough')
  clock.ms = 2003
  t.ok(guard.take())
  guard.tell(true)
  guard.tell(false)
  t.ok(guard.take(), 'forgiven')
  t.end()
})

t.test('local-only requests ask no gateway, and malformed answers are ignored', async (t) => {
  const answers = ['{}', 'no json', '[]', '{"rootTxId":"short"}', `"${'x'.repeat(20_000)}"`]
  const server = await upstream((request, response) => {
    if (request.method === 'HEAD')
      response.writeHead(200, { 'x-ar-io-root-transaction-id': 'nonsense' }).end()
    else response.end(answers[server.requests.length % answers.length])
  })
  const roots = new GatewayRoots(options([server.url]), systemClock)
  t.equal(await roots.find(someId(), { ...trail, forward: false }, never), undefined)
  t.equal(await roots.find(someId(), { ...trail, via: ['own.example'] }, never), undefined)
  t.equal(server.requests.length, 0)
  for (let turn = 0; turn < 3; turn += 1) t.equal(await roots.find(someId(), trail, never), undefined)
  await Promise.all([roots.close(), server.close()])
})

t.test('an item whose root only another gateway knows is found, and proven out of the root', async (t) => {
  const { chain, post } = await weave(t)
  const wanted = item(randomBytes(3000), { 'Content-Type': 'text/x-wanted' })
  const inner = bundleItem([item(randomBytes(10)), wanted])
  const root = await post(encodeBundle([item(randomBytes(500)), inner]), bundleTags)
  const server = await upstream((_, response) => {
    response.writeHead(200, { 'x-ar-io-root-transaction-id': root }).end()
  })
  const location = { depthMax: 10, headersMax: 100, headerMaxBytes: 1_000_000 }
  const roots = new GatewayRoots(options([server.url]), systemClock)
  const { sources } = chainSources(chain, { aheadMax: 4, concurrencyMax: 8 }, location, roots)
  const source = sources.find(({ name }) => name === 'chunks-offset-aware')
  const found = await source?.open(wantedOf(wanted.id), never)
  if (found === undefined || isRefusal(found)) throw new Error('not found')
  t.equal(found.proven, true)
  t.equal(found.learned.place?.rootId, root)
  t.same(await taken(found), Buffer.from(wanted.payload))
  const absent = await source?.open(wantedOf(someId()), never)
  t.equal(
    absent !== undefined && isRefusal(absent) && absent.refused,
    'unknown',
    'a false word stays unknown',
  )
  await Promise.all([roots.close(), server.close()])
})
