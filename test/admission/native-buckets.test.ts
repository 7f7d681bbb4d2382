import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { servedBy } from '../../native/server/server.js'
import { systemClock } from '../../src/actor/clock.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { AddressThrottle } from '../../src/admission/address-throttle.js'
import { isDenial } from '../../src/admission/admission-port.js'
import type { Balance } from '../../src/admission/bucket-table.js'
import type { BucketRules } from '../../src/admission/buckets.js'
import { Gate } from '../../src/admission/gate.js'
import { plainLines } from '../../src/gateway/plain-lines.js'
import type { Request } from '../../src/http/exchange.js'
import { serve } from '../../src/http/listen.js'
import type { CachedAnswer } from '../../src/http/response-cache.js'
import { MappedFiles } from '../../src/store/mapped.js'
import { clientAt, named } from '../conformance/buckets.js'
import { eventually } from '../eventually.js'
import { fc } from '../property.js'
import { scratch } from '../scratch.js'
import type { HolderOrder } from './holder.js'
import { dataFolder, memoryHouse } from './house.js'
import type { TakerOrder, TakerReport } from './taker.js'

/**
 * The server takes tokens for cached answers by itself (native/server/buckets.h, limits.h): each answer must cost whom it would
 * cost by the steps, and be refused to whom they would refuse it.
 */

const skip = servedBy === 'fallback' && 'the fallback has no response cache'
const sizeBytes = 250_000
const path = `${scratch('native-buckets')}/file`
writeFileSync(path, Buffer.alloc(sizeBytes, 'a'))
const about = {
  trustedProxies: ['127.0.0.1', '10.0.0.0/8', '2001:db8:ffff::/48'],
  exempt: ['198.51.100.0/24', '2001:db8:eeee::/64'],
  ipv6PrefixBits: 64,
}
const rangeShape = /^bytes=0-(\d+)$/

interface Rules {
  readonly ip: BucketRules
  readonly resource: BucketRules
}

interface Reload {
  readonly rules: Rules
  readonly trustedProxies: readonly string[]
  readonly exempt: readonly string[]
  readonly exemptNames: readonly string[]
}

