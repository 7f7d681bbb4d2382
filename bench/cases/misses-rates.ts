import { type Target, tryLoad } from '../load/load.js'
import type { CaseWords, Metrics, Row } from '../report/results.js'
import type { Candidate } from '../rivals/candidate.js'
import { idleRate, type Misses, startMisses, untilQuiet } from './misses-set.js'
import { interleaved, loadOn, measuredRounds, type Order, openFigures, planOf, runCase } from './run.js'

interface RatedCase extends CaseWords {
  /** Requests a second. */
  readonly rate: number
  /** Seconds of a round. */
  readonly seconds: number
}

const about = 'small contents of an https:// gateway, each requested for the first time'

function rated(rate: number, seconds: number, bar?: number): RatedCase {
  return {
    name: `misses: ${rate} a second`,
    group: 'misses',
    about: `${about}, ${rate} a second; then, without that gateway, all of them once more`,
    cost: 'openP99Us',
    ...(bar === undefined ? {} : { bar }),
    most: { lost: 0 },
    rate,
    seconds,
  }
}

/** What is asked for at fixed rates: as on a gateway that is not full. */
export const ratedCases: readonly RatedCase[] = [
  rated(50, 10),
  rated(200, 5, 1),
  rated(1000, 3),
  rated(5000, 1),
]

/** Asked for in the warm-up, in thousands of a usual run. */
const warmUp = 3

const quiet = { quietMs: 3000, longestMs: 20_000, provingMs: 0 } as const
const shortly = { quietMs: 500, longestMs: 1500, provingMs: 0 } as const

/** The part of the targets that each round of a case asks for. */
class Parts {
  #at = 0

  constructor(private readonly targets: readonly Target[]) {}

  next(count: number): readonly Target[] {
    this.#at += count
    return this.targets.slice(this.#at - count, this.#at)
  }
}

const once = { order: 'once', seconds: 120, lateMs: 60_000, drainMs: 60_000 } as const

function countOf({ scale }: Order, { rate, seconds }: RatedCase): number {
  return Math.ceil(rate * seconds * (scale.judges ? 1 : 0.04))
}

/** How many of these contents a candidate does not have any more, now that nobody else has them. */
async function lostOf({ port }: Candidate, targets: readonly Target[]): Promise<number> {
  const plan = planOf(targets.map((target) => ({ ...target, status: 'any' })))
  const { statuses } = await tryLoad(plan, { ...once, port, connections: 16 }).finally(() => plan.drop())
  return targets.length - (statuses['200'] ?? 0)
}

interface Measured {
  readonly words: RatedCase
  readonly rows: readonly Row[]
  readonly targets: readonly Target[]
}

async function measure(order: Order, rated: readonly RatedCase[], misses: Misses): Promise<Measured[]> {
  const candidates = [misses.on, misses.proxy]
  const parts = new Parts(misses.targets)
  const waits = order.scale.judges ? quiet : shortly
  const idle = new Map<Candidate, number>()
  for (const each of candidates) idle.set(each, each === misses.proxy ? 0 : await idleRate(each))
  const ask = async (candidate: Candidate, targets: readonly Target[], rate?: number): Promise<Metrics> => {
    const plan = planOf(targets)
    const manner = rate === undefined ? { connections: 16 } : { connections: 256, rate }
    try {
      const load = await loadOn(candidate, plan, { ...once, ...manner })
      const after = await untilQuiet(candidate, idle.get(candidate) ?? 0, waits)
      return { ...openFigures(load, rate ?? 0), afterUs: (after * 1e6) / targets.length }
    } finally {
      plan.drop()
    }
  }
  const first = parts.next(warmUp * order.scale.cold)
  for (const each of candidates) await ask(each, first)
  const measured: Measured[] = []
  for (const words of rated) {
    const count = countOf(order, words)
    const slices = Array.from({ length: measuredRounds(order) }, () => parts.next(count))
    order.note(`${words.name}: ${count} contents a round`)
    const rows = await interleaved(candidates, order, words.cost, (candidate, round) =>
      ask(candidate, slices[round] ?? [], words.rate),
    )
    measured.push({ words, rows, targets: slices.flat() })
  }
  return measured
}

/** All that is asked for at fixed rates, of servers that are started once. */
export async function runRated(order: Order, wanted: readonly CaseWords[]): Promise<void> {
  const rated = ratedCases.filter((one) => wanted.includes(one))
  const [first, ...rest] = rated
  if (first === undefined) return
  const wordsOf = ({ rate: _rate, seconds: _seconds, ...words }: RatedCase): CaseWords => words
  const rounds = measuredRounds(order)
  const count = rated.reduce((sum, one) => sum + rounds * countOf(order, one), warmUp * order.scale.cold)
  const found = new Map<RatedCase, readonly Row[]>()
  const fill = async (): Promise<void> => {
    const misses = await startMisses(order, 'never', count)
    try {
      const measured = await measure(order, rated, misses)
      await misses.upstream.stop()
      for (const { words, rows, targets } of measured) {
        const withLost: Row[] = []
        for (const [at, row] of rows.entries()) {
          const candidate = at === 0 ? misses.on : misses.proxy
          withLost.push({ ...row, metrics: { ...row.metrics, lost: await lostOf(candidate, targets) } })
        }
        found.set(words, withLost)
      }
    } finally {
      await misses.stop()
    }
  }
  // The first case brings the rows of all of them; where it fails, the others have none.
  await runCase(order, wordsOf(first), async () => {
    order.note(`${first.name}: servers start`)
    await fill()
    return found.get(first) ?? []
  })
  for (const one of rest) {
    await runCase(order, wordsOf(one), () => {
      const rows = found.get(one)
      if (rows === undefined) throw new Error(`${first.name} failed before`)
      return rows
    })
  }
}
