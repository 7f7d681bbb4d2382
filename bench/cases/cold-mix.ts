import { pause } from '../../src/actor/clock.js'
import { corpusOf, smallSizes } from '../corpus/corpus.js'
import { truthPath } from '../corpus/truth.js'
import { Stopwatch } from '../kit/usage.js'
import { clientKinds } from '../load/clients.js'
import { makeLoad, type Plan, type Target, tryLoad } from '../load/load.js'
import type { CaseWords, Metrics, Row } from '../report/results.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { offline, startGateway } from '../rivals/gateway.js'
import { cachingProxy, upstreamServer } from '../rivals/nginx.js'
import { wholeOf } from './hot.js'
import {
  closedFigures,
  type Group,
  idle,
  interleaved,
  measuredRounds,
  type Order,
  rowOf,
  runCase,
} from './run.js'

const [hotCount, hotRate, coldRate] = [200, 1000, 5000]

const beside: CaseWords = {
  name: 'cold beside hot',
  group: 'cold beside hot',
  about:
    'the p99 of small contents that are asked for again, alone and while a fifth of all requests are for new ones',
  cost: 'slowdown',
  most: { slowdown: 1.5 },
  notes: [`${hotRate} hot requests a second, ${hotRate / 4} cold ones`],
}

const kept: CaseWords = {
  name: 'cold in haste',
  group: 'cold beside hot',
  about: `small contents that another gateway has, ${coldRate} a second asked for; then, without it, all of them once more`,
  cost: 'lost',
  most: { lost: 0 },
}

/** Servers in front of another one with contents, of which the first are asked for again and again. */
interface Set {
  readonly gateway: Candidate
  readonly proxy: Candidate
  readonly upstream: Candidate
  readonly hot: Plan
  /** Contents that nobody has asked for yet, from the place `at` on. */
  fresh(at: number, count: number): Plan
}

function planOf(targets: readonly Target[]): Plan {
  return { truthPath: truthPath(), clients: clientKinds, targets }
}

const once = { order: 'once', seconds: 120, lateMs: 60_000, drainMs: 60_000 } as const

/** Starts the servers, and asks them for the hot contents and as many others as bring them to their pace. */
async function startSet({ threads }: Order, fresh: number, warm: number): Promise<Set> {
  const count = hotCount + warm + fresh
  const corpus = corpusOf({ name: `cold-mix-${count}`, count, sizes: smallSizes, unpacked: true })
  const targets = corpus.contents.map(wholeOf)
  const upstream = await upstreamServer(corpus.filesFolder)
  const urls = JSON.stringify({ [`http://127.0.0.1:${upstream.port}`]: 1 })
  const settings = { ...offline, TRUSTED_GATEWAYS_URLS: urls }
  const gateway = await startGateway({ name: 'sluice', threads, settings })
  const proxy = await cachingProxy(upstream.port, threads)
  for (const each of [gateway, proxy]) {
    await makeLoad(planOf(targets.slice(0, hotCount + warm)), { ...once, port: each.port, connections: 16 })
    await idle(each)
  }
  const first = hotCount + warm
  return {
    gateway,
    proxy,
    upstream,
    hot: planOf(targets.slice(0, hotCount)),
    fresh: (at, some) => planOf(targets.slice(first + at, first + at + some)),
  }
}

/** The p99 of hot requests with cold ones beside them, through the p99 alone. */
async function measureBeside(order: Order): Promise<readonly Row[]> {
  const { seconds, scale } = order
  const each = Math.ceil((hotRate / 4) * seconds)
  const set = await startSet(order, measuredRounds(order) * each, scale.cold * 4)
  const candidates = [set.gateway, set.proxy]
  try {
    return await interleaved(candidates, order, beside.cost, async ({ port }, round): Promise<Metrics> => {
      const repeated = {
        port,
        connections: 16,
        rate: hotRate,
        seconds,
        order: 'uniform',
        isPrompt: true,
      } as const
      await makeLoad(set.hot, repeated)
      const alone = await makeLoad(set.hot, repeated)
      const cold = { ...once, port, connections: 16, rate: hotRate / 4 }
      const [mixed] = await Promise.all([
        makeLoad(set.hot, repeated),
        makeLoad(set.fresh(round * each, each), cold),
      ])
      const { p50Us, p99Us, p999Us } = mixed
      const slowdown = p99Us / alone.p99Us
      return { slowdown, openPerSecond: hotRate, openP50Us: p50Us, openP99Us: p99Us, openP999Us: p999Us }
    })
  } finally {
    await stopAll([...candidates, set.upstream])
  }
}

/** How many contents are not there any more when the other gateway has gone. */
async function measureKept(order: Order): Promise<readonly Row[]> {
  const count = order.scale.cold * 8
  const set = await startSet(order, count, order.scale.cold * 4)
  const { gateway, proxy, upstream } = set
  const { port, pid } = gateway
  let running = [gateway, proxy, upstream]
  try {
    const watch = new Stopwatch(pid)
    const filled = await makeLoad(set.fresh(0, count), { ...once, port, connections: 256, rate: coldRate })
    await pause(3000)
    await idle(gateway)
    const cpu = watch.seconds()
    await upstream.stop()
    running = [gateway, proxy]
    const targets = set.fresh(0, count).targets.map((target) => ({ ...target, status: 'any' as const }))
    const again = await tryLoad(planOf(targets), { ...once, port, connections: 16 })
    const lost = count - (again.statuses['200'] ?? 0)
    return [rowOf(gateway, [{ lost, ...closedFigures({ outcome: filled, cpu }) }], kept.cost)]
  } finally {
    await stopAll(running)
  }
}

export const coldMixGroup: Group = {
  name: 'cold beside hot',
  cases: [beside, kept],
  async run(order, wanted) {
    for (const [words, measure] of [
      [beside, measureBeside],
      [kept, measureKept],
    ] as const) {
      if (wanted.includes(words)) await runCase(order, words, () => measure(order))
    }
  },
}
