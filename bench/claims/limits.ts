import { spawn, spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import { pause, systemClock } from '../../src/actor/clock.js'
import { localAddress } from '../../src/actor/mailbox-address.js'
import { Key } from '../../src/admission/bucket-key.js'
import { BucketTable } from '../../src/admission/bucket-table.js'
import { Clients } from '../../src/admission/clients.js'
import { LocalBuckets } from '../../src/admission/local-buckets.js'
import { MemoryBuckets } from '../../src/admission/memory-buckets.js'
import { RedisBuckets } from '../../src/admission/redis-buckets.js'
import { type Corpus, corpusOf } from '../corpus/corpus.js'
import { freePort } from '../kit/child.js'
import { median } from '../kit/numbers.js'
import { say } from '../kit/say.js'
import { Stopwatch } from '../kit/usage.js'
import { makeLoad, type Outcome, type Target, tryLoad } from '../load/load.js'
import type { Candidate } from '../rivals/candidate.js'
import { fillWith, startGateway } from '../rivals/gateway.js'

const help = `limits: what limits cost

  --rounds N    of each comparison (5)
  --seconds N   of load a round (1)
  --only NAMES  take, throughput, redis, flood
`

/** One content of 1 KiB. */
const corpusOfOne = (): Corpus =>
  corpusOf({ name: 'limits', count: 1, sizes: { law: 'listed', sizesBytes: [1024] } })

function targetIn({ contents }: Corpus): Target {
  return { path: `/${contents[0]?.id}`, sizeBytes: 1024 }
}

/** Nanoseconds of this thread's processor time for each of `count` calls. */
function cost(count: number, act: (at: number) => void): number {
  const before = process.cpuUsage().user
  for (let at = 0; at < count; at += 1) act(at)
  return ((process.cpuUsage().user - before) * 1000) / count
}

/** Takes from 1 million live buckets in a random order, and from one. */
function takes(): void {
  const live = 1_000_000
  const secret = { low: 11, high: 22 }
  const options = { slots: 2 * live, capacity: 100_000, refillPerSecond: 20 }
  const bytes = BucketTable.bytes(options)
  const ip = new BucketTable(new SharedArrayBuffer(bytes), options)
  const resource = new BucketTable(new SharedArrayBuffer(bytes), options)
  const keys = Array.from({ length: live }, (_, at) => {
    return Key.ofWords(Int32Array.of(0, 0, 0xffff, Math.imul(at, 2654435761)), secret)
  })
  const made = cost(live, (at) => ip.take(keys[at]!, 1))
  const random = cost(live, (at) => ip.take(keys[(at * 7919) % live]!, 1))
  const clients = new Clients({ trustedProxies: [], exempt: [], ipv6PrefixBits: 64 }, secret)
  const keeper = localAddress<never, never>(() => undefined)
  const buckets = new MemoryBuckets({ ip, resource, clients, secret, keeper })
  const paths = Array.from({ length: 1000 }, (_, at) => `/${'a'.repeat(40)}${String(at).padStart(3, '0')}`)
  const requests = paths.map((path) => ({
    method: 'GET',
    path,
    query: '',
    remoteAddress: `10.${paths.indexOf(path) & 255}.0.1`,
    header: () => 'localhost:3000',
    body: () => Promise.reject(new Error('none')),
  }))
  const whole = cost(live, (at) => {
    const request = requests[at % 1000]!
    buckets.take(clients.of(request), request, 1, 'both')
  })
  say(
    `1 million live buckets in ${(bytes / 1e6).toFixed(1)} MB: ${(bytes / live).toFixed(1)} bytes each at load 0.5`,
  )
  say(`a take: ${random.toFixed(0)} ns (random buckets), ${made.toFixed(0)} ns (new buckets)`)
  say(`client, both buckets and the ticket: ${whole.toFixed(0)} ns`)
}

const limited = {
  ENABLE_RATE_LIMITER: 'true',
  RATE_LIMITER_IP_TOKENS_PER_BUCKET: '1099511627776',
  RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET: '1099511627776',
}

/** Cached 1 KiB with and without limits, in turns: requests per second of processor time. */
async function throughput(rounds: number, seconds: number): Promise<void> {
  const corpus = corpusOfOne()
  const fill = (seeding: Parameters<typeof fillWith>[0]) => fillWith(seeding, corpus)
  const targets = [
    await startGateway({ name: 'off', fill }),
    await startGateway({ name: 'on', fill, settings: limited }),
  ]
  const once = async (target: Candidate): Promise<number> => {
    const watch = new Stopwatch(target.pid)
    const { answered } = await makeLoad({ targets: [targetIn(corpus)] }, { port: target.port, seconds })
    return answered / watch.seconds()
  }
  try {
    for (const target of targets) await once(target)
    const found: [number, number][] = []
    // Both at the same time, so that other work on this machine affects both.
    for (let round = 0; round < rounds; round += 1) {
      const [off = 0, on = 0] = await Promise.all(targets.map(once))
      found.push([off, on])
    }
    const [off, on] = [median(found.map(([one]) => one)), median(found.map(([, other]) => other))]
    const share = median(found.map(([one, other]) => other / one))
    say(
      `cached 1 KiB a CPU second: ${off.toFixed(0)} without limits, ${on.toFixed(0)} with: ${(share * 100).toFixed(1)} %`,
    )
  } finally {
    for (const target of targets) await target.stop()
  }
}

/** Whether loads can run on another processor than the gateway, so that their cost is not measured as its own. */
function canPin(): boolean {
  return availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0
}

interface Flood {
  readonly name: string
  /** Tokens of a bucket, which the flood may take before it is refused. */
  readonly tokens: number
  /** Clients come through one trusted proxy. */
  readonly proxied: boolean
  /** What the flood asks for; the calm client's object where it is absent. */
  readonly path?: string
}

/**
 * The p99 of a calm client while another address floods with 20,000 requests a second that do not wait for answers, beside its
 * p99 without, in turns. The gateway has a processor for itself, and the flood gives way to the calm client on the other one.
 */
async function flood({ name, tokens, proxied, path }: Flood, rounds: number, seconds: number): Promise<void> {
  const corpus = corpusOfOne()
  const settings = {
    ENABLE_RATE_LIMITER: 'true',
    RATE_LIMITER_IP_TOKENS_PER_BUCKET: String(tokens),
    RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET: '1099511627776',
    ...(proxied ? {} : { TRUSTED_PROXIES: 'none' }),
  }
  const fill = (seeding: Parameters<typeof fillWith>[0]) => fillWith(seeding, corpus)
  const target = await startGateway({ name: 'flooded', fill, settings })
  const pins = canPin()
  if (pins) spawnSync('taskset', ['-acp', '1', String(target.pid)], { stdio: 'ignore' })
  const place = pins ? { cpu: 0 } : {}
  const load = { port: target.port, ...place }
  const as = (last: number) => ({
    lines: proxied ? [`X-Forwarded-For: 203.0.113.${last}`] : [],
    from: proxied ? {} : { from: `127.0.0.${last}` },
  })
  const calm = (): Promise<Outcome> => {
    const { lines, from } = as(3)
    const targets = [{ ...targetIn(corpus), lines }]
    return makeLoad({ targets }, { ...load, ...from, seconds, connections: 16, rate: 500 })
  }
  const storm = (duration: number): Promise<Outcome> => {
    const { lines, from } = as(2)
    const targets = [{ path: path ?? targetIn(corpus).path, status: 'any' as const, lines }]
    const manner = { seconds: duration, connections: 32, rate: 20_000, flood: true, meek: pins, drainMs: 0 }
    return tryLoad({ targets }, { ...load, ...from, ...manner })
  }
  try {
    await calm()
    await storm(Math.min(3, 1 + tokens / 20_000))
    const p99: [number, number][] = []
    const flooding = { answers: 0, sent: 0, seconds: 0, status: '', cpu: 0, quietCpu: 0 }
    for (let round = 0; round < rounds; round += 1) {
      const alone = new Stopwatch(target.pid)
      const quiet = await calm()
      flooding.quietCpu += alone.seconds() / quiet.seconds
      const watch = new Stopwatch(target.pid)
      const storming = storm(seconds + 0.4)
      await pause(200)
      const beside = await calm()
      const over = await storming
      p99.push([quiet.p99Us, beside.p99Us])
      flooding.answers += over.answered
      flooding.sent += over.sent
      flooding.seconds += over.seconds
      flooding.status = Object.keys(over.statuses).join(' and ')
      flooding.cpu += watch.seconds()
    }
    const [quiet, beside] = [median(p99.map(([one]) => one)), median(p99.map(([, other]) => other))]
    const each = (sum: number): string => (sum / flooding.seconds).toFixed(0)
    const share = ((flooding.cpu / flooding.seconds) * 100).toFixed(0)
    const quietShare = ((flooding.quietCpu / rounds) * 100).toFixed(0)
    const alone = pins ? 'gateway and loads on processors of their own' : 'all on the same processors'
    say(
      `${name}: 20,000 requests/s offered, ${each(flooding.sent)} sent, ${each(flooding.answers)} answered ` +
        `(${flooding.status}); the gateway used ${share} % of a processor, ${quietShare} % without it (${alone})`,
    )
    const ratios = p99.map(([one, other]) => (other / one).toFixed(2)).join(' ')
    const times = `${(beside / quiet).toFixed(2)}x (rounds: ${ratios})`
    say(`  the p99 of another client is ${beside} us, ${quiet} us without it: ${times}`)
  } finally {
    await target.stop()
  }
}

const floods: readonly Flood[] = [
  { name: 'flood of an address that is refused', tokens: 20_000, proxied: false },
  { name: 'flood of what costs no tokens', tokens: 20_000, proxied: false, path: '/gateway/info' },
  { name: 'flood of an address while its tokens last', tokens: 2 ** 40, proxied: false },
  { name: 'flood that comes through a trusted proxy', tokens: 20_000, proxied: true },
]

/** One take in Redis beside one PING, one after the other on one connection each. */
async function redis(count: number): Promise<void> {
  const port = await freePort()
  const child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', ''], {
    stdio: 'ignore',
  })
  const secret = { low: 1, high: 2 }
  const clients = new Clients({ trustedProxies: [], exempt: [], ipv6PrefixBits: 64 }, secret)
  const rules = { capacity: 2 ** 40, refillPerSecond: 20 }
  const options = { ...rules, slots: 1024 }
  const table = new BucketTable(new SharedArrayBuffer(BucketTable.bytes(options)), options)
  const endpoint = `redis://127.0.0.1:${port}`
  const how = { endpoint, tls: false, cluster: false, failure: 'closed', timeoutMs: 1000 } as const
  const quiet = { info: () => undefined, warn: () => undefined }
  const buckets = new RedisBuckets({
    redis: how,
    ip: rules,
    resource: rules,
    local: new LocalBuckets({ ip: table, resource: table, secret }),
    clients,
    clock: systemClock,
    log: quiet,
  })
  const tool = new Redis(port, { retryStrategy: () => 100 })
  tool.on('error', () => undefined)
  try {
    const client = clients.at('203.0.113.1')
    if (client === undefined) throw new Error('no address')
    const request = { method: 'GET', path: '/x', header: () => 'localhost' }
    while ('unavailable' in (await buckets.take(client, request, 1, 'both'))) await pause(50)
    const times: [number[], number[]] = [[], []]
    for (let at = 0; at < count; at += 1) {
      for (const [kind, act] of [
        () => tool.ping(),
        () => buckets.take(client, request, 1, 'both'),
      ].entries()) {
        const began = systemClock.monotonic()
        await act()
        times[kind]?.push((systemClock.monotonic() - began) * 1000)
      }
    }
    const [ping, take] = [median(times[0]), median(times[1])]
    say(`Redis: a take ${take.toFixed(0)} us, a PING ${ping.toFixed(0)} us: ${(take / ping).toFixed(2)}x`)
  } finally {
    tool.disconnect()
    await buckets.close()
    child.kill()
  }
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
})
if (values.help === true) {
  say(help)
  process.exit(0)
}
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]
const wants = (name: string): boolean => values.only === undefined || values.only.split(',').includes(name)
if (wants('take')) takes()
if (wants('throughput')) await throughput(rounds, seconds)
if (wants('redis')) await redis(3000)
if (wants('flood')) for (const each of floods) await flood(each, rounds, seconds)
