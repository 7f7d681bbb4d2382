import { createHash } from 'node:crypto'
import { pause } from '../../src/actor/clock.js'
import { idOfBytes } from '../../src/format/id.js'
import { postedBy } from '../../test/devnet/posting.js'
import { type BundledItem, bundlesOf } from '../corpus/bundles.js'
import { corpusOf, smallSizes } from '../corpus/corpus.js'
import { payersNode } from '../kit/payers-node.js'
import { Stopwatch } from '../kit/usage.js'
import type { Target } from '../load/load.js'
import type { CaseWords } from '../report/results.js'
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
  openFigures,
  planOf,
  runCase,
} from './run.js'

/** Servers with empty caches, and the targets: each is asked for once. */
interface Cold {
  readonly candidates: readonly Candidate[]
  readonly targets: readonly Target[]
  stop(): Promise<void>
}

interface ColdCase extends CaseWords {
  /** Slices of the targets to warm up with; 1 where nothing is said. */
  readonly warmUp?: number
  /** Requests a second of the open loop. */
  readonly rate: number
  /** `count`: targets that are needed. */
  start(order: Order, count: number): Promise<Cold>
}

/** Slices of the targets to warm up with, then two for each round: one in a closed loop, one at a fixed rate. */
async function measure({ cost, rate, warmUp = 1 }: ColdCase, cold: Cold, order: Order) {
  const each = order.scale.cold
  const slice = (at: number): readonly Target[] => cold.targets.slice(at * each, (at + 1) * each)
  const ask = async (candidate: Candidate, at: number, manner: { connections: number; rate?: number }) => {
    const plan = planOf(slice(at))
    try {
      const watch = new Stopwatch(candidate.pid)
      const load = await loadOn(candidate, plan, { seconds: 120, order: 'once', lateMs: 60_000, ...manner })
      // Work that follows the answer (hashing, storing, proving) is part of the cost.
      await idle(candidate)
      return { ...load, cpu: watch.seconds() }
    } finally {
      plan.drop()
    }
  }
  for (const candidate of cold.candidates)
    for (let at = 0; at < warmUp; at += 1) await ask(candidate, at, { connections: 16 })
  return interleaved(cold.candidates, order, cost, async (candidate, round) => {
    const closed = await ask(candidate, warmUp + 2 * round, { connections: 16 })
    const open = await ask(candidate, warmUp + 1 + 2 * round, { connections: 128, rate })
    return { ...closedFigures(closed), ...openFigures(open, rate) }
  })
}

/** Small contents that another gateway has; the rival is nginx with a cache on disk. */
async function fromGateway({ threads }: Order, count: number): Promise<Cold> {
  const corpus = corpusOf({ name: `cold-${count}`, count, sizes: smallSizes, unpacked: true })
  const upstream = await upstreamServer(corpus.filesFolder)
  const urls = JSON.stringify({ [`http://127.0.0.1:${upstream.port}`]: 1 })
  const settings = { ...offline, TRUSTED_GATEWAYS_URLS: urls }
  const gateway = await startGateway({ name: 'sluice', threads, settings })
  const candidates = [gateway, await cachingProxy(upstream.port, threads)]
  const targets = corpus.contents.map(wholeOf)
  return { candidates, targets, stop: () => stopAll([...candidates, upstream]) }
}

const itemsEach = 500

function targetOf({ id, sizeBytes, truthStart }: BundledItem): Target {
  return { path: `/${id}`, sizeBytes, truthStart }
}

/** In the order of a hash: neighbours in a bundle are not asked for one after another. */
function mixed(targets: readonly Target[]): Target[] {
  const key = (text: string): string => createHash('sha256').update(text).digest('hex')
  return targets
    .map((target) => ({ target, key: key(target.path) }))
    .toSorted((one, other) => (one.key < other.key ? -1 : 1))
    .map(({ target }) => target)
}

/** Items of bundles that are in the store of this gateway. */
async function fromBundles({ threads }: Order, count: number): Promise<Cold> {
  const targets: Target[] = []
  const gateway = await startGateway({
    name: 'sluice',
    threads,
    settings: offline,
    async fill(seeding) {
      for (const { bytes, digest, items } of bundlesOf(count, itemsEach)) {
        const rootId = idOfBytes(digest)
        await seeding.content({ id: rootId, size: bytes.length, digest }, bytes)
        for (const item of items) {
          const known = { id: item.id, size: item.sizeBytes, verified: false, trusted: false }
          await seeding.tell({ kind: 'learn', attributes: [{ ...known, place: item.place(rootId) }] })
          targets.push(targetOf(item))
        }
      }
    },
  })
  return { candidates: [gateway], targets: mixed(targets), stop: () => gateway.stop() }
}

