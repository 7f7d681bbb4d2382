import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pause } from '../../src/actor/clock.js'
import { Devnet } from '../../src/devnet/devnet.js'
import { payerOf, postedBy } from '../../test/devnet/posting.js'
import { bundlesOf } from '../corpus/bundles.js'
import { truthFrom } from '../corpus/truth.js'
import { emptyFolder } from '../kit/folders.js'
import { Stopwatch } from '../kit/usage.js'
import type { Target } from '../load/load.js'
import type { CaseWords, Metrics, Row } from '../report/results.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { offline, startGateway } from '../rivals/gateway.js'
import { cachingProxy, gatewayLike } from '../rivals/nginx.js'
import { makePair } from '../rivals/tls-servers.js'
import {
  askedRounds,
  closedFigures,
  type Group,
  interleaved,
  loadOn,
  type Order,
  planOf,
  runCase,
} from './run.js'

/** What is known of the root of each content: a node has it, will have it some day, or nobody names one. */
type Provable = 'now' | 'later' | 'never'

interface MissCase extends CaseWords {
  readonly provable: Provable
}

const itemsEach = 500

/** Until nothing is left to do for `quietMs`, but at most and, with verification, at least so long. */
interface Waits {
  readonly quietMs: number
  readonly longestMs: number
  readonly provingMs: number
}

const usualWaits: Waits = { quietMs: 3000, longestMs: 90_000, provingMs: 45_000 }
/** For a run that gives no verdict. */
const shortWaits: Waits = { quietMs: 500, longestMs: 3000, provingMs: 1000 }

const waitsOf = ({ scale }: Order): Waits => (scale.judges ? usualWaits : shortWaits)

/** Processor seconds that a program uses in a second while nobody asks. */
async function idleRate({ pid }: Candidate): Promise<number> {
  await pause(2000)
  const watch = new Stopwatch(pid)
  await pause(3000)
  return watch.seconds() / 3
}

/** Processor seconds from now until nothing is left to do, without those that are used when idle. */
async function untilQuiet(
  { pid, role }: Candidate,
  idle: number,
  { quietMs, longestMs, provingMs }: Waits,
): Promise<number> {
  const watch = new Stopwatch(pid)
  let [waitedMs, restMs, before] = [0, 0, 0]
  const leastMs = role === 'ours' ? provingMs : 0
  while (waitedMs < longestMs && (restMs < quietMs || waitedMs < leastMs)) {
    await pause(500)
    waitedMs += 500
    const used = watch.seconds() - before
    before += used
    restMs = used < idle / 2 + 0.004 ? restMs + 500 : 0
  }
  return Math.max(0, before - (idle * waitedMs) / 1000)
}

/** Contents that still wait for a proof; none where the program does not tell. */
async function proofsWaiting({ port, role }: Candidate): Promise<Metrics> {
  if (role !== 'ours') return {}
  const text = await (await fetch(`http://127.0.0.1:${port}/gateway/__gateway_metrics`)).text()
  const found = /^proofs_waiting\S* (\d+)/m.exec(text)?.[1]
  return found === undefined ? {} : { proofsWaiting: Number(found) }
}

interface Misses {
  readonly off: Candidate
  readonly on: Candidate
  readonly proxy: Candidate
  readonly targets: readonly Target[]
  stop(): Promise<void>
}

