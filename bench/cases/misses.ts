import type { CaseWords, Metrics, Row } from '../report/results.js'
import type { Candidate } from '../rivals/candidate.js'
import { ratedCases, runRated } from './misses-rates.js'
import { idleRate, type Provable, startMisses, untilQuiet, waitsOf } from './misses-set.js'
import {
  closedFigures,
  type Group,
  interleaved,
  loadOn,
  measuredRounds,
  type Order,
  planOf,
  runCase,
} from './run.js'

interface MissCase extends CaseWords {
  readonly provable: Provable
}

/** Contents that still wait for a proof; none where the program does not tell. */
async function proofsWaiting({ port, role }: Candidate): Promise<Metrics> {
  if (role !== 'ours') return {}
  const text = await (await fetch(`http://127.0.0.1:${port}/gateway/__gateway_metrics`)).text()
  const found = /^proofs_waiting\S* (\d+)/m.exec(text)?.[1]
  return found === undefined ? {} : { proofsWaiting: Number(found) }
}

async function measure(order: Order, { provable, cost }: MissCase): Promise<readonly Row[]> {
  const each = order.scale.cold * (order.scale.judges ? 5 : 1)
  const misses = await startMisses(order, provable, each * (1 + measuredRounds(order)))
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
  cases: [...cases, ...ratedCases],
  async run(order, wanted) {
    for (const missCase of cases.filter((one) => wanted.includes(one))) {
      const { provable: _provable, ...words } = missCase
      await runCase(order, words, () => {
        order.note(`${missCase.name}: servers start`)
        return measure(order, missCase)
      })
    }
    await runRated(order, wanted)
  },
}