/** A server behind limits, with buckets of its own. It repeats its answers, or takes the steps for each. */
async function limited(rules: Rules, isCaching: boolean, clients = about) {
  const house = await memoryHouse(rules, dataFolder(), 1024, clients)
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const gate = new Gate({
    ...house,
    throttle: new AddressThrottle(house.clock),
    exemptNames: ['free'],
    meters,
  })
  const files = new MappedFiles({ mappedMaxBytes: 2 ** 30, filesMax: 4, believeMs: 60_000 }, systemClock)
  const thrown: unknown[] = []
  const seconds = meters.placeOf('http_request_duration_seconds', { route: 'data' })
  const at = (name: string, labels = {}): number => meters.placeOf(name, labels).at
  const tally = {
    meters: seconds.cells,
    whole: at('http_requests_total', { route: 'data', status: '2xx' }),
    aborted: at('http_requests_total', { route: 'data', status: 'aborted' }),
    left: at('client_disconnects_total'),
    stalled: at('client_stalls_total'),
    broken: at('get_data_stream_errors_total'),
    bytes: at('get_data_stream_bytes_total'),
    hits: at('contiguous_data_cache_hit_total'),
    cached: at('answers_repeated_total'),
    buckets: seconds.at,
    bounds: seconds.bounds,
  }
  const nameOf = (request: Request): string | undefined => (request.path === '/free' ? 'free' : undefined)
  const offer = (
    request: Request,
    variant: CachedAnswer['variant'],
    file: NonNullable<ReturnType<typeof files.open>>,
  ): void => {
    const borrowed = file.lend?.()
    const price = gate.price(request, nameOf(request))
    if (borrowed === undefined || price === undefined) throw new Error('not borrowed')
    server.responseCache?.put({
      variant,
      method: request.method === 'HEAD' ? 'HEAD' : 'GET',
      host: request.header('host') ?? '',
      path: request.path,
      isStrict: false,
      tag: '',
      shown: '',
      before: `HTTP/1.1 ${variant === 'part' ? 206 : 200} OK\r\nX-Request-Id: `,
      after: '\r\nA: b',
      fromSeconds: 0,
      untilSeconds: Number.POSITIVE_INFINITY,
      sizeBytes,
      body: borrowed,
      offset: 0,
      conditions: [
        ...borrowed.conditions.map(([cell, value]) => [cell, value, value] as const),
        gate.namesCondition,
      ],
      tally,
      price,
    })
  }
  const server = serve(
    (request, reply) => {
      const file = files.open(path)
      if (file === undefined) throw new Error('no file')
      const range = request.method === 'HEAD' ? null : rangeShape.exec(request.header('range') ?? '')
      const end = range === null ? sizeBytes : Math.min(sizeBytes, Number(range[1]) + 1)
      const bytes = request.method === 'HEAD' ? 0 : end
      const name = nameOf(request)
      const charge = { request, bytes, contentType: 'text/plain', ...(name === undefined ? {} : { name }) }
      const outcome = gate.admit(charge)
      if (outcome instanceof Promise) throw new Error('in memory')
      if (isDenial(outcome)) {
        file.close()
        reply.endEmpty({ status: outcome.status, block: 'A: b' }, 0)
        return
      }
      offer(request, range === null ? 'whole' : 'part', file)
      if (bytes === 0) {
        file.close()
        reply.endEmpty({ status: 200, block: 'A: b' }, sizeBytes)
        outcome.returnUnsent(0)
        return
      }
      const sent = reply.stream(
        { status: range === null ? 200 : 206, block: 'A: b' },
        [{ start: 0, end }],
        file,
      )
      if (sent instanceof Promise) void sent.then((ended) => outcome.returnUnsent(ended.bytes))
      else outcome.returnUnsent(sent.bytes)
    },
    {
      host: '127.0.0.1',
      port: 0,
      stallMs: 10_000,
      requestsMax: 10,
      onThrow: (error) => thrown.push(error),
      ...(isCaching
        ? {
            responseCache: {
              maxBytes: 2 ** 22,
              plain: plainLines,
              onSample: () => undefined,
              limits: gate.lend(),
            },
          }
        : {}),
    },
  )
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    house,
    meters,
    server,
    /** The operator changes the settings of limits while all goes on. */
    reload({ rules: given, exemptNames, ...lists }: Reload) {
      house.use(given)
      house.clients.use(lists)
      gate.use({ exemptNames })
      const lent = gate.lend()
      if (lent !== undefined) server.responseCache?.useClients(lent)
    },
    fromCache: () => meters.value('answers_repeated_total', {}),
    counted: () => {
      const taken = (bucket: string, type: string) =>
        meters.value('rate_limit_tokens_consumed_total', {
          bucket_type: bucket,
          token_type: type,
          domain: 'data',
        })
      const requests = meters.value('rate_limit_requests_total', { domain: 'data' })
      return [requests, ...['ip', 'resource'].flatMap((one) => [taken(one, 'regular'), taken(one, 'paid')])]
    },
    ask: (where: string, method: string, headers: Record<string, string | string[]>) =>
      new Promise<number>((resolve, reject) => {
        const options = { host: '127.0.0.1', port: server.port, path: where, method, headers, agent }
        const request = httpRequest(options, (response) => {
          response.resume()
          response.on('end', () => resolve(response.statusCode ?? 0))
          response.on('error', reject)
        })
        request.on('error', reject)
        request.end()
      }),
    async close() {
      agent.destroy()
      await server.close(0)
      files.close()
      await house.close()
      if (thrown.length > 0) throw thrown[0]
    },
  }
}

const triedClients = ['203.0.113.1', '203.0.113.2', '2001:db8:1::', '2001:db8:1:1::', '127.0.0.1', '10.1.2.3']
const paths = ['/a', '/b', '/free']

