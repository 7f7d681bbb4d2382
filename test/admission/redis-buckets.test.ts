import { Redis } from 'ioredis'
import t from 'tap'
import { type Clock, pause, systemClock } from '../../src/actor/clock.js'
import { BucketTable } from '../../src/admission/bucket-table.js'
import { type BucketRules, Ticket } from '../../src/admission/buckets.js'
import { Clients } from '../../src/admission/clients.js'
import { RedisBuckets, type RedisOptions } from '../../src/admission/redis-buckets.js'
import { openAdmission } from '../../src/threads/edge/open-admission.js'
import { clientAt, conform, named } from '../conformance/buckets.js'
import { eventually } from '../eventually.js'
import { HandClock } from '../names/hand-clock.js'
import { suspend } from '../suspend.js'
import { dataFolder, localBuckets, silent, someClients } from './house.js'
import { freePort, hasRedis, type RedisServer, startRedis, until } from './redis-server.js'

const secret = { low: 1, high: 2 }
const clients = new Clients(someClients, secret)
const client = clientAt(clients, '203.0.113.1')
const steady = { capacity: 100, refillPerSecond: 0 }

function bucketsAt(
  port: number,
  more: Partial<RedisOptions> = {},
  ip: BucketRules = steady,
  resource = ip,
  clock: Clock = systemClock,
): RedisBuckets {
  const redis: RedisOptions = {
    endpoint: `redis://127.0.0.1:${port}`,
    tls: false,
    cluster: false,
    failure: 'closed',
    timeoutMs: 30_000,
    ...more,
  }
  const local = localBuckets({ ip, resource }, secret)
  return new RedisBuckets({ redis, ip, resource, local, clients, clock, log: silent })
}

/** Connected: sends a harmless command until it is answered. */
async function up(buckets: RedisBuckets): Promise<RedisBuckets> {
  await until(() =>
    buckets.ofClient(client).then(
      () => true,
      () => false,
    ),
  )
  return buckets
}

async function running(t: { teardown(act: () => Promise<void>): void }): Promise<RedisServer> {
  const server = await startRedis(dataFolder())
  t.teardown(() => server.stop())
  return server
}

const absent = hasRedis ? {} : { skip: 'redis-server is not installed' }

t.test('buckets in Redis', absent, async (t) => {
  const server = await running(t)
  const tool = new Redis(server.port)
  t.teardown(async () => tool.disconnect())
  await conform(
    t,
    async (rules) => {
      await tool.flushall()
      let buckets = await up(bucketsAt(server.port, {}, rules.ip, rules.resource))
      return {
        clients,
        get buckets() {
          return buckets
        },
        use: (given) => buckets.use(given),
        async restart() {
          // What is given back is not waited for: a question behind it is.
          await buckets.ofClient(client)
          await buckets.close()
          buckets = await up(bucketsAt(server.port, {}, rules.ip, rules.resource))
        },
        close: () => buckets.close(),
      }
    },
    { numRuns: 60, refills: false },
  )
})

t.test(
  'a cluster takes a take in one step, and only buckets with paid tokens stay for ever',
  absent,
  async (t) => {
    const server = await startRedis(dataFolder(), undefined, [
      '--cluster-enabled',
      'yes',
      '--cluster-announce-ip',
      '127.0.0.1',
      '--cluster-port',
      String(await freePort()),
    ])
    t.teardown(() => server.stop())
    const tool = new Redis(server.port)
    t.teardown(async () => tool.disconnect())
    await tool.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await until(async () => String(await tool.cluster('INFO')).includes('cluster_state:ok'))
    const buckets = await up(
      bucketsAt(server.port, { cluster: true }, { capacity: 100, refillPerSecond: 10 }),
    )
    t.teardown(() => buckets.close())
    t.match(await buckets.take(client, named('/x'), 10, 'both'), { tokens: 10 })
    t.equal(await buckets.credit('2001:db8::1', 'payer:nonce', 5), 'credited')
    const keys = await tool.keys('*')
    t.equal(keys.length, 4)
    const slots = await Promise.all(keys.map((key) => tool.cluster('KEYSLOT', key)))
    t.equal(new Set(slots).size, 1, 'all in one slot: else no cluster of several nodes would run the script')
    for (const key of keys) {
      const ms = await tool.pttl(key)
      if (key.includes('2001:db8')) t.equal(ms, -1, 'paid tokens do not expire')
      else t.ok(ms > 0, `${key} goes by itself`)
    }
  },
)

