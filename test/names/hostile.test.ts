import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { refuse } from '../../src/format/refusal.js'
import { guarded } from '../../src/names/guarded-resolver.js'
import { JsonRpcRegistry } from '../../src/names/json-rpc-registry.js'
import { LocalNames } from '../../src/names/local-names.js'
import { LocalRegistry } from '../../src/names/local-registry.js'
import { parseName } from '../../src/names/name.js'
import { NameCache } from '../../src/names/name-cache.js'
import { NameMeters } from '../../src/names/name-meters.js'
import { readRecord } from '../../src/names/name-record.js'
import { namesDefaults } from '../../src/names/names-defaults.js'
import type { Name, Resolver, ResolverVerdict } from '../../src/names/names-port.js'
import { openNames } from '../../src/names/open-names.js'
import { TrustedNameGateway } from '../../src/names/trusted-gateway.js'
import { eventually } from '../eventually.js'
import { someId, trail, upstream } from '../source/rig.js'
import { cacheOptions } from './cache-options.js'
import { HandClock } from './hand-clock.js'

const site = parseName('site') as Name
const id = someId()

/** A server that says these very bytes to whoever connects; `undefined`: it hangs up. */
async function saying(t: Test, text: string | undefined, then?: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('data', () => {
      if (text === undefined) socket.destroy()
      else socket.write(text, 'latin1')
      then?.(socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** What no test expects: it ends the test as an unhandled rejection. */
function raised(error: unknown): never {
  throw error
}

async function verdictOfGateway(t: Test, url: string, timeoutMs = 30_000): Promise<ResolverVerdict> {
  const resolver = new TrustedNameGateway({ url, release: 'r', connectionsMax: 2 })
  t.teardown(() => resolver.close())
  return verdictOf(resolver, timeoutMs)
}

async function verdictOf(resolver: Resolver, timeoutMs: number): Promise<ResolverVerdict> {
  const guard = { timeoutMs, failuresMax: 5, restMs: 1000, restMaxMs: 30_000 }
  const { signal } = new AbortController()
  return guarded(resolver, guard, systemClock, raised).resolve(site, { hops: 0, via: [], signal })
}

const head = (status: string, ...lines: string[]): string =>
  `HTTP/1.1 ${status}\r\n${lines.map((line) => `${line}\r\n`).join('')}Content-Length: 0\r\n\r\n`

t.test(
  'a gateway with malformed answers is a failed resolver, and none of its text is passed on',
  async (t) => {
    const rows: [what: string, text: string | undefined][] = [
      ['hangs up', undefined],
      ['is no HTTP server', 'SSH-2.0-OpenSSH_9.2\r\n'],
      [
        'sends 64 KiB of headers',
        head('200 OK', `X-Filler: ${'f'.repeat(65_536)}`, `X-ArNS-Resolved-Id: ${id}`),
      ],
      [
        'sends ten thousand headers',
        head('200 OK', ...Array.from({ length: 10_000 }, (_, at) => `X-${at}: 1`)),
      ],
      ['does not say what the name means', head('200 OK')],
      ['names an id that is none', head('200 OK', 'X-ArNS-Resolved-Id: ../../etc/passwd')],
      ['names an id with stray bits', head('200 OK', `X-ArNS-Resolved-Id: ${'A'.repeat(42)}B`)],
      ['names two ids', head('200 OK', `X-ArNS-Resolved-Id: ${id}`, `X-ArNS-Resolved-Id: ${someId()}`)],
      ['speaks of another name', head('200 OK', 'X-ArNS-Name: other', `X-ArNS-Resolved-Id: ${id}`)],
      ['sends elsewhere', head('302 Found', 'Location: http://127.0.0.1:1/', `X-ArNS-Resolved-Id: ${id}`)],
      ['fails', head('500 Internal Server Error', `X-ArNS-Resolved-Id: ${id}`)],
      ['refuses', head('429 Too Many Requests')],
    ]
    for (const [what, text] of rows) {
      const verdict = await verdictOfGateway(t, await saying(t, text))
      t.match(verdict, { refused: /^(upstream|forged)$/, fault: 'upstream' }, `a gateway that ${what}`)
    }
  },
)

t.test('a gateway that does not answer, or answers very slowly, is given up in time', async (t) => {
  const silent = await saying(t, '')
  t.match(await verdictOfGateway(t, silent, 100), { refused: 'late' })
  const drips = await saying(t, 'HTTP/1.1 200 OK\r\n', (socket) => {
    const timer = setInterval(() => socket.write('X-A: 1\r\n'), 20)
    socket.on('close', () => clearInterval(timer))
  })
  t.match(await verdictOfGateway(t, drips, 200), { refused: 'late' })
})

t.test('what a gateway may say about a name', async (t) => {
  const named = [`X-ArNS-Name: SITE`, `X-ArNS-Resolved-Id: ${id}`]
  const usual = { id, ttlSeconds: 900, undernameLimit: 10, recordIndex: 0 }
  const rows: [text: string, verdict: unknown][] = [
    [head('200 OK', `X-ArNS-Resolved-Id: ${id}`), usual],
    [head('404 Not Found', ...named), usual],
    [head('402 Payment Required', ...named, 'X-ArNS-Record-Index: 11'), { ...usual, recordIndex: 11 }],
    [head('404 Not Found'), 'absent'],
    [head('404 Not Found', 'X-ArNS-Name: unregistered_arns', `X-ArNS-Resolved-Id: ${id}`), 'absent'],
    [head('451 Unavailable For Legal Reasons', ...named), 'blocked'],
    [head('200 OK', ...named, 'X-ArNS-TTL-Seconds: -5', 'X-ArNS-Undername-Limit: many'), usual],
    [head('200 OK', ...named, 'X-ArNS-TTL-Seconds: 99999999999'), { ...usual, ttlSeconds: 2_592_000 }],
    [head('200 OK', ...named, 'X-ArNS-TTL-Seconds: 0'), { ...usual, ttlSeconds: 0 }],
    [head('200 OK', ...named, 'X-ArNS-Ant-Id: a b\u00e9'), usual],
    [head('200 OK', ...named, 'X-ArNS-Process-Id: abc'), { ...usual, antId: 'abc' }],
  ]
  for (const [text, verdict] of rows) {
    t.strictSame(
      await verdictOfGateway(t, await saying(t, text)),
      verdict,
      text.split('\r\n').slice(0, 4).join(' '),
    )
  }
})

t.test('a gateway is sent the trail, so that loops are detected', async (t) => {
  const server = await upstream((_, response) => response.writeHead(404).end())
  t.teardown(() => server.close())
  const gateway = new TrustedNameGateway({
    url: `${server.url}/base/__NAME__/?key=a`,
    release: 'r9',
    connectionsMax: 1,
    ownHost: 'own.example',
  })
  t.teardown(() => gateway.close())
  const { signal } = new AbortController()
  await gateway.resolve(site, { hops: 2, via: ['a.example'], signal })
  t.match(server.requests[0], {
    method: 'HEAD',
    url: '/base/site/?key=a',
    headers: { 'x-ar-io-hops': '3', 'x-ar-io-via': 'a.example,own.example', 'user-agent': 'r9' },
  })
})

t.test('a registry with malformed answers is a failed resolver', async (t) => {
  const rows: [what: string, status: number, body: string][] = [
    ['answers HTML', 200, '<!doctype html><h1>Sign in</h1>'],
    ['answers nothing', 200, ''],
    ['answers another question', 200, '{"jsonrpc":"2.0","id":99,"result":null}'],
    ['answers with an error', 200, '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}'],
    ['answers without a result', 200, '{"jsonrpc":"2.0","id":1}'],
    ['answers with a list', 200, `{"jsonrpc":"2.0","id":1,"result":[{"transactionId":"${id}"}]}`],
    ['answers with a number', 200, '{"jsonrpc":"2.0","id":1,"result":7}'],
    ['names no id', 200, '{"jsonrpc":"2.0","id":1,"result":{"transactionId":"javascript:alert(1)"}}'],
    ['answers nested without end', 200, `${'['.repeat(30_000)}`],
    ['answers 10 MB', 200, `{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(10_000_000)}"}`],
    ['fails', 500, '{"jsonrpc":"2.0","id":1,"result":null}'],
  ]
  for (const [what, status, body] of rows) {
    const server = await upstream((request, response) => {
      request.resume()
      response.on('error', () => response.destroy())
      response.writeHead(status).end(body)
    })
    const registry = new JsonRpcRegistry(server.url, 2)
    const verdict = await verdictOf(registry, 30_000)
    t.match(verdict, { refused: /^(upstream|forged)$/, fault: 'upstream' }, `a registry that ${what}`)
    await registry.close()
    await server.close()
  }
  const silent = new JsonRpcRegistry(await saying(t, 'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{'), 1)
  t.teardown(() => silent.close())
  t.match(await verdictOf(silent, 100), { refused: 'late' })
})

t.test('a resolver that keeps failing is not asked for a while, longer each time', async (t) => {
  const clock = new HandClock()
  let calls = 0
  let well = false
  const resolver: Resolver = {
    label: 'gateway',
    remote: true,
    async resolve() {
      calls += 1
      return well ? 'absent' : { refused: 'upstream', fault: 'upstream', message: 'broken' }
    },
  }
  const pauses = { timeoutMs: 100, failuresMax: 3, restMs: 1000, restMaxMs: 4000 }
  const guard = guarded(resolver, pauses, clock, raised)
  let count = 0
  const ask = (text = `name${count++}`): Promise<ResolverVerdict> =>
    guard.resolve(parseName(text) as Name, { hops: 0, via: [], signal: new AbortController().signal })
  for (let at = 0; at < 10; at += 1) t.match(await ask('slow'), { refused: 'upstream' })
  t.equal(calls, 10, 'one name that fails again and again is no resolver that fails')
  calls = 1
  for (let at = 0; at < 10; at += 1) t.match(await ask(), { refused: 'upstream' })
  t.equal(calls, 3)
  await clock.turn(1000)
  await Promise.all([ask(), ask(), ask()])
  t.equal(calls, 4, 'one tries')
  await clock.turn(1999)
  await ask()
  t.equal(calls, 4)
  await clock.turn(1)
  well = true
  t.equal(await ask(), 'absent')
  t.equal(await ask(), 'absent')
  t.equal(calls, 6)
  t.equal(clock.waiting, 0, 'no timer is left')
})

t.test('malformed answers for some names do not pause the resolver for all', async (t) => {
  const resolver: Resolver = {
    label: 'gateway',
    remote: true,
    resolve: async ({ full }) =>
      full === 'good' ? 'absent' : { refused: 'forged', fault: 'upstream', message: 'nonsense' },
  }
  const guard = guarded(
    resolver,
    { timeoutMs: 100, failuresMax: 2, restMs: 1000, restMaxMs: 4000 },
    new HandClock(),
    raised,
  )
  const { signal } = new AbortController()
  const ask = (text: string): Promise<ResolverVerdict> =>
    guard.resolve(parseName(text) as Name, { hops: 0, via: [], signal })
  for (let at = 0; at < 10; at += 1) t.match(await ask(`bad${at}`), { refused: 'forged' })
  t.equal(await ask('good'), 'absent')
})

t.test('names of one stranger, slow or failing, pause the resolver for nobody', async (t) => {
  const clock = new HandClock()
  let well = true
  let isGone = (_: string): boolean => false
  const resolver: Resolver = {
    label: 'gateway',
    remote: true,
    resolve: async ({ full }) =>
      well && !full.startsWith('slow') && !isGone(full)
        ? 'absent'
        : { refused: 'late', fault: 'upstream', message: 'slow' },
  }
  const pauses = { timeoutMs: 100, failuresMax: 2, restMs: 1000, restMaxMs: 4000 }
  const guard = guarded(resolver, pauses, clock, raised)
  const { signal } = new AbortController()
  const ask = (text: string): Promise<ResolverVerdict> =>
    guard.resolve(parseName(text) as Name, { hops: 0, via: [], signal })
  t.equal(await ask('first'), 'absent')
  for (let at = 0; at < 20; at += 1) {
    await clock.turn(1)
    t.match(await ask(`slow${at}`), { refused: 'late' })
    if (at % 5 === 0) t.equal(await ask(`new${at}`), 'absent', 'names that are not known yet')
  }
  well = false
  for (let at = 0; at < 4; at += 1) {
    await clock.turn(1)
    await ask(`other${at}`)
  }
  t.match(await ask('another'), { refused: 'upstream' }, 'a resolver that fails for all names is paused')
  well = true
  await clock.turn(1000)
  t.equal(await ask('another'), 'absent', 'the first call after the pause has its answer')
  const gone = new Set(['gone1', 'gone2', 'gone3', 'gone4'])
  for (const name of gone) t.equal(await ask(name), 'absent')
  isGone = (name) => gone.has(name)
  for (let at = 0; at < 4; at += 1) {
    await clock.turn(1)
    await ask(`slow${at}`)
  }
  t.match(await ask('yetanother'), { refused: 'upstream' }, 'those that were answered are not any more')
  await clock.turn(4000)
  t.equal(await ask('yetanother'), 'absent', 'any name that is answered ends the pause')
})

t.test("questions with a client's trail do not shut the resolver for others", async (t) => {
  const clock = new HandClock()
  let calls = 0
  const resolver: Resolver = {
    label: 'gateway',
    remote: true,
    async resolve(_name, { hops, via }) {
      calls += 1
      return hops + via.length > 0 ? refuse('upstream', 'upstream', 'it refuses such a trail') : 'absent'
    },
  }
  const pauses = { timeoutMs: 100, failuresMax: 2, restMs: 1000, restMaxMs: 1000 }
  const guard = guarded(resolver, pauses, clock, raised)
  const { signal } = new AbortController()
  for (const base of ['a', 'b', 'c', 'd']) {
    await guard.resolve({ full: base, basename: base, record: '@' }, { hops: 2, via: ['a.example'], signal })
  }
  t.equal(await guard.resolve(site, { hops: 0, via: [], signal }), 'absent')
  t.equal(calls, 5)
})

t.test('an aborted request does not count as a failure of the resolver', async (t) => {
  const clock = new HandClock()
  const abort = new AbortController()
  const resolver: Resolver = {
    label: 'gateway',
    remote: true,
    resolve: async (_, { signal }) =>
      signal.aborted ? { refused: 'late', fault: 'upstream', message: 'gave up' } : 'absent',
  }
  const pauses = { timeoutMs: 100, failuresMax: 1, restMs: 1000, restMaxMs: 1000 }
  const guard = guarded(resolver, pauses, clock, raised)
  abort.abort()
  await guard.resolve(site, { hops: 0, via: [], signal: abort.signal })
  t.equal(await guard.resolve(site, { hops: 0, via: [], signal: new AbortController().signal }), 'absent')
})

t.test('records are read with bounds', async (t) => {
  t.equal(readRecord({}), undefined)
  t.equal(readRecord({ id: 7 }), undefined)
  t.same(readRecord({ id, ttlSeconds: Number.NaN, antId: 'x\r\ny', undernameLimit: 1.5, recordIndex: -1 }), {
    id,
    ttlSeconds: 900,
  })
})

t.test(
  'a changed local registry is seen by every reader; a value that is none counts as absent',
  async (t) => {
    const path = `${t.testdir()}/names`
    const readers = [new LocalNames(path, systemClock), new LocalNames(path, systemClock)]
    const registry = new LocalRegistry(path)
    t.teardown(async () => {
      await Promise.all(readers.map((reader) => reader.close()))
      await registry.close()
    })
    const before = readers.map(({ version }) => version)
    registry.set([[site, { id, ttlSeconds: 60 }]])
    await eventually('every reader has the new list', () =>
      readers.every((reader, at) => reader.version !== before[at]),
    )
    for (const reader of readers) t.same(reader.find(site), { id, ttlSeconds: 60 })
    t.same([...registry.list()], [['site', { id, ttlSeconds: 60 }]])
    t.equal(registry.remove(site), true)
    t.equal(registry.remove(site), false)
    t.equal(registry.get(site), undefined)
  },
)

t.test('a client whose names are slow keeps no other name waiting for a connection', async (t) => {
  const clock = new HandClock()
  const server = await upstream(({ url = '' }, response) => {
    if (url.startsWith('/slow')) return
    response.setHeader('x-arns-resolved-id', id).setHeader('x-arns-ttl-seconds', '60').writeHead(200).end()
  })
  const open = await openNames(
    {
      registryPath: '',
      order: ['gateway'],
      gateway: { url: `${server.url}/__NAME__`, release: 'r' },
      timeoutMs: 20_000,
      lastTimeoutMs: 20_000,
      guard: namesDefaults.guard,
      cache: cacheOptions,
    },
    clock,
    new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0),
    silentLog,
  )
  const resolved = (name: string, client: string) =>
    open.names.resolve(parseName(name) as Name, trail, client)
  const slow = Array.from({ length: 100 }, (_, at) => resolved(`slow${at}`, '198.51.100.7'))
  // Time stands still: no slow one ends.
  for (let at = 0; at < 5; at += 1) t.match(await resolved(`well${at}`, '203.0.113.7'), { id })
  await open.close()
  await Promise.all([...slow, server.close()])
})

t.test('a bug in a trial of the resolver is thrown to no request, and counts as its failure', async (t) => {
  const clock = new HandClock()
  let isBroken = false
  const resolver: Resolver = {
    label: 'gateway',
    remote: true,
    resolve: async ({ full }) => {
      if (full === 'well' && isBroken) throw new Error('a bug')
      return full === 'well' ? { id, ttlSeconds: 60 } : refuse('upstream', 'upstream', 'away')
    },
  }
  const bugs: unknown[] = []
  const pauses = { failuresMax: 2, restMs: 1000, restMaxMs: 1000, timeoutMs: 1000 }
  const guard = guarded(resolver, pauses, clock, (error) => bugs.push(error))
  const ask = (name: string) =>
    guard.resolve(parseName(name) as Name, { hops: 0, via: [], signal: new AbortController().signal })
  t.match(await ask('well'), { id })
  isBroken = true
  for (const name of ['one', 'two']) {
    await clock.turn(1)
    t.match(await ask(name), { refused: 'upstream' })
  }
  await clock.turn(1)
  t.match(bugs, [{ message: 'a bug' }])
  t.match(await ask('three'), { refused: 'upstream', message: /gets no requests for a while/ })
})

t.test('a name that makes no host is absent at a gateway, and does not end its pause', async (t) => {
  const url = `${await saying(t, head('500 Internal Server Error'))}/__NAME__`.replace(
    '127.0.0.1',
    '__NAME__.localhost',
  )
  const resolver = new TrustedNameGateway({ url, release: 'r', connectionsMax: 2 })
  t.teardown(() => resolver.close())
  const guard = { timeoutMs: 30_000, failuresMax: 1, restMs: 60_000, restMaxMs: 60_000 }
  const one = guarded(resolver, guard, systemClock, raised)
  const asking = { hops: 0, via: [], signal: new AbortController().signal }
  t.match(await one.resolve(site, asking), { refused: 'upstream' })
  t.equal(await one.resolve(parseName('xn--a') as Name, asking), 'absent')
  t.match(await one.resolve(site, asking), { message: /no requests for a while/ })
})

t.test('a resolver that throws before its turn comes ends no thread', async (t) => {
  const late: Resolver = {
    label: 'on-demand',
    remote: true,
    resolve: () => new Promise((resolve) => setTimeout(resolve, 20, 'absent')),
  }
  const faulty: Resolver = {
    label: 'gateway',
    remote: true,
    resolve: () => Promise.reject(new Error('a bug')),
  }
  const meters = new NameMeters(new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0))
  const unhandled: unknown[] = []
  const note = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', note)
  t.teardown(() => process.off('unhandledRejection', note))
  const names = new NameCache(
    [late, faulty],
    undefined,
    { ...cacheOptions, resolversAtOnce: 2 },
    systemClock,
    meters,
  )
  t.teardown(() => names.close())
  await t.rejects(names.resolve(site, trail, '203.0.113.1'), /a bug/)
  t.strictSame(unhandled, [])
})
