/**
 * By hand: `node dist/test/cluster/cluster-requests.js [COUNT] [MACHINES]` (1000 1,3,6). Requests to each engine for so many
 * uploads, reads and misses, with so many machines: a table, and a failure where one request costs more with more machines. What
 * machines request at rest is measured before, and taken off.
 */
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import t, { type Test } from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { idOfBytes } from '../../src/format/id.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { payerAt } from '../flow/payer.js'
import { pick } from '../property.js'
import type { MachineUrls } from './cluster-load.js'
import { startEngines } from './engine-faults.js'
import type { LastingMachine } from './lasting-machine.js'
import { nearPlaces } from './machine-places.js'
import { startChain } from './three-machines.js'

const [countText = '1000', machinesText = '1,3,6'] = process.argv.slice(2)
const count = Number(countText)
const machineCounts = machinesText.split(',').map(Number)
const [restMs, atOnce] = [20_000, 16]
const redisName = 'Redis, commands'
const postgresName = 'PostgreSQL, transactions'
type Counts = Readonly<Record<string, number>>

/** Things that are done so many times. */
const uploads = 'uploads of 3 KiB'

/** What was requested for `count` of something, with one number of machines. */
interface Spent {
  readonly machines: number
  readonly what: string
  readonly requests: Counts
  readonly seconds: number
}

t.setTimeout(3_600_000)

const signer = ed25519Signer(randomBytes(32))

/** Does something so many times, some at once. */
async function each(act: (at: number) => Promise<void>): Promise<void> {
  let next = 0
  const one = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) await act(at)
  }
  await Promise.all(Array.from({ length: atOnce }, one))
}

async function statusOf(url: string, init: RequestInit = {}): Promise<number> {
  const answer = await fetch(url, init)
  await answer.arrayBuffer()
  return answer.status
}

/** What was requested of each engine so far. */
async function countsOf(
  machines: readonly LastingMachine[],
  database: Client,
  redis: () => Promise<number>,
): Promise<Counts> {
  const counts: Record<string, number> = { [redisName]: await redis() }
  const { rows } = await database.query<{ done: string }>(
    "SELECT xact_commit + xact_rollback AS done FROM pg_stat_database WHERE datname = 'cluster'",
  )
  counts[postgresName] = Number(rows[0]?.done)
  for (const { urls } of machines) {
    const text = await (await fetch(`${urls.gateway}/gateway/__gateway_metrics`)).text()
    for (const [, operation = '', value] of text.matchAll(
      /^content_store_requests_total\{[^}]*operation="(\w+)"[^}]*\} (\d+)/gm,
    ))
      counts[`S3, ${operation}`] = (counts[`S3, ${operation}`] ?? 0) + Number(value)
  }
  return counts
}

async function measured(t: Test, number: number): Promise<Spent[]> {
  const chain = await startChain(t)
  const engines = { ...(await startEngines()), chain }
  t.teardown(() => Promise.all([engines.objects.stop(), engines.database.stop(), engines.redis.stop()]))
  await payerAt(`http://127.0.0.1:${chain}`)
  await engines.database.database('cluster')
  const machines = nearPlaces(t, engines, number).machines
  for (const machine of machines) await machine.start()
  const database = new Client({ connectionString: engines.database.url })
  await database.connect()
  t.teardown(() => database.end())
  const redis = async (): Promise<number> => {
    const [, calls = '0'] =
      /total_commands_processed:(\d+)/.exec(await engines.redis.command('INFO stats')) ?? []
    return Number(calls)
  }
  const look = async (): Promise<Counts> => {
    // PostgreSQL counts what its sessions have done some time after they did it.
    await pause(2000)
    return countsOf(machines, database, redis)
  }
  const at = (index: number): MachineUrls => (machines[index % number] as LastingMachine).urls
  const calm = await look()
  await pause(restMs)
  const rest = await look()
  const restTook = restMs + 2000
  const all: Spent[] = []
  const say = async (what: string, act: () => Promise<void>): Promise<void> => {
    const [before, begun] = [await look(), systemClock.monotonic()]
    await act()
    const after = await look()
    const seconds = (systemClock.monotonic() - begun) / 1000
    const share = (seconds * 1000) / restTook
    const spent = Object.keys(after).map((name): [string, number] => {
      const idle = ((rest[name] ?? 0) - (calm[name] ?? 0)) * share
      return [name, Math.max(0, Math.round((after[name] ?? 0) - (before[name] ?? 0) - idle))]
    })
    all.push({ machines: number, what, seconds, requests: Object.fromEntries(spent) })
  }
  const ids: string[] = []
  await say(uploads, () =>
    each(async (index) => {
      const item = Buffer.from(signItem(signer, { anchor: randomBytes(32) }, randomBytes(3000)))
      const answer = await fetch(`${at(index).upload}/v1/tx`, { method: 'POST', body: item })
      const { id } = (await answer.json()) as { id: string }
      ids[index] = id
    }),
  )
  const read = (shift: number) => () =>
    each(async (index) => {
      const status = await statusOf(`${at(index + shift).gateway}/raw/${ids[index]}`)
      if (status !== 200) throw new Error(`an upload is ${status}`)
    })
  await say('reads where it was accepted', read(0))
  if (number > 1) await say('first reads on another machine', read(1))
  if (number > 1) await say('further reads on that machine', read(1))
  const nowhere = (): string => idOfBytes(randomBytes(32))
  await say('misses', () =>
    each(async () => void (await statusOf(`${pick(machines).urls.gateway}/raw/${nowhere()}`))),
  )
  const idle = Object.keys(rest).map(
    (name) => `${name}: ${(((rest[name] ?? 0) - (calm[name] ?? 0)) / (restTook / 1000)).toFixed(1)}`,
  )
  t.comment(`${number} machines at rest, a second: ${idle.join('; ')}`)
  for (const { running } of machines) await running.stop()
  return all
}

/**
 * The most that may be requested for `count` of something with more machines, by what it was with fewest. Uploads that come at
 * the same time share less where they go to more machines. Each machine reads the directory of each group of the others, and
 * lists once a second while there are any: these grow.
 */
function most(engine: string, { what, machines, seconds, requests }: Spent, least: Spent): number {
  const usual = 1.5 * (least.requests[engine] ?? 0)
  if (what !== uploads) return usual + 0.75 * count
  if (engine === postgresName) return usual + 2 * count
  if (engine === 'S3, get') return usual + (machines - 1) * (requests['S3, put'] ?? 0) + 0.75 * count
  if (engine === 'S3, list') return usual + machines * seconds + 0.75 * count
  return usual + 0.75 * count
}

t.test('requests to each engine', async (t) => {
  const spent: Spent[] = []
  for (const number of machineCounts)
    await t.test(`${number} machines`, async (t) => {
      spent.push(...(await measured(t, number)))
    })
  const engines = [...new Set(spent.flatMap(({ requests }) => Object.keys(requests)))]
  const lines = spent.map((one) => {
    const counts = engines.map((engine) => `${engine}: ${one.requests[engine] ?? 0}`)
    return `${one.machines} machines, ${count} ${one.what} in ${one.seconds.toFixed(0)} s: ${counts.join('; ')}`
  })
  for (const line of lines.sort()) t.comment(line)
  for (const one of spent) {
    const least = spent.find(({ what }) => what === one.what) ?? one
    for (const engine of engines) {
      const [found, bound] = [one.requests[engine] ?? 0, most(engine, one, least)]
      t.ok(
        found <= bound,
        `${one.what}, ${one.machines} machines, ${engine}: ${found}, at most ${bound.toFixed(0)}`,
      )
    }
  }
})
