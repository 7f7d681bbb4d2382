import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { mappedBy } from '../native/mapped/mapped.js'
import { servedBy } from '../native/server/server.js'
import { pause } from '../src/actor/clock.js'
import { benchBand, offered, shelveBand } from './band.js'
import { type Candidate, nginxVersion, startGateway, startNginx, startNodeHttp } from './candidates.js'
import { type Case, cases } from './cases.js'
import { coldLine, coldReads } from './cold.js'
import { benchFolder, makeLoad } from './load.js'
import { type BenchObject, benchObject, objectsFolder, type SizeName } from './objects.js'
import { slowReaders } from './slow.js'
import { cpuSeconds, residentMb } from './usage.js'

const help = `bench: this gateway beside nginx and node:http, in alternating rounds

  --small           objects up to 1 MiB and one short round: does it run at all
  --rounds N        rounds of each case (3)
  --seconds N       of load for each candidate and round (2)
  --threads N       edge threads, and nginx workers (1)
  --connections N   keep-alive connections (32)
  --only NAMES      cases by name, comma separated
  --target PORT,PID measure a server that runs already instead of starting the gateway
`

/** One candidate in one round. Ratios are made of requests (or bytes) per second of the server's processor time. */
interface Round {
  readonly perCpu: number
  readonly perSecond: number
  readonly mbPerSecond: number
  readonly p99Us: number
  readonly rssMb: number
}

interface Row {
  readonly case: string
  readonly candidate: string
  readonly median: Round
  readonly ratio: number
}

const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

function pathOf({ isGateway }: Candidate, { id, gatewayPath }: BenchObject): string {
  return isGateway === true && gatewayPath !== undefined ? gatewayPath : `/${id}`
}

/** Makes sure that the candidate answers as it should, and learns its ETag. */
async function probe(target: Candidate, object: BenchObject, asked: Case): Promise<string> {
  const url = `http://127.0.0.1:${target.port}${pathOf(target, object)}`
  const range = asked.rangeBytes === undefined ? {} : { range: `bytes=5-${asked.rangeBytes + 4}` }
  const answer = await fetch(url, { method: asked.method, headers: range })
  const wanted = asked.rangeBytes ?? object.sizeBytes
  let bytes = 0
  for await (const piece of answer.body ?? []) bytes += (piece as Uint8Array).length
  const length = Number(answer.headers.get('content-length'))
  const whole = length === wanted && (asked.method === 'HEAD' || bytes === wanted)
  const status = asked.rangeBytes === undefined ? 200 : 206
  if (answer.status !== status || !whole) {
    throw new Error(`${target.name}, ${asked.name}: ${answer.status} with ${bytes} of ${length} bytes`)
  }
  return answer.headers.get('etag') ?? ''
}

/** Waits until a candidate has nothing left to do of its own: this program checks the digest of what it first serves. */
async function idle(target: Candidate): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) {
    const before = cpuSeconds(target.pid)
    await pause(300)
    if (cpuSeconds(target.pid) - before < 0.03) return
  }
}

async function once(
  target: Candidate,
  object: BenchObject,
  asked: Case,
  etag: string,
  how: { connections: number; seconds: number },
): Promise<Round> {
  const before = cpuSeconds(target.pid)
  const outcome = await makeLoad({
    port: target.port,
    ...how,
    method: asked.method,
    path: pathOf(target, object),
    ...(asked.rangeBytes === undefined
      ? {}
      : { range: { lengthBytes: asked.rangeBytes, sizeBytes: object.sizeBytes } }),
    ...(asked.conditional === true ? { header: `If-None-Match: ${etag}` } : {}),
  })
  if (outcome.failures > 0) throw new Error(`${target.name}, ${asked.name}: ${outcome.failures} failures`)
  const cpu = cpuSeconds(target.pid) - before
  // Large bodies do not end within a round: bytes count there, requests elsewhere.
  const work = object.sizeBytes > 2 ** 20 && asked.rangeBytes === undefined ? outcome.bytes : outcome.requests
  return {
    perCpu: work / cpu,
    perSecond: outcome.requests / outcome.seconds,
    mbPerSecond: outcome.bytes / outcome.seconds / 1e6,
    p99Us: outcome.p99Us,
    rssMb: residentMb(target.pid).all,
  }
}

async function measure(
  asked: Case,
  targets: readonly Candidate[],
  how: { connections: number; seconds: number; rounds: number },
): Promise<Row[]> {
  const object = asked.object === 'band' ? await benchBand() : benchObject(asked.object)
  const etags = new Map<Candidate, string>()
  for (const target of targets) etags.set(target, await probe(target, object, asked))
  for (const target of targets) await idle(target)
  const rounds = new Map<Candidate, Round[]>(targets.map((target) => [target, []]))
  for (let turn = 0; turn < how.rounds; turn += 1) {
    for (const target of targets) {
      rounds.get(target)?.push(await once(target, object, asked, etags.get(target) ?? '', how))
    }
  }
  const middle = (target: Candidate, key: keyof Round): number =>
    median((rounds.get(target) ?? []).map((round) => round[key]))
  const first = targets[0]!
  return targets.map((target) => ({
    case: asked.name,
    candidate: target.name,
    median: {
      perCpu: middle(target, 'perCpu'),
      perSecond: middle(target, 'perSecond'),
      mbPerSecond: middle(target, 'mbPerSecond'),
      p99Us: middle(target, 'p99Us'),
      rssMb: middle(target, 'rssMb'),
    },
    ratio: middle(target, 'perCpu') / middle(first, 'perCpu'),
  }))
}