/** Items of bundles that only a node has, in chunks. */
async function fromChunks({ threads }: Order, count: number): Promise<Cold> {
  const { devnet, payer } = await payersNode()
  const targets: Target[] = []
  const gateway = await startGateway({
    name: 'sluice',
    threads,
    settings: { ...offline, TRUSTED_NODE_URL: devnet.url },
    async fill(seeding) {
      for (const { bytes, items } of bundlesOf(count, itemsEach)) {
        const rootId = await postedBy(payer, bytes, { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' })
        devnet.mine()
        for (const item of items) {
          const known = { id: item.id, size: item.sizeBytes, verified: false, trusted: false }
          await seeding.tell({ kind: 'learn', attributes: [{ ...known, place: item.place(rootId) }] })
          targets.push(targetOf(item))
        }
      }
    },
  })
  const stop = async (): Promise<void> => {
    await gateway.stop()
    await devnet.stop()
  }
  return { candidates: [gateway], targets: mixed(targets), stop }
}

/** Until the last of these items is found by the gateway's index. */
async function isOpened({ port }: Candidate, items: readonly BundledItem[]): Promise<void> {
  const query = `{ transaction(id: "${items.at(-1)?.id}") { id } }`
  for (let turn = 0; turn < 600; turn += 1) {
    const headers = { 'content-type': 'application/json' }
    const wish = { method: 'POST', headers, body: JSON.stringify({ query }) }
    const answer = await (await fetch(`http://127.0.0.1:${port}/graphql`, wish)).text()
    if (answer.includes('"id"')) return
    await pause(200)
  }
  throw new Error('a bundle was not opened within two minutes')
}

/** Items of bundles that this gateway has found on the chain, brought into its store, opened and indexed. */
async function fromOpened({ threads, note }: Order, count: number): Promise<Cold> {
  const { devnet, payer } = await payersNode()
  const bundles = [...bundlesOf(count, itemsEach)]
  for (const { bytes } of bundles) {
    await postedBy(payer, bytes, { 'Bundle-Format': 'binary', 'Bundle-Version': '2.0.0' })
    devnet.mine()
  }
  const filters = { ANS104_UNBUNDLE_FILTER: '{"always":true}', ANS104_INDEX_FILTER: '{"always":true}' }
  const settings = { ...offline, ...filters, TRUSTED_NODE_URL: devnet.url }
  const gateway = await startGateway({ name: 'sluice', threads, settings })
  const watch = new Stopwatch(gateway.pid)
  for (const { items } of bundles) await isOpened(gateway, items)
  await idle(gateway)
  note(`fetching, proving, opening and indexing: ${Math.round((watch.seconds() * 1e6) / count)} us an item`)
  const stop = async (): Promise<void> => {
    await gateway.stop()
    await devnet.stop()
  }
  const targets = bundles.flatMap(({ items }) => items.map(targetOf))
  return { candidates: [gateway], targets: mixed(targets), stop }
}

const firstCases: readonly ColdCase[] = [
  {
    name: 'cold: from a gateway',
    group: 'cold',
    about:
      'small contents that another gateway has, each requested for the first time; the rival is nginx with proxy_cache',
    cost: 'cpuUs',
    bar: 1.3,
    most: { cpuUs: 150 },
    rate: 200,
    start: fromGateway,
  },
  {
    name: 'cold: from a bundle on disk',
    group: 'cold',
    about:
      'small items of bundles that are in the store and were never opened, each requested for the first time',
    cost: 'cpuUs',
    rate: 200,
    start: fromBundles,
  },
  {
    name: 'cold: from an opened bundle',
    group: 'cold',
    about: 'small items of bundles that this gateway has opened and kept, each requested for the first time',
    cost: 'cpuUs',
    most: { cpuUs: 60 },
    rate: 200,
    start: fromOpened,
  },
  {
    name: 'cold: from chunks',
    group: 'cold',
    about: 'small items of bundles that only a node has, each requested for the first time',
    cost: 'cpuUs',
    // Some 18 items in a chunk: 1.5 ms for the chunk with its first, 100 us for each further one.
    most: { cpuUs: Math.round((1500 + 17 * 100) / 18) },
    rate: 50,
    start: fromChunks,
  },
]

/**
 * A thousand requests after a start are answered by code that V8 is still compiling: that is what an operator has for some
 * seconds. What he has afterwards is asked for here.
 */
const steadyCases: readonly ColdCase[] = firstCases.map((each) => ({
  ...each,
  name: each.name.replace('cold:', 'cold and steady:'),
  about: `${each.about}, after thousands of others`,
  warmUp: 6,
}))

const cases = [...firstCases, ...steadyCases]

export const coldGroup: Group = {
  name: 'cold',
  cases,
  async run(order, wanted) {
    for (const coldCase of cases.filter((one) => wanted.includes(one))) {
      const { rate: _rate, warmUp: _warmUp, start, ...words } = coldCase
      await runCase(order, words, async () => {
        order.note(`${coldCase.name}: servers start`)
        const cold = await start(
          order,
          order.scale.cold * ((coldCase.warmUp ?? 1) + 2 * measuredRounds(order)),
        )
        return measure(coldCase, cold, order).finally(() => cold.stop())
      })
    }
  },
}
