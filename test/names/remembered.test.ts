import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { silentLog } from '../../src/actor/log.js'
import { refuse } from '../../src/format/refusal.js'
import { parseName } from '../../src/names/name.js'
import type {
  Name,
  NameRecord,
  ResolveContext,
  Resolver,
  ResolverVerdict,
} from '../../src/names/names-port.js'
import { RedisNames } from '../../src/names/redis-names.js'
import { remembered } from '../../src/names/remembered.js'
import { hasRedis, startRedis, until } from '../admission/redis-server.js'
import { conformResolver } from '../conformance/resolver.js'
import { someId } from '../source/rig.js'
import { suspend } from '../suspend.js'
import { HandClock } from './hand-clock.js'

const skip = hasRedis ? false : 'no redis-server here'
const asking: ResolveContext = { hops: 0, via: [], signal: new AbortController().signal }
const rules = { staleMs: 86_400_000, refreshMs: 30_000 }
const site = parseName('site') as Name

class Scripted implements Resolver {
  readonly label = 'gateway'
  readonly remote = true
  readonly has = new Map<string, NameRecord>()
  broken = false
  calls = 0

  async resolve({ full }: Name): Promise<ResolverVerdict> {
    this.calls += 1
    return this.broken ? refuse('upstream', 'upstream', 'broken') : (this.has.get(full) ?? 'absent')
  }
}

/** A memory in a Redis of its own, and one more line to it. */
async function memories(t: Test, timeoutMs = 30_000) {
  const server = await startRedis(t.testdir())
  t.teardown(() => server.stop())
  const url = `redis://127.0.0.1:${server.port}`
  const open = async (): Promise<RedisNames> => {
    const memory = new RedisNames({ url, tls: false, timeoutMs, keptMs: 86_400_000 }, silentLog)
    t.teardown(() => memory.close())
    memory.keep('on-demand', site, { record: { id: someId(), ttlSeconds: 1 }, resolvedAtMs: 1 })
    await until(async () => {
      memory.keep('on-demand', site, { record: { id: someId(), ttlSeconds: 1 }, resolvedAtMs: 1 })
      return (await memory.recall('on-demand', site)) !== undefined
    })
    return memory
  }
  return { server, url, open }
}

t.test('it passes the tests of every resolver', { skip }, async (t) => {
  const { open } = await memories(t)
  const inner = new Scripted()
  for (const full of ['site', 'docs_site', 'over_site']) inner.has.set(full, { id: someId(), ttlSeconds: 0 })
  const resolver = remembered(inner, await open(), { ...rules, staleMs: 0 }, new HandClock())
  const breaks = async (): Promise<void> => {
    inner.broken = true
  }
  await conformResolver(t, { resolver, has: inner.has, breaks })
})

t.test('what one gateway resolved, the other knows, until the TTL ends', { skip }, async (t) => {
  const { open } = await memories(t)
  const clock = new HandClock()
  const [inner, other] = [new Scripted(), new Scripted()]
  inner.has.set('site', { id: someId(), ttlSeconds: 900, antId: 'ant', undernameLimit: 10, recordIndex: 0 })
  const one = remembered(inner, await open(), rules, clock)
  const two = remembered(other, await open(), rules, clock)
  const first = await one.resolve(site, asking)
  const resolvedMs = clock.now()
  await until(async () => (await two.resolve(site, asking)) !== 'absent')
  const before = other.calls
  t.same(await two.resolve(site, asking), { ...(first as NameRecord), resolvedAtMs: resolvedMs })
  t.equal(other.calls, before, 'nobody was asked')
  await clock.turn(871_000)
  other.broken = true
  t.match(await two.resolve(site, asking), { resolvedAtMs: resolvedMs }, 'it fails: what is old still counts')
  t.equal(other.calls, before + 1, 'but it was asked, for the time is nearly over')
  await clock.turn(86_400_000)
  t.match(await two.resolve(site, asking), { refused: 'upstream' }, 'too old')
})

t.test('an answer for a trail is not stored for all gateways', { skip }, async (t) => {
  const { open } = await memories(t)
  const memory = await open()
  const inner = new Scripted()
  const other = parseName('other') as Name
  inner.has.set('other', { id: someId(), ttlSeconds: 900 })
  const resolver = remembered(inner, memory, rules, new HandClock())
  for (const trailed of [
    { ...asking, hops: 1 },
    { ...asking, via: ['a.example'] },
  ]) {
    await resolver.resolve(other, trailed)
  }
  t.equal(await memory.recall('gateway', other), undefined)
  await resolver.resolve(other, asking)
  await until(async () => (await memory.recall('gateway', other)) !== undefined)
  t.equal(inner.calls, 3)
})

t.test(
  'malformed records in Redis, and a Redis that does not answer, count as an empty memory',
  { skip },
  async (t) => {
    const { open, server, url } = await memories(t, 50)
    const memory = await open()
    const redis = new Redis(url)
    const rubbish = [
      '',
      'null',
      '[]',
      '{',
      '7',
      '{"record":{}}',
      '{"record":{"id":"x"},"resolvedAtMs":1}',
      '{"record":null}',
    ]
    for (const text of [...rubbish, JSON.stringify({ record: { id: someId() }, resolvedAtMs: 'x' })]) {
      await redis.set('sluice{names}:gateway:site', text)
      t.equal(await memory.recall('gateway', site), undefined, text)
    }
    redis.disconnect()
    await suspend(server.process)
    t.equal(await memory.recall('gateway', site), undefined, 'hangs')
    server.process.kill('SIGCONT')
    await server.stop()
    t.equal(await memory.recall('gateway', site), undefined, 'gone')
    memory.keep('gateway', site, { record: { id: someId(), ttlSeconds: 1 }, resolvedAtMs: 1 })
  },
)