t.test('buckets in Redis refill up to full', absent, async (t) => {
  const server = await running(t)
  const buckets = await up(bucketsAt(server.port, {}, { capacity: 1000, refillPerSecond: 1000 }))
  t.teardown(() => buckets.close())
  const began = systemClock.monotonic()
  await buckets.take(client, named('/x'), 1000, 'client')
  await pause(300)
  const held = await buckets.ofClient(client)
  const gone = systemClock.monotonic() - began
  t.ok(
    held !== undefined && held.tokens >= 290 && held.tokens <= gone + 1,
    `${held?.tokens} after ${gone} ms`,
  )
  await pause(900)
  t.same(await buckets.ofClient(client), { tokens: 1000, paidTokens: 0 })
})

t.test('an empty bucket of Redis refills after the clock was ahead', absent, async (t) => {
  const server = await running(t)
  const tool = new Redis(server.port)
  t.teardown(async () => tool.disconnect())
  const buckets = await up(bucketsAt(server.port, {}, { capacity: 100, refillPerSecond: 100 }))
  t.teardown(() => buckets.close())
  t.match(await buckets.take(client, named('/x'), 100, 'both'), { tokens: 100 })
  const ahead = Date.now() + 365 * 86_400_000
  for (const key of await tool.keys('*')) await tool.hset(key, 't', ahead)
  t.match(await buckets.take(client, named('/x'), 100, 'both'), { short: 'ip' })
  await until(async () => (await buckets.take(client, named('/x'), 1, 'both')) instanceof Ticket)
})

t.test('what was paid survives kill -9 of Redis', absent, async (t) => {
  const folder = dataFolder()
  const first = await startRedis(folder)
  const buckets = await up(bucketsAt(first.port))
  t.teardown(() => buckets.close())
  await buckets.credit('203.0.113.1', 'payer:nonce', 77)
  first.process.kill('SIGKILL')
  await first.stop()
  const second = await startRedis(folder, first.port)
  t.teardown(() => second.stop())
  await up(buckets)
  t.match(await buckets.ofClient(client), { paidTokens: 77 }, 'and the connection came back by itself')
  t.equal(await buckets.credit('203.0.113.1', 'payer:nonce', 77), 'known')
})

t.test(
  'Redis is gone: open lets through, closed does not, and a payment is not called safe',
  absent,
  async (t) => {
    const port = await freePort()
    const [open, closed] = [bucketsAt(port, { failure: 'open' }), bucketsAt(port)]
    t.teardown(() => Promise.all([open.close(), closed.close()]).then(() => undefined))
    t.ok((await open.take(client, named('/x'), 5, 'both')) instanceof Ticket)
    t.same(await closed.take(client, named('/x'), 5, 'both'), { unavailable: true })
    await t.rejects(open.credit('203.0.113.1', 'payer:nonce', 5))
    await t.rejects(closed.ofClient(client))
    const server = await startRedis(dataFolder(), port)
    t.teardown(() => server.stop())
    await up(closed)
    t.match(
      await closed.take(client, named('/x'), 5, 'both'),
      { tokens: 5 },
      'and it goes on when Redis comes',
    )
  },
)

