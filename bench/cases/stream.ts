import { pause } from '../../src/actor/clock.js'
import { corpusOf } from '../corpus/corpus.js'
import { residentMb } from '../kit/usage.js'
import type { CaseWords, Row } from '../report/results.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { offline, startGateway } from '../rivals/gateway.js'
import { cachingProxy, upstreamServer } from '../rivals/nginx.js'
import { wholeOf } from './hot.js'
import {
  closedFigures,
  type Group,
  idle,
  interleaved,
  loadOn,
  measuredRounds,
  type Order,
  planOf,
  runCase,
} from './run.js'

const words: CaseWords = {
  name: 'cold: one large stream',
  group: 'stream',
  about:
    'a large content that another gateway has, requested for the first time by one reader; growth of memory meanwhile',
  cost: 'cpuUsPerMb',
  bar: 0.8,
}

/** By how many MiB its own memory grew at most while `act` ran. */
async function growthDuring<T>(
  { pid }: Candidate,
  act: () => Promise<T>,
): Promise<{ grownMb: number; of: T }> {
  const before = residentMb(pid).own
  let peak = before
  let isOver = false
  const watch = async (): Promise<void> => {
    while (!isOver) {
      peak = Math.max(peak, residentMb(pid).own)
      await pause(50)
    }
  }
  const watching = watch()
  const of = await act().finally(() => {
    isOver = true
  })
  await watching
  return { grownMb: peak - before, of }
}

async function measure(order: Order): Promise<readonly Row[]> {
  const { threads, scale } = order
  const sizes = { law: 'listed', sizesBytes: [scale.streamBytes] } as const
  const count = 1 + measuredRounds(order)
  const corpus = corpusOf({ name: `stream-${count}`, count, sizes, unpacked: true })
  const upstream = await upstreamServer(corpus.filesFolder)
  const urls = JSON.stringify({ [`http://127.0.0.1:${upstream.port}`]: 1 })
  const started = [upstream]
  try {
    const settings = { ...offline, TRUSTED_GATEWAYS_URLS: urls }
    const gateway = await startGateway({ name: 'sluice', threads, settings })
    started.push(gateway)
    const proxy = await cachingProxy(upstream.port, threads)
    started.push(proxy)
    const read = async (candidate: Candidate, at: number) => {
      const plan = planOf(corpus.contents.slice(at, at + 1).map(wholeOf))
      const manner = {
        seconds: 300,
        connections: 1,
        order: 'once',
        lateMs: 300_000,
        drainMs: 300_000,
        compare: 1,
      } as const
      const load = await loadOn(candidate, plan, manner).finally(() => plan.drop())
      await idle(candidate)
      return load
    }
    for (const candidate of [gateway, proxy]) await read(candidate, 0)
    return await interleaved([gateway, proxy], order, words.cost, async (candidate, round) => {
      const { grownMb, of } = await growthDuring(candidate, () => read(candidate, round + 1))
      return { ...closedFigures(of), grownMb }
    })
  } finally {
    await stopAll(started)
  }
}

export const streamGroup: Group = {
  name: 'stream',
  cases: [words],
  run(order) {
    const notes = [`${order.scale.streamBytes / 2 ** 20} MiB each`]
    return runCase(order, { ...words, notes }, () => measure(order))
  },
}
