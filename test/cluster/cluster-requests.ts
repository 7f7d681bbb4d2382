/**
 * By hand: `node dist/test/cluster/cluster-requests.js [COUNT]` (1000). Requests to each engine for so many uploads, reads and
 * misses, with one machine and with three. What machines ask at rest is measured before, and taken off.
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

const count = Number(process.argv[2] ?? 1000)
const [restMs, atOnce] = [20_000, 16]
const redisName = 'Redis, commands'
const postgresName = 'PostgreSQL, transactions'
type Counts = Readonly<Record<string, number>>

t.setTimeout(1_800_000)

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

async function measured(t: Test, number: number): Promise<void> {
  const chain = await startChain(t)
  const engines = { ...(await startEngines()), chain }
  t.teardown(() => Promise.all([engines.objects.stop(), engines.database.stop(), engines.redis.stop()]))
  await payerAt(`http://127.0.0.1:${chain}`)
  await engines.database.database('cluster')
  const machines = nearPlaces(t, engines).machines.slice(0, number)
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
  const say = async (what: string, act: () => Promise<void>): Promise<void> => {
    const [before, begun] = [await look(), systemClock.monotonic()]
    await act()
    const after = await look()
    const share = (systemClock.monotonic() - begun) / restTook
    const spent = Object.keys(after).map((name): [string, number] => {
      const idle = ((rest[name] ?? 0) - (calm[name] ?? 0)) * share
      return [name, Math.round((after[name] ?? 0) - (before[name] ?? 0) - idle)]
    })
    const shown = spent
      .filter(([, requests]) => requests > 0)
      .map(([name, requests]) => `${name}: ${requests}`)
    t.comment(`${number} machines, ${count} ${what}: ${shown.join('; ') || 'nothing'}`)
  }
  const ids: string[] = []
  await say('uploads of 3 KiB', () =>
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
}

for (const number of [1, 3]) t.test(`${number} machines`, (t) => measured(t, number))