t.test('Redis is gone: each gateway counts by itself', absent, async (t) => {
  const port = await freePort()
  const buckets = bucketsAt(port, { failure: 'local' })
  t.teardown(() => buckets.close())
  const take = (tokens: number, who = client): ReturnType<typeof buckets.take> =>
    buckets.take(who, named('/x'), tokens, 'both')
  const first = await take(60)
  t.match(first, { tokens: 60 })
  const short = { short: 'ip', retrySeconds: 5, isPaidUnknown: true }
  t.same(await take(60), short, 'a flood is limited')
  if (first instanceof Ticket) first.give(60)
  t.match(await take(100), { tokens: 100 }, 'what was not sent is given back')
  t.same(await take(1), short)
  t.match(await take(1, clientAt(clients, '203.0.113.2')), { tokens: 1 }, 'others are served')
  const server = await startRedis(dataFolder(), port)
  t.teardown(() => server.stop())
  await up(buckets)
  t.match(await take(100), { tokens: 100 }, 'Redis counts again')
})

t.test(
  'Redis hangs: each answer waits so long and no longer, soon none waits, and late takes are given back',
  absent,
  async (t) => {
    const server = await running(t)
    const clock = new HandClock()
    const buckets = await up(bucketsAt(server.port, { timeoutMs: 3000 }, steady, steady, clock))
    t.teardown(() => buckets.close())
    await suspend(server.process)
    const outcomes: unknown[] = []
    for (let turn = 0; turn < 5; turn += 1)
      void buckets.take(client, named('/x'), 10, 'both').then((outcome) => outcomes.push(outcome))
    await clock.turn(2999)
    t.same(outcomes, [])
    await clock.turn(1)
    await eventually('all have an answer after the time of one', () => outcomes.length === 5)
    t.same(outcomes, new Array(5).fill({ unavailable: true }))
    // Time stands still: after five failures nobody waits for a while.
    t.same(await buckets.take(client, named('/x'), 10, 'both'), { unavailable: true })
    server.process.kill('SIGCONT')
    await clock.turn(60_000)
    const tool = new Redis(server.port)
    t.teardown(async () => tool.disconnect())
    await up(buckets)
    await until(async () => (await buckets.ofClient(client))?.tokens === 100)
    t.match(await buckets.ofClient(client), { tokens: 100 }, 'whoever was not served was not charged')
  },
)

t.test('an answer that came while this thread was busy is no silence of Redis', absent, async (t) => {
  const server = await running(t)
  const buckets = await up(bucketsAt(server.port, { failure: 'open', timeoutMs: 20 }))
  t.teardown(() => buckets.close())
  const takings = Array.from({ length: 10 }, () => buckets.take(client, named('/x'), 10, 'both'))
  // The commands are sent, and their answers come meanwhile.
  const begunMs = systemClock.monotonic()
  while (systemClock.monotonic() - begunMs < 400);
  for (const taking of await Promise.all(takings)) t.match(taking, { tokens: 10 })
  t.match(await buckets.take(client, named('/x'), 10, 'both'), { short: 'ip' }, 'the bucket is empty')
})

t.test('a payment stays bound until the last gateway that requested it withdraws', absent, async (t) => {
  const server = await running(t)
  const buckets = await up(bucketsAt(server.port))
  t.teardown(() => buckets.close())
  const claims = (self: string) => buckets.claims({ self, leftMs: 60_000 })
  const bind = async (self: string, beneficiary: string): Promise<string | undefined> =>
    (await claims(self).bind?.({ payment: 'p', beneficiary }))?.beneficiary
  t.equal(await bind('a', '10.0.0.1'), '10.0.0.1')
  // Its disk is full: it withdraws, while the other one is on its way to the facilitator.
  t.equal(await bind('b', '10.0.0.1'), '10.0.0.1')
  await claims('b').clear('p')
  t.equal(await bind('c', '10.6.6.6'), '10.0.0.1', 'the stranger gets nothing')
  t.match(await claims('c').look('p'), { state: 'pending', beneficiary: '10.0.0.1' })
  await claims('c').clear('p')
  t.match(await claims('c').look('p'), { state: 'pending' }, 'who has not requested it unbinds nothing')
  await claims('a').clear('p')
  t.match(await claims('c').look('p'), { state: 'nobody' })
  t.equal(await bind('c', '10.6.6.6'), '10.6.6.6', 'free again')
})

