import { bytesOf, type Content, type Corpus, corpusOf, smallSizes } from '../corpus/corpus.js'
import { sitesOf } from '../corpus/sites.js'
import type { Manner, Target } from '../load/load.js'
import type { CaseWords, Row } from '../report/results.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { entityTags } from './entity-tags.js'
import type { Served, StartServers } from './hot-servers.js'
import {
  closedFigures,
  type Group,
  idle,
  interleaved,
  loadOn,
  type Order,
  openFigures,
  planOf,
  runCase,
} from './run.js'
import type { Scale } from './scale.js'

/** One kind of requests for the contents of a set. */
export interface HotCase extends CaseWords {
  readonly targets: (served: Served) => readonly Target[]
  readonly order: NonNullable<Manner['order']>
  readonly unknown?: number
  /** Each target is asked for with the tag that the server gave it: 304. */
  readonly conditional?: true
  readonly connections?: number
  /** Version of TLS, of servers that speak it. */
  readonly tls?: Manner['tls']
  /** Each request has a connection of its own: one that resumes a session, or not. */
  readonly handshakes?: 'full' | 'resumed'
  /** Requests a second of the open loop. */
  readonly rate: number
}

/** Cases over the same contents, which the same servers answer. */
export interface HotSet {
  readonly name: string
  serve(scale: Scale): Served
  /** Beside whom it is measured. */
  readonly start: StartServers
  /** Edge threads, and workers of nginx; those of the run where it is absent. */
  readonly threads?: number
  /** Why it cannot run on this machine. */
  readonly obstacle?: () => string | undefined
  readonly cases: readonly HotCase[]
}

/** A content under its id. */
export function wholeOf({ id, sizeBytes, truthStart }: Content): Target {
  return { path: `/${id}`, sizeBytes, truthStart }
}

/** Targets that each candidate was asked for already. */
type Warmed = Map<Candidate, Set<string>>

/** Asks a candidate once for each target that is new to it, whole. */
async function warm(candidate: Candidate, targets: readonly Target[], warmed: Warmed): Promise<void> {
  const known = warmed.get(candidate) ?? new Set()
  warmed.set(candidate, known)
  const keyOf = ({ path, lines = [] }: Target): string => [path, ...lines].join(' ')
  const fresh = targets.filter((target) => !known.has(keyOf(target)))
  if (fresh.length === 0) return
  const plan = planOf(fresh.map(({ rangeBytes: _range, method: _method, ...whole }) => whole))
  try {
    await loadOn(candidate, plan, { seconds: 1200, connections: 16, order: 'once', lateMs: 60_000 })
  } finally {
    plan.drop()
  }
  for (const target of fresh) known.add(keyOf(target))
  await idle(candidate)
}

async function measure(
  hotCase: HotCase,
  served: Served,
  candidates: readonly Candidate[],
  warmed: Warmed,
  order: Order,
): Promise<Row[]> {
  const targets = hotCase.targets(served)
  const plans = new Map<Candidate, ReturnType<typeof planOf>>()
  try {
    for (const candidate of candidates) {
      await warm(candidate, targets, warmed)
      const own = hotCase.conditional === true ? await entityTags(candidate, targets.slice(0, 1000)) : targets
      plans.set(candidate, planOf(own))
    }
    const { connections = order.connections, unknown, tls, handshakes } = hotCase
    const how = {
      order: hotCase.order,
      tls,
      ...(unknown === undefined ? {} : { unknown }),
      ...(handshakes === undefined ? {} : { fresh: true, spread: true, resume: handshakes === 'resumed' }),
    }
    const rate = Math.max(1, hotCase.rate * order.scale.rate)
    return await interleaved(candidates, order, hotCase.cost, async (candidate, round) => {
      const plan = plans.get(candidate)
      if (plan === undefined) throw new Error('no plan')
      const common = { ...how, seconds: order.seconds, seed: round + 1 }
      // A server under this load was asked for the same contents a moment ago. While others had their turn, what it keeps for a
      // minute (signatures) went. Not in a short run, which gives no verdict.
      if (order.scale.judges) await loadOn(candidate, plan, { ...common, connections, seed: round + 1001 })
      const closed = await loadOn(candidate, plan, { ...common, connections })
      const open = await loadOn(candidate, plan, { ...common, connections: 4 * connections, rate })
      return { ...closedFigures(closed), ...openFigures(open, rate) }
    })
  } finally {
    for (const plan of plans.values()) plan.drop()
  }
}

function sizeNote(corpus: Corpus): string {
  return `${corpus.contents.length} contents, ${(bytesOf(corpus) / 2 ** 20).toFixed(0)} MiB in all`
}

/** The group of a set: its servers are started once, and asked case by case. */
export function hotGroup(set: HotSet): Group {
  const { name, cases } = set
  return {
    name,
    cases,
    async run(order, wanted) {
      const obstacle = set.obstacle?.()
      if (obstacle !== undefined) return order.note(`${name} is left out: ${obstacle}`)
      const served = set.serve(order.scale)
      order.note(`${name}: ${served.corpus.contents.length} contents, servers start`)
      const threads = set.threads ?? order.threads
      const candidates = await set.start(served, { ...order, threads })
      const warmed: Warmed = new Map()
      try {
        for (const hotCase of cases.filter((one) => wanted.includes(one))) {
          const { name: caseName, group, about, cost, bar } = hotCase
          const words = { name: caseName, group, about, cost, bar, notes: [sizeNote(served.corpus)] }
          await runCase(order, words, () => measure(hotCase, served, candidates, warmed, order))
        }
      } finally {
        await stopAll(candidates)
      }
    },
  }
}

/** The corpus of most cases. */
export function wideCorpus(scale: Scale, count = scale.wide): Corpus {
  return corpusOf({ name: `wide-${count}`, count, sizes: smallSizes })
}

/** The same of many more. */
export function widerCorpus({ wider: { count, medianBytes } }: Scale): Corpus {
  return corpusOf({ name: `wider-${count}`, count, sizes: { ...smallSizes, medianBytes } })
}

/** With sites over its contents. */
export function serveWide(scale: Scale): Served {
  const corpus = wideCorpus(scale)
  return { corpus, sites: sitesOf(corpus, scale.sites.count, scale.sites.pages) }
}