function print(asked: Case, rows: readonly Row[], toNginx: boolean): void {
  for (const { candidate, median: found, ratio } of rows) {
    const cells = [
      asked.name.padEnd(16),
      candidate.padEnd(15),
      `${ratio.toFixed(2)}x`.padStart(7),
      found.perSecond.toFixed(0).padStart(8),
      found.mbPerSecond.toFixed(0).padStart(7),
      (found.p99Us / 1000).toFixed(2).padStart(9),
      found.rssMb.toFixed(0).padStart(6),
    ]
    if (toNginx && candidate === 'sluice') {
      cells.push(ratio >= asked.wanted ? `  wanted ${asked.wanted}x: yes` : `  wanted ${asked.wanted}x: NO`)
      if (asked.peer !== undefined) cells.push(`  ${(ratio / asked.peer).toFixed(0)} times the peer`)
    }
    say(cells.join(' '))
  }
}

/** Two edge threads beside two workers of nginx: nothing on the hot path may be shared. */
async function measurePairs(): Promise<Row[]> {
  const both = [
    await startNginx(folder, 2, 'sendfile'),
    await startGateway(objects, 2, { name: 'sluice-pair', settings: {} }),
  ]
  const named = both.map((target) => ({ ...target, name: `2 x ${target.name.split(/[ -]/)[0]}` }))
  const found: Row[] = []
  try {
    for (const asked of chosen.filter(({ paired }) => paired === true)) {
      const pair = await measure(asked, named, how)
      print(asked, pair, false)
      found.push(...pair)
    }
  } finally {
    for (const target of both) await target.stop()
  }
  return found
}

function keep(results: object): void {
  const path = join(
    benchFolder,
    'results',
    `${new Date().toISOString().slice(0, 19).replaceAll(':', '')}.json`,
  )
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(results, undefined, 1)}\n`)
  say(`kept as ${path}`)
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: benchFolder }).toString().trim()
  } catch {
    return 'unknown' // not a clone
  }
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    small: { type: 'boolean' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    threads: { type: 'string', default: '1' },
    connections: { type: 'string', default: '32' },
    only: { type: 'string' },
    target: { type: 'string' },
  },
})
if (values.help === true) {
  say(help)
  process.exit(0)
}
const small = values.small === true
const how = {
  connections: Number(values.connections),
  seconds: Number(values.seconds ?? (small ? 0.3 : 2)),
  rounds: Number(values.rounds ?? (small ? 1 : 3)),
}
const threads = Number(values.threads)
const only = values.only?.split(',')
const chosen = cases.filter(({ name, object }) => {
  if (small && (object === '100m' || object === '1g')) return false
  return only === undefined || only.includes(name)
})
const banded = chosen.some(({ object }) => object === 'band')
const names = new Set<SizeName>(chosen.flatMap(({ object }) => (object === 'band' ? [] : [object])))
names.add(small ? '1m' : '100m')
const objects = [...names].map(benchObject)
const folder = objectsFolder()
const nginx = nginxVersion()
const targets: Candidate[] = []
if (nginx === undefined) say('nginx is not installed: ratios are to the first candidate')
else {
  for (const way of ['sendfile', 'headers', 'read'] as const)
    targets.push(await startNginx(folder, threads, way))
}
if (values.target !== undefined) {
  const [port, pid] = values.target.split(',').map(Number)
  const stop = async (): Promise<void> => undefined
  targets.push({ name: 'sluice', port: port ?? 0, pid: pid ?? 0, isGateway: true, stop })
} else {
  const band = banded ? await benchBand() : undefined
  const more = banded ? { settings: { INDEX_PUBLISH: 'true' }, prepare: shelveBand } : { settings: {} }
  const gateway = await startGateway(objects, threads, { name: 'sluice', ...more })
  targets.push(gateway)
  // Before anything else is asked of it: nothing of that leaves its builder a processor.
  if (band !== undefined) await offered(gateway.port, band)
}
targets.push(await startNodeHttp(folder))
const machine = {
  at: new Date().toISOString(),
  commit: commit(),
  processor: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
  kernel: release(),
  node: process.version,
  ...(nginx === undefined ? {} : { nginx }),
  files: mappedBy,
  sockets: servedBy,
  ...how,
  threads,
}
say(
  Object.entries(machine)
    .map(([key, value]) => `${key} ${value}`)
    .join(', '),
)
say('case             candidate        per CPU    req/s    MB/s    p99 ms    RSS')
const rows: Row[] = []
const gateway = targets.find(({ name }) => name === 'sluice')!
try {
  for (const asked of chosen) {
    const found = await measure(asked, targets, how)
    print(asked, found, nginx !== undefined)
    rows.push(...found)
  }
  const slow = small
    ? await slowReaders(gateway, objects.at(-1)!, { readers: 50, seconds: 2 })
    : await slowReaders(gateway, benchObject('100m'), { readers: 1000, seconds: 20 })
  say(
    `${slow.readers} readers of 1 KB/s, ${slow.left} left: RSS ${slow.beforeMb.toFixed(0)} to ${slow.peakMb.toFixed(0)} MiB, ` +
      `a probe beside them took ${slow.probeMs.toFixed(1)} ms at worst`,
  )
  const cold = await coldReads(small ? 5 : 200, small ? 2 ** 24 : 2 ** 30)
  say(coldLine(cold))
  const pairs = threads === 1 && nginx !== undefined ? await measurePairs() : []
  keep({ machine, rows, slow, cold, pairs })
} finally {
  for (const target of targets) await target.stop()
}