/** Contents behind a gateway that speaks TLS; a node; and this program with and without verification. */
async function startMisses({ threads }: Order, provable: Provable, count: number): Promise<Misses> {
  const devnet = await Devnet.start({
    host: '127.0.0.1',
    port: 0,
    blockMs: 0,
    dataPath: emptyFolder('devnet'),
  })
  const payer = await payerOf(devnet)
  const files = join(emptyFolder('misses'), 'files')
  mkdirSync(files)
  const [targets, roots]: [Target[], string[]] = [[], []]
  for (const { bytes, digest, items } of bundlesOf(count, itemsEach)) {
    const tags = { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' }
    const rootId =
      provable === 'now' ? await postedBy(payer, bytes, tags) : Buffer.from(digest).toString('base64url')
    devnet.mine()
    for (const { id, sizeBytes, truthStart } of items) {
      writeFileSync(join(files, id), Buffer.concat([...truthFrom(truthStart, sizeBytes)]))
      targets.push({ path: `/${id}`, sizeBytes, truthStart })
      if (provable !== 'never') roots.push(`/raw/${id} ${rootId};`)
    }
  }
  const pair = await makePair()
  const upstream = await gatewayLike(files, roots, pair)
  const urls = JSON.stringify({ [`https://localhost:${upstream.port}`]: 1 })
  const settings = { ...offline, TRUSTED_NODE_URL: devnet.url, TRUSTED_GATEWAYS_URLS: urls }
  const started = (name: string, verifies: boolean) =>
    startGateway({
      name,
      threads,
      settings: {
        ...settings,
        NODE_EXTRA_CA_CERTS: pair.cert,
        ENABLE_BACKGROUND_DATA_VERIFICATION: String(verifies),
      },
    })
  const off = await started('without verification', false)
  const on = await started('sluice', true)
  const proxy = await cachingProxy(upstream.port, threads, 'https')
  const stop = async (): Promise<void> => {
    await stopAll([off, on, proxy, upstream])
    await devnet.stop()
  }
  return { off: { ...off, role: 'part' }, on, proxy, targets, stop }
}

async function measure(order: Order, { provable, cost }: MissCase): Promise<readonly Row[]> {
  const each = order.scale.cold * (order.scale.judges ? 5 : 1)
  const misses = await startMisses(order, provable, each * (1 + askedRounds(order)))
  const { off, on, proxy, targets } = misses
  const idle = new Map<Candidate, number>()
  const ask = async (candidate: Candidate, at: number): Promise<Metrics> => {
    const plan = planOf(targets.slice(at * each, (at + 1) * each))
    try {
      const manner = { seconds: 120, order: 'once', lateMs: 60_000, connections: 16 } as const
      const load = await loadOn(candidate, plan, manner)
      const after = await untilQuiet(candidate, idle.get(candidate) ?? 0, waitsOf(order))
      const afterUs = (after * 1e6) / each
      const { cpuUs = 0, perSecond = 0 } = closedFigures(load)
      return { cpuUs, perSecond, afterUs, ...(await proofsWaiting(candidate)) }
    } finally {
      plan.drop()
    }
  }
  try {
    for (const each of [off, on, proxy]) idle.set(each, each === proxy ? 0 : await idleRate(each))
    for (const each of [off, on, proxy]) await ask(each, 0)
    const rows = await interleaved([off, on, proxy], order, cost, async (candidate, round) => {
      const found = await ask(candidate, 1 + round)
      return { ...found, allUs: (found.cpuUs ?? 0) + (found.afterUs ?? 0) }
    })
    return rows.map((row) => {
      const without = rows.find(({ candidate }) => candidate === off.name)?.metrics.allUs ?? 0
      const { allUs = 0, ...metrics } = row.metrics
      return row.candidate === on.name
        ? { ...row, metrics: { ...metrics, proofUs: allUs - without } }
        : { ...row, metrics }
    })
  } finally {
    await misses.stop()
  }
}

const common = { group: 'misses', cost: 'cpuUs', bar: 0.6 } as const
const about = 'small contents of an https:// gateway, each requested for the first time, with verification'

const cases: readonly MissCase[] = [
  {
    ...common,
    name: 'misses: provable',
    about: `${about}: the gateway names their roots, and a node has these`,
    provable: 'now',
    most: { proofUs: 400 },
  },
  {
    ...common,
    name: 'misses: not provable yet',
    about: `${about}: the gateway names their roots, which no node has`,
    provable: 'later',
    most: { proofUs: 100 },
  },
  {
    ...common,
    name: 'misses: never provable',
    about: `${about}: nobody names a root, and no node knows them`,
    provable: 'never',
    most: { proofUs: 100 },
  },
]

export const missesGroup: Group = {
  name: 'misses',
  cases,
  async run(order, wanted) {
    for (const asked of cases.filter((one) => wanted.includes(one))) {
      const { provable: _provable, ...words } = asked
      await runCase(order, words, () => {
        order.note(`${asked.name}: servers start`)
        return measure(order, asked)
      })
    }
  },
}
