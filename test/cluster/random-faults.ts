/**
 * By hand: `FUZZ_SEED=1 node dist/test/cluster/random-faults.js FAULTS [FOLDER]` (20). Three machines with all services, one
 * PostgreSQL, one radosgw, one chain. At random moments a machine is killed or stands still, or an engine does, under uploads,
 * payments, takedowns and reads; then all that was acknowledged is compared. FOLDER: for the logs of the machines.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { findPort } from '../../src/actor/claim.js'
import { pause } from '../../src/actor/clock.js'
import { startPostgres } from '../engines/postgres-server.js'
import { bucketAt, startRadosgw, storeSettings } from '../engines/radosgw.js'
import { eventually } from '../eventually.js'
import { payerAt } from '../flow/payer.js'
import { program, type Running, run } from '../flow/running.js'
import { pick, random } from '../property.js'
import { scratch } from '../scratch.js'
import { suspend } from '../suspend.js'
import { ClusterLoad, loadSettings, type MachineUrls } from './cluster-load.js'

const [faultsText = '20', logs] = process.argv.slice(2)
const faults = Number(faultsText)
/** Longest fault, and longest time without one. */
const [longestMs, quietMs] = [20_000, 6000]

t.setTimeout(faults * 60_000 + 1_200_000)

async function startChain(): Promise<string> {
  const port = await findPort('127.0.0.1', 0, 'the chain')
  const words = ['devnet', '--port', `${port}`, '--block-ms', '1000', '--data', scratch('chain')]
  const child = spawn(process.execPath, [...program.slice(0, -1), program.at(-1) ?? '', ...words], {
    stdio: 'ignore',
  })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const url = `http://127.0.0.1:${port}`
  await eventually('the chain answers', () =>
    fetch(`${url}/info`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return url
}

t.test(`${faults} faults of three machines`, async (t) => {
  const [objects, database, node] = await Promise.all([startRadosgw(), startPostgres(), startChain()])
  t.teardown(() => Promise.all([objects.stop(), database.stop()]))
  // The wallet of the upload services, too.
  await payerAt(node)
  const cluster = await database.database('cluster')
  const common = { TRUSTED_NODE_URL: node, DEVNET_SEED: 'false' }
  const settings = {
    ...common,
    ...loadSettings,
    ...storeSettings(objects, await bucketAt(objects)),
    SERVICES: 'gateway,upload,payment',
    CLUSTER_DATABASE_URL: cluster,
    PAYMENT_DATABASE_URL: cluster,
    CLUSTER_TAKEOVER_SECONDS: '30',
    UPLOAD_BUNDLE_WAIT_SECONDS: '2',
    SHUTDOWN_DRAIN_MS: '1000',
  }
  const opens = { ANS104_UNBUNDLE_FILTER: '{"always": true}' }
  const reader = await run(t, scratch('reader'), { ...common, ...opens, SERVICES: 'gateway' })
  const names = ['one', 'two', 'three'] as const
  const folders = new Map(names.map((name) => [name, scratch(name)]))
  const machines = new Map<string, Running>()
  const urls = new Map<string, MachineUrls>()
  const logged: [string, Running['log']][] = []
  t.teardown(() => {
    if (logs === undefined) return
    for (const [at, [name, lines]] of logged.entries())
      writeFileSync(
        join(logs, `${at}-${name}.log`),
        lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
      )
  })
  const start = async (name: (typeof names)[number]): Promise<void> => {
    const machine = await run(t, folders.get(name) ?? '', { ...settings, CLUSTER_NODE: name })
    machines.set(name, machine)
    logged.push([name, machine.log])
    urls.set(name, machine.urls as MachineUrls)
  }
  for (const name of names) await start(name)
  const load = new ClusterLoad(() => [...urls.values()], random)
  await eventually('all are ready', async () => {
    await load.begin()
    return true
  })
  let isOver = false
  const loading = load.run(() => isOver)

  const killed = async (ms: number): Promise<void> => {
    const name = pick(names)
    await machines.get(name)?.kill()
    await pause(ms)
    await start(name)
  }
  const still = async (ms: number): Promise<void> => {
    const child = machines.get(pick(names))?.process
    if (child === undefined) return
    await suspend(child)
    await pause(ms)
    child.kill('SIGCONT')
  }
  const acts: Readonly<Record<string, (ms: number) => Promise<void>>> = {
    'a machine is killed': killed,
    'a machine stands still': still,
    'PostgreSQL stands still': async (ms) => {
      database.hang()
      await pause(ms)
      database.wake()
    },
    'PostgreSQL is away': async (ms) => {
      await database.stop()
      await pause(ms)
      await database.start()
    },
    'S3 stands still': async (ms) => {
      await suspend(objects.gateway)
      await pause(ms)
      objects.gateway.kill('SIGCONT')
    },
    'S3 answers errors': async (ms) => {
      await suspend(objects.objects)
      await pause(ms)
      objects.objects.kill('SIGCONT')
    },
  }
  for (let at = 0; at < faults; at += 1) {
    const what = pick(Object.keys(acts))
    const ms = Math.floor(random() * longestMs)
    t.comment(
      `${at + 1}: ${what} for ${ms} ms; accepted ${load.accepted.length}, faults ${load.faults.length}`,
    )
    await acts[what]?.(ms)
    // Now and then the next one comes while this one is still felt.
    if (random() < 0.7) await pause(Math.floor(random() * quietMs))
  }
  isOver = true
  await loading
  t.comment(
    JSON.stringify({
      accepted: load.accepted.length,
      blocked: load.blocked.length,
      ...Object.fromEntries(load.counts),
    }),
  )
  await load.compare(reader.urls.gateway ?? '')
  t.strictSame(load.faults, [])
  for (const [name, machine] of machines) t.equal(await machine.stop(), 0, name)
  await reader.stop()
})
