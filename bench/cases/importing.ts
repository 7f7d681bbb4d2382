import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pause, systemClock } from '../../src/actor/clock.js'
import { parseId } from '../../src/format/id.js'
import { sha256 } from '../../src/proof/digest.js'
import { Seeding } from '../corpus/seed.js'
import { plainEnvironment } from '../kit/child.js'
import { sluiceWords, workFolder } from '../kit/folders.js'
import type { PlanFile } from '../load/load.js'
import { type CaseWords, failed, type Metrics, type Row } from '../report/results.js'
import { type Candidate, stopAll } from '../rivals/candidate.js'
import { fillWith, offline, startGateway } from '../rivals/gateway.js'
import { wholeOf, wideCorpus } from './hot.js'
import { writeChain } from './node-dump.js'
import { closedFigures, type Group, loadOn, type Order, openFigures, planOf, rowOf } from './run.js'

/** Everything to import lies in the data folder: nothing is requested over a network. */
const settings = {
  ...offline,
  ANS104_UNBUNDLE_FILTER: '{"always":true}',
  ANS104_INDEX_FILTER: '{"always":true}',
}

const reads: CaseWords = {
  name: 'reads while importing',
  group: 'importing',
  about:
    'small contents by Zipf 0.9 at a gateway that unbundles, verifies and indexes as fast as it can; beside it the same at rest',
  cost: 'cpuUs',
}
const queries: CaseWords = {
  name: 'GraphQL while importing',
  group: 'importing',
  about: 'the newest ten items of an application, of 40 applications in turns, at both',
  cost: 'cpuUs',
}

/** Made-up blocks of one bundle each, made once. */
function dumpOf(items: number): string {
  const dump = join(workFolder, `dump-${items}`)
  if (existsSync(dump)) return dump
  rmSync(`${dump}.draft`, { recursive: true, force: true })
  writeChain(`${dump}.draft`, items, 400, true)
  renameSync(`${dump}.draft`, dump)
  return dump
}

function importDump(dataPath: string, dump: string): void {
  const env = { ...plainEnvironment, DATA_PATH: dataPath }
  const words = [...sluiceWords, 'import', dump, '--no-verify']
  const done = spawnSync(process.execPath, words, { env, encoding: 'utf8' })
  if (done.status !== 0) throw new Error(done.stdout + done.stderr)
}

/** Puts the blocks into the index, queues their bundles, and puts the bundles' bytes into the store as verified. */
async function prepareImport(dataPath: string, dump: string): Promise<void> {
  importDump(dataPath, dump)
  const seeding = new Seeding(dataPath)
  for (const name of readdirSync(join(dump, 'later'))) {
    const id = parseId(name)
    if (id === undefined) continue
    const bytes = readFileSync(join(dump, 'later', name))
    await seeding.content({ id, size: bytes.length, digest: sha256(bytes) }, bytes)
  }
  await seeding.close()
}

/** The same, with all bundles imported before the start. */
function prepareDone(dataPath: string, dump: string): void {
  renameSync(join(dump, 'later'), join(dump, 'data'))
  try {
    importDump(dataPath, dump)
  } finally {
    renameSync(join(dump, 'data'), join(dump, 'later'))
  }
}