/** Addresses, in all the ways in which they are written, and what is none. */
const entry = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('203.0.113.1', '203.0.113.2', '2001:db8:1::5', '2001:db8:1:1::6') },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '2001:DB8:1::1.2.3.4',
      '::ffff:203.0.113.1',
      '2001:db8:1:0:0:0:0:9',
      '2001:0db8:0001::',
      '0:0:0:0:0:ffff:203.0.113.2',
    ),
  },
  { weight: 2, arbitrary: fc.constantFrom('10.1.2.3', '2001:db8:ffff:1::1') },
  { weight: 1, arbitrary: fc.constantFrom('198.51.100.7', '2001:db8:eeee::1') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '203.0.113.1:80',
      '[2001:db8:1::5]:443',
      '203.0.113.01',
      '1.2.3',
      '2001:db8:1',
      '1:2:3:4::5:6:7:8',
      '203.0.113.1%lo',
      'unknown',
      '',
      ' ',
      '\t203.0.113.2\t',
      '0x7f.1',
      '::',
      '1::2::3',
      '12345::',
    ),
  },
)

const someRules = fc.record({
  capacity: fc.constantFrom(30, 700, 900, 5000),
  refillPerSecond: fc.integer({ min: 0, max: 30 }),
})

const command = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
      path: fc.constantFrom('/a', '/a', '/b', '/free'),
      bytes: fc.constantFrom(undefined, 1, 1024, 1025, 20_000),
      forwarded: fc.oneof(
        { weight: 5, arbitrary: fc.tuple(fc.array(entry, { minLength: 1, maxLength: 3 })) },
        { weight: 1, arbitrary: fc.array(fc.array(entry, { maxLength: 3 }), { maxLength: 2 }) },
      ),
      real: fc.option(entry, { nil: undefined, freq: 6 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('credit' as const),
      bucket: fc.constantFrom('203.0.113.1', '2001:db8:1::5', 'GET gateway.test /a'),
      payment: fc.nat(100),
      tokens: fc.integer({ min: 1, max: 300 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), seconds: fc.integer({ min: 1, max: 9 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('reload' as const),
      rules: fc.record({ ip: someRules, resource: someRules }),
      trustedProxies: fc.constantFrom(about.trustedProxies, [], ['127.0.0.1', '203.0.113.0/24']),
      exempt: fc.constantFrom(about.exempt, [], ['203.0.113.1', '2001:db8:1::/48']),
      exemptNames: fc.constantFrom(['free'], [], ['other', 'FREE']),
    }),
  },
)

t.test('cached answers cost what the steps would take, from the same buckets', { skip }, async (t) => {
  let [cached, refused, requests] = [0, 0, 0]
  await fc.assert(
    fc.asyncProperty(
      fc.array(command, { minLength: 60, maxLength: 120 }),
      fc.integer({ min: 0, max: 30 }),
      async (commands, rate) => {
        const rules = {
          ip: { capacity: 700, refillPerSecond: rate },
          resource: { capacity: 900, refillPerSecond: rate },
        }
        const [one, other] = [await limited(rules, true), await limited(rules, false)]
        const balances = async ({ house }: typeof one) => {
          const ofClients = triedClients.map((ip) => house.buckets.ofClient(clientAt(house.clients, ip)))
          const ofPaths = ['GET', 'HEAD'].flatMap((method) =>
            paths.map((where) => house.buckets.ofResource(named(where, 'gateway.test', method))),
          )
          // A bucket that is full may have been given up.
          const { ip, resource } = house.buckets.rules
          const full = { ip: ip.capacity, resource: resource.capacity }
          const held = async (found: Promise<Balance | undefined>, kind: keyof typeof full) =>
            (await found) ?? { tokens: full[kind], paidTokens: 0 }
          const [inClients, inPaths] = [
            ofClients.map((found) => held(found, 'ip')),
            ofPaths.map((found) => held(found, 'resource')),
          ]
          return JSON.stringify(await Promise.all([...inClients, ...inPaths]))
        }
        try {
          for (const each of commands) {
            if (each.kind === 'advance') for (const { house } of [one, other]) house.advance?.(each.seconds)
            else if (each.kind === 'reload') for (const program of [one, other]) program.reload(each)
            else if (each.kind === 'credit') {
              for (const { house } of [one, other])
                await house.buckets.credit(each.bucket, `payer:${each.payment}`, each.tokens)
            } else {
              const headers = {
                host: 'gateway.test',
                ...(each.bytes === undefined ? {} : { range: `bytes=0-${each.bytes - 1}` }),
                ...(each.forwarded.length === 0
                  ? {}
                  : { 'x-forwarded-for': each.forwarded.map((list) => list.join(',')) }),
                ...(each.real === undefined ? {} : { 'x-real-ip': each.real }),
              }
              const got = await one.ask(each.path, each.method, headers)
              const wanted = await other.ask(each.path, each.method, headers)
              requests += 1
              if (wanted === 429) refused += 1
              if (got !== wanted) throw new Error(`${JSON.stringify(headers)}: ${got} for ${wanted}`)
            }
            const [got, wanted] = [await balances(one), await balances(other)]
            if (got !== wanted) throw new Error(`${JSON.stringify(each)}\n${got}\n${wanted}`)
          }
          const [got, wanted] = [String(one.counted()), String(other.counted())]
          if (got !== wanted) throw new Error(`counted ${got} for ${wanted}`)
          cached += one.fromCache()
        } finally {
          await one.close()
          await other.close()
        }
      },
    ),
    { numRuns: 20 },
  )
  t.ok(cached > requests / 6, `${cached} of ${requests} were cached`)
  t.ok(refused > 0, `${refused} were refused`)
})

t.test(
  'the server repeats an answer to who has used little, whatever its resource has',
  { skip },
  async (t) => {
    const rules = {
      ip: { capacity: 2000, refillPerSecond: 0 },
      resource: { capacity: 1500, refillPerSecond: 0 },
    }
    const own = await limited(rules, true)
    const ask = (from: string) => own.ask('/a', 'GET', { host: 'gateway.test', 'x-forwarded-for': from })
    const cost = Math.ceil(sizeBytes / 1024)
    let answers = 0
    while ((await ask('203.0.113.1')) === 200) answers += 1
    t.equal(answers, Math.floor(1500 / cost), 'its own tokens would do for more')
    const client = clientAt(own.house.clients, '203.0.113.2')
    const left = async () => (await own.house.buckets.ofClient(client))?.tokens ?? 2000
    t.equal(await ask('203.0.113.2'), 200)
    const before = own.fromCache()
    t.equal(await ask('203.0.113.2'), 200)
    t.equal(await ask('203.0.113.2'), 200)
    t.equal(own.fromCache(), before + 2, 'not by the steps')
    t.equal(await left(), 2000 - 3 * cost, 'and pays of its own')
    const [, taken, , ofResource] = own.counted()
    t.equal(taken, (answers + 3) * cost)
    t.equal(ofResource, answers * cost)
    t.equal(await ask('203.0.113.1'), 429)
    await own.close()
  },
)

t.test('what a client does not take is given back', { skip }, async (t) => {
  const rules = {
    ip: { capacity: 100_000, refillPerSecond: 0 },
    resource: { capacity: 100_000, refillPerSecond: 0 },
  }
  const own = await limited(rules, true, { ...about, trustedProxies: [] })
  const whole = Math.ceil(sizeBytes / 1024)
  const left = async (): Promise<number> =>
    (await own.house.buckets.ofClient(clientAt(own.house.clients, '127.0.0.1')))?.tokens ?? 100_000
  const resourceLeft = async (): Promise<number> =>
    (await own.house.buckets.ofResource(named('/a')))?.tokens ?? 100_000
  const headers = { host: 'gateway.test' }
  while (own.fromCache() === 0) t.equal(await own.ask('/a', 'GET', headers), 200)
  const before = await left()
  t.equal((100_000 - before) % whole, 0, 'whole answers')
  const socket = new Socket()
  await new Promise<void>((resolve) => socket.connect(own.server.port, '127.0.0.1', resolve))
  socket.pause()
  socket.write('GET /a HTTP/1.1\r\nHost: gateway.test\r\n\r\n'.repeat(100))
  await eventually('an answer is being sent', () => own.server.responseCache?.isSending === true)
  const taken = before - (await left())
  t.equal(taken % whole, 0, 'all of the answer is taken before it goes out')
  socket.destroy()
  await eventually('nothing is being sent', () => own.server.responseCache?.isSending === false)
  const sent = own.meters.value('get_data_stream_bytes_total', {})
  t.ok(before - (await left()) < taken, 'some came back')
  const used = Math.ceil((sent % sizeBytes) / 1024) + Math.floor(sent / sizeBytes) * whole
  t.ok(100_000 - (await left()) >= used, 'no byte was free')
  t.ok(
    100_000 - (await left()) <= used + 2 * whole,
    'but for the answers of the steps, which the meter does not have',
  )
  t.equal(await resourceLeft(), await left(), 'the same in the bucket of the resource')
  await own.close()
})

t.test(
  'the server and other threads take at once: no token is lost, and none is taken twice',
  { skip },
  async (t) => {
    const capacity = 2_000_000
    const rules = { ip: { capacity, refillPerSecond: 0 }, resource: { capacity, refillPerSecond: 0 } }
    const own = await limited(rules, true)
    const borrowed = own.house.buckets.lend?.()
    if (borrowed === undefined) throw new Error('not borrowed')
    const takers = [1, 2].map((seed) => {
      const order: TakerOrder = {
        options: { slots: 1024, capacity, refillPerSecond: 0 },
        ip: borrowed.ip.words.buffer as SharedArrayBuffer,
        resource: borrowed.resource.words.buffer as SharedArrayBuffer,
        secret: own.house.keeper.secret,
        addresses: ['203.0.113.1'],
        paths: ['/a'],
        rounds: 150_000,
        seed: seed * 7919,
      }
      return new Worker(new URL('./taker.js', import.meta.url), { workerData: order })
    })
    let running = takers.length
    const reports = takers.map(async (taker) => {
      const [report] = (await once(taker, 'message')) as [TakerReport]
      running -= 1
      return report['203.0.113.1'] ?? 0
    })
    const headers = { host: 'gateway.test', 'x-forwarded-for': '203.0.113.1' }
    let granted = 0
    while (running > 0) if ((await own.ask('/a', 'HEAD', headers)) === 200) granted += 1
    const kept = (await Promise.all(reports)).reduce((sum, one) => sum + one)
    const held = await own.house.buckets.ofClient(clientAt(own.house.clients, '203.0.113.1'))
    t.equal((held?.tokens ?? 0) + kept + granted, capacity)
    t.ok(own.fromCache() > granted / 2, `${own.fromCache()} of ${granted} were taken by the server`)
    await own.close()
  },
)

t.test(
  'a thread that stands still while it counts keeps its lock, one that has ended does not',
  { skip },
  async (t) => {
    const capacity = 1000
    const rules = { ip: { capacity, refillPerSecond: 0 }, resource: { capacity, refillPerSecond: 0 } }
    const own = await limited(rules, true)
    const { ip } = own.house.buckets.lend?.() ?? {}
    if (ip === undefined) throw new Error('not borrowed')
    const headers = { host: 'gateway.test', 'x-forwarded-for': '203.0.113.1' }
    const ask = () => own.ask('/a', 'HEAD', headers)
    const client = clientAt(own.house.clients, '203.0.113.1')
    const left = async () => (await own.house.buckets.ofClient(client))?.tokens
    while (own.fromCache() === 0) t.equal(await ask(), 200)
    const memory = ip.words.buffer as SharedArrayBuffer
    // The header, a lock and a mark for each of the 32 blocks, then the slots (src/admission/bucket-table.ts).
    const [cells, slots] = [32, 1024]
    const guarded = [64 + cells * 8, slots * 4] as const
    const order = { memory, offset: 64, cells, bits: client.key.hash, guarded }
    const program = new URL('./holder.js', import.meta.url)
    for (const more of [{ holdMs: 1000 }, {}]) {
      const before = (await left()) ?? 0
      const holder = new Worker(program, { workerData: { ...order, ...more } satisfies HolderOrder })
      // Both from the start: a thread that has ended gives its message and its end in one turn.
      const ended = once(holder, 'exit')
      await once(holder, 'message')
      if (!('holdMs' in more)) await ended
      // Once a second the steps take it, by the same rules.
      t.equal(await ask(), 200)
      await ended
      t.equal(await left(), before - 1, 'what was taken stays taken')
    }
    await own.close()
  },
)