t.test('a mark in Redis is read as what a stranger sends', absent, async (t) => {
  const server = await running(t)
  const buckets = await up(bucketsAt(server.port))
  const tool = new Redis(server.port)
  t.teardown(async () => {
    tool.disconnect()
    await buckets.close()
  })
  const claims = buckets.claims({ self: 'a', leftMs: 60_000 })
  await buckets.credit('203.0.113.1', 'p', 5, { transaction: `0x${'ab'.repeat(32)}` })
  const [key = ''] = await tool.keys('*:paid:*')
  t.match(await claims.look('p'), { state: 'credited', transaction: `0x${'ab'.repeat(32)}` })
  const hostile = [
    '5',
    '{',
    '{"bucket":',
    'null',
    '[]',
    '{"bucket":{"toString":1},"transaction":7}',
    '{"bucket":"","transaction":"0x12"}',
    JSON.stringify({ bucket: 'x'.repeat(1e5), transaction: `0x${'zz'.repeat(32)}` }),
  ]
  for (const text of hostile) {
    await tool.set(key, text)
    t.strictSame(await claims.look('p'), { state: 'credited' }, text.slice(0, 60))
  }
})

t.test('no client uses up the calls of all', absent, async (t) => {
  const server = await running(t)
  const clock = new HandClock()
  const buckets = await up(bucketsAt(server.port, { timeoutMs: 3000 }, steady, steady, clock))
  t.teardown(() => buckets.close())
  await suspend(server.process)
  const outcomes: unknown[] = []
  const note = (outcome: unknown): void => void outcomes.push(outcome)
  for (let takes = 0; takes < 520; takes += 1) void buckets.take(client, named('/x'), 1, 'both').then(note)
  void buckets.take(clientAt(clients, '203.0.113.2'), named('/x'), 1, 'both').then(note)
  await eventually('those beyond the bound are refused', () => outcomes.length >= 8)
  t.same(outcomes, new Array(8).fill({ short: 'ip', retrySeconds: 1, isPaidUnknown: true }))
  server.process.kill('SIGCONT')
  await eventually('all have an answer', () => outcomes.length === 521)
  t.match(await buckets.take(client, named('/x'), 0, 'both'), { tokens: 0 }, 'room again')
})

t.test('a take for what was just paid waits for Redis as long as its credit did', absent, async (t) => {
  const server = await running(t)
  const clock = new HandClock()
  const buckets = await up(
    bucketsAt(server.port, { timeoutMs: 250, failure: 'local' }, steady, steady, clock),
  )
  t.teardown(() => buckets.close())
  t.match(await buckets.take(client, named('/x'), 100, 'both'), { tokens: 100 })
  t.equal(await buckets.credit(client.address, 'a payment', 40), 'credited')
  await suspend(server.process)
  const [usual, paid] = (['both', 'payer'] as const).map((from) =>
    buckets.take(client, named('/x'), 20, from),
  )
  await clock.turn(250)
  t.match(await usual, { tokens: 20, paid: 0 }, 'the own bucket of the gateway')
  server.process.kill('SIGCONT')
  t.match(await paid, { tokens: 20, paid: 20 })
})

t.test('the buckets that count without Redis are refilled', async (t) => {
  const options = { capacity: 10, refillPerSecond: 100, slots: 1024 }
  const memory = (): SharedArrayBuffer => new SharedArrayBuffer(BucketTable.bytes(options))
  const [ipMemory, resourceMemory] = [memory(), memory()]
  const redis = {
    endpoint: 'redis://127.0.0.1:1',
    tls: false,
    cluster: false,
    failure: 'local',
    timeoutMs: 5,
  } as const
  const thread = openAdmission({
    place: { ip: options, resource: options, ipMemory, resourceMemory, redis },
    clients: someClients,
    keeper: { path: '/nowhere', saveEveryMs: 1000 },
    logLevel: 'silent',
  })
  t.teardown(() => thread.close())
  const table = new BucketTable(ipMemory, options)
  t.ok(table.take(client.key, 10))
  await eventually('the bucket is full again', () => table.take(client.key, 10))
})