/** Items that a gateway has indexed since its start. */
async function itemsOf({ port }: Candidate): Promise<number> {
  // A new connection: a kept one may have been closed while the gateway was stopped.
  const request = get({ port, host: '127.0.0.1', path: '/gateway/__gateway_metrics', agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of response) text += String(piece)
  return Number(/^\w*data_items_indexed_total\S* (\d+)/m.exec(text)?.[1] ?? 0)
}

/** Waits until a gateway has begun to import. */
async function underWay(importing: Candidate): Promise<void> {
  for (let turn = 0; turn < 600; turn += 1) {
    if ((await itemsOf(importing)) > 0) return
    await pause(100)
  }
  throw new Error('the import did not begin in time')
}

/** What a gateway imports a second while `act` runs. */
async function rateDuring<T>(importing: Candidate, act: () => Promise<T>): Promise<{ rate: number; of: T }> {
  const [before, started] = [await itemsOf(importing), systemClock.monotonic()]
  const of = await act()
  const seconds = (systemClock.monotonic() - started) / 1000
  return { rate: ((await itemsOf(importing)) - before) / seconds, of }
}

/** Runs `act` while a program is stopped. */
async function whileStopped<T>({ pid }: Candidate, act: () => Promise<T>): Promise<T> {
  process.kill(pid, 'SIGSTOP')
  try {
    return await act()
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

function questions(): PlanFile {
  const query = (app: number): string =>
    `{transactions(first:10,tags:[{name:"App-Name",values:["app-${app}"]}]){pageInfo{hasNextPage}` +
    'edges{cursor node{id tags{name value} owner{address} block{height timestamp} data{size type}}}}}'
  return planOf(
    Array.from({ length: 40 }, (_, app) => ({ path: `/graphql?query=${encodeURIComponent(query(app))}` })),
  )
}

/** Measures both gateways in turns; while the one at rest is measured, the other is stopped (SIGSTOP). */
async function slices(
  { rounds, seconds, connections, scale }: Order,
  { resting, importing }: { resting: Candidate; importing: Candidate },
  plan: PlanFile,
  perSecond: number,
): Promise<{ rows: Row[]; isWhole: boolean }> {
  const [atRest, beside]: [Metrics[], Metrics[]] = [[], []]
  const rate = perSecond * scale.rate
  const ask = async (candidate: Candidate): Promise<Metrics> => {
    const manner = { seconds, order: 'zipf:0.9' } as const
    const closed = await loadOn(candidate, plan, { ...manner, connections })
    const open = await loadOn(candidate, plan, { ...manner, connections: 4 * connections, rate })
    return { ...closedFigures(closed), ...openFigures(open, rate) }
  }
  for (let round = 0; round < rounds; round += 1) {
    atRest.push(await whileStopped(importing, () => ask(resting)))
    const { rate: itemsPerSecond, of } = await rateDuring(importing, () => ask(importing))
    // The import ended meanwhile, so this round did not measure one.
    if ((await itemsOf(importing)) >= scale.importItems) break
    beside.push({ ...of, itemsPerSecond })
  }
  const rows = [
    rowOf({ name: 'sluice, importing', role: 'ours' }, beside, 'cpuUs'),
    rowOf({ name: 'sluice, at rest', role: 'part' }, atRest, 'cpuUs'),
  ]
  return { rows, isWhole: beside.length > 0 }
}

async function run(order: Order, wanted: readonly CaseWords[]): Promise<void> {
  const { scale, threads, note, tell } = order
  const dump = dumpOf(scale.importItems)
  const corpus = wideCorpus(scale, Math.min(scale.wide, 5000))
  const fill = (seeding: Seeding): Promise<void> => fillWith(seeding, corpus)
  note(`importing: ${scale.importItems} items, servers start`)
  const common = { threads, settings, fill }
  const started: Candidate[] = []
  const contents = planOf(corpus.contents.map(wholeOf))
  const plans: [CaseWords, PlanFile, number][] = [
    [reads, contents, 1000],
    [queries, questions(), 50],
  ]
  try {
    const prepared = { name: 'sluice at rest', prepare: (path: string) => prepareDone(path, dump) }
    const resting = await startGateway({ ...common, ...prepared })
    started.push(resting)
    const prepare = (path: string): Promise<void> => prepareImport(path, dump)
    const importing = await startGateway({ ...common, name: 'sluice importing', prepare })
    started.push(importing)
    const warm = { seconds: 60, order: 'once', lateMs: 60_000 } as const
    await underWay(importing)
    await whileStopped(importing, () => loadOn(resting, contents, warm))
    const alone = (await rateDuring(importing, () => pause(Math.max(2000, order.seconds * 1000)))).rate
    await loadOn(importing, contents, warm)
    for (const [words, plan, rate] of plans.filter(([each]) => wanted.includes(each))) {
      const { rows, isWhole } = await slices(order, { resting, importing }, plan, rate)
      const notes = [`the import alone: ${alone.toFixed(0)} items/s`]
      const { bar: _bar, ...named } = words
      if (isWhole) tell({ ...named, notes, rows, verdict: 'not judged' })
      else tell(failed(words, 'the import ended before it was measured: use more items'))
    }
  } finally {
    for (const [, plan] of plans) plan.drop()
    await stopAll(started)
  }
}

export const importingGroup: Group = { name: 'importing', cases: [reads, queries], run }
