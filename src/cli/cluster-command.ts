import { parseArgs } from 'node:util'
import { type Config, readConfig } from '../../config/read.js'
import { abortAfter, pause, systemClock } from '../actor/clock.js'
import { silentLog } from '../actor/log.js'
import {
  type ClusterFacts,
  clusterFacts,
  drainOf,
  type Finding,
  findingsOf,
  indexWorkOf,
  inWords,
  machinesNow,
  presenceOf,
} from '../cluster/cluster-doctor.js'
import { ClusterNews } from '../cluster/cluster-news.js'
import { clusterSteps, takeStepBack } from '../cluster/cluster-schema.js'
import { Machines } from '../cluster/machines.js'
import { isRefusal } from '../format/refusal.js'
import { PostgresSessions } from '../ledger/postgres-session.js'
import { claimDataFolder } from '../main/data-folder.js'
import { ModerationStore } from '../moderation/moderation-store.js'
import { LocalRegistry } from '../names/local-registry.js'
import { folders } from '../threads/folders.js'
import { namesFolder } from '../threads/host-names.js'
import { openObjects } from '../threads/open-objects.js'
import { failedAs } from './command-failed.js'
import { exitCode } from './exit-code.js'
import { paint } from './paint.js'

const help = `sluice cluster: several machines that share a database (CLUSTER_DATABASE_URL)

Usage: sluice cluster status [--json]
       sluice cluster doctor [--json]
       sluice cluster drain NAME [--wait]
       sluice cluster resume NAME
       sluice cluster leave
       sluice cluster step-back

  status     who is there, with which version, where it answers, and how far it has followed
  doctor     asks each engine and looks for what is wrong: lost machines, clocks, versions, changes that wait
  drain      takes the machine of this name out: its health says 503, after 10 seconds it takes no new uploads, and it
             brings onto the chain what it has accepted. --wait: returns when it owes nothing any more
  resume     takes it in again
  leave      this machine belongs to no cluster any more; it keeps its block list and its names, and brings them along
             where it joins another one. Stop it before
  step-back  takes the last step of the tables back, before all machines go back by more than one release
  --json     for programs

Exit codes: 0 done and well, 1 failed, 2 wrong arguments or settings, 3 the database has no cluster, 4 the doctor found
a fault, or a machine is lost, 5 the database does not answer.

Examples:
  sluice cluster status
  sluice cluster drain gateway-2 --wait
  sluice cluster doctor || mail -s "cluster" admin@example.org < /dev/null
`

const orders = ['status', 'doctor', 'drain', 'resume', 'leave', 'step-back']
/** Those of one machine. */
const named = ['drain', 'resume']
const failed = failedAs('cluster')
const answerMs = 5000

/** Looks at the cluster from here, also while this machine does not run. */
export async function clusterCommand(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: { help: { type: 'boolean' }, json: { type: 'boolean' }, wait: { type: 'boolean' } },
    allowPositionals: true,
  })
  if (values.help === true) {
    process.stdout.write(help)
    return exitCode.done
  }
  const [order = '', ...more] = positionals
  if (!orders.includes(order) || more.length !== (named.includes(order) ? 1 : 0))
    return failed(exitCode.usage, `give one of ${orders.join(', ')}; see sluice cluster --help`)
  const config = readConfig()
  if (Array.isArray(config)) return failed(exitCode.usage, ...config)
  if (order === 'leave') return leave(config)
  const { databaseUrl } = config.cluster
  if (databaseUrl === undefined) return failed(exitCode.usage, 'CLUSTER_DATABASE_URL is not set')
  const sessions = new PostgresSessions(databaseUrl, 1, answerMs)
  try {
    if (order === 'step-back') return await stepBack(sessions)
    const facts = await clusterFacts(sessions, systemClock)
    if (facts === undefined)
      return failed(
        exitCode.notFound,
        'the database has no cluster yet: the first machine that starts makes it',
      )
    const [node] = more
    if (node !== undefined) return await ordered(sessions, facts, order, node, values.wait === true)
    return order === 'status'
      ? status(facts, values.json === true)
      : await doctor(config, facts, values.json === true)
  } catch (error) {
    if (!(error instanceof Error) || error instanceof TypeError) throw error
    return failed(exitCode.unreachable, `PostgreSQL: ${error.message}`)
  } finally {
    await sessions.close()
  }
}

function status(facts: ClusterFacts, isJson: boolean): number {
  const machines = machinesNow(facts)
  if (isJson) {
    const states = machines.map((machine) => ({ ...machine, presence: presenceOf(machine) }))
    process.stdout.write(`${JSON.stringify({ ...facts, machines: states }, null, 2)}\n`)
    return exitCode.done
  }
  const { cluster, version, steps, answerMs: ms, isReadOnly } = facts
  const lines = machines.map((machine) => {
    const { node, services, urls, engines, unshared, listVersion, ageSeconds } = machine
    const presence = presenceOf(machine)
    const behind = Math.max(0, version - listVersion)
    const lags = Object.entries(engines).map(
      ([engine, health]) => `${engine} ${typeof health === 'number' ? `${health} ms` : health}`,
    )
    const index = indexWorkOf(machine)
    const there = [presence, drainOf(machine)].filter((word) => word !== undefined).join(', ')
    const seen = presence === 'there' ? there : `${presence}, seen ${inWords(ageSeconds)} ago`
    return [
      `${node}  ${seen}  ${machine.version}  ${services.join(',')}`,
      `    lists: ${behind === 0 ? 'all changes' : `${behind} changes behind`}, ${unshared} of its own wait; ${lags.join(', ')}`,
      ...(index === undefined ? [] : [`    ${index}`]),
      ...Object.entries(urls).map(([name, url]) => `    ${name} ${url}`),
    ].join('\n')
  })
  process.stdout.write(
    `cluster ${cluster}: change ${version} of the lists, step ${steps} of the tables; ` +
      `PostgreSQL ${ms} ms${isReadOnly ? ', can only be read' : ''}\n${lines.join('\n')}${lines.length > 0 ? '\n' : ''}`,
  )
  return exitCode.done
}

/** Between two looks at a machine that is being drained. */
const lookMs = 2000

/** Takes a machine out, or in again. */
async function ordered(
  sessions: PostgresSessions,
  { steps }: ClusterFacts,
  order: string,
  node: string,
  waits: boolean,
): Promise<number> {
  if (steps < clusterSteps) return failed(exitCode.failed, 'no machine of this release was started yet')
  const machines = new Machines(sessions)
  if (order === 'resume') {
    const isResumed = await machines.resume(node)
    if (!isResumed) return failed(exitCode.notFound, `${node} was not drained`)
    process.stdout.write(`${node} takes uploads again within some seconds\n`)
    return exitCode.done
  }
  if (!(await machines.drain(node))) return failed(exitCode.notFound, `no machine has the name ${node}`)
  process.stdout.write(`${node} is being drained: sluice cluster status shows what it still owes\n`)
  return waits ? untilDrained(machines, node) : exitCode.done
}

/** Shows each change of what a machine owes, until that is nothing. */
async function untilDrained(machines: Machines, node: string): Promise<number> {
  for (let shown: string | undefined; ; await pause(lookMs)) {
    const machine = (await machines.list()).find((one) => one.node === node)
    if (machine === undefined || presenceOf(machine) === 'lost')
      return failed(exitCode.untrue, `${node} was lost while it was being drained`)
    if (presenceOf(machine) === 'stopped') return failed(exitCode.untrue, `${node} was stopped before`)
    const words = drainOf(machine)
    if (words !== shown && words !== undefined) process.stdout.write(`${node} is ${words}\n`)
    if (machine.drain?.state === 'drained') return exitCode.done
    shown = words
  }
}

const colours = { ok: 'green', warning: 'cyan', fault: 'red' } as const

async function doctor(config: Config, facts: ClusterFacts, isJson: boolean): Promise<number> {
  const findings = [...findingsOf(facts), ...(await newsFindings(config)), ...(await storeFindings(config))]
  const isWell = findings.every(({ level }) => level !== 'fault')
  const lines = findings.map(({ level, text }) => `${paint(colours[level], level.padEnd(7))}  ${text}\n`)
  process.stdout.write(isJson ? `${JSON.stringify({ isWell, findings }, null, 2)}\n` : lines.join(''))
  return isWell ? exitCode.done : exitCode.untrue
}

async function newsFindings({ cluster: { redisUrl } }: Config): Promise<Finding[]> {
  if (redisUrl === undefined)
    return [
      { level: 'warning', text: 'without CLUSTER_REDIS_URL changes reach other machines after some seconds' },
    ]
  const news = new ClusterNews(redisUrl, 'sluice{cluster}:doctor', () => undefined, systemClock, silentLog)
  const health = await news.firstHealth()
  news.close()
  return [
    typeof health === 'number'
      ? { level: 'ok', text: `Redis answers in ${health} ms` }
      : { level: 'fault', text: `Redis: ${health}. Changes reach other machines after some seconds` },
  ]
}

async function storeFindings(config: Config): Promise<Finding[]> {
  const objects = openObjects(config)
  if (objects === undefined) return []
  const begun = systemClock.monotonic()
  const page = await objects.list(config.contentStore.prefix, undefined, abortAfter(answerMs))
  const ms = Math.round(systemClock.monotonic() - begun)
  await objects.close()
  return [
    isRefusal(page)
      ? { level: 'fault', text: `the object store: ${page.message}` }
      : { level: 'ok', text: `the object store lists its keys in ${ms} ms` },
  ]
}

async function leave(config: Config): Promise<number> {
  const { root, moderation } = folders(config)
  const claim = await claimDataFolder(root)
  const blocks = new ModerationStore(moderation)
  const names = new LocalRegistry(namesFolder(root))
  const waiting = blocks.unsharedKeys.count + names.unsharedKeys.count
  const isMember = blocks.unsharedKeys.position() !== undefined || names.unsharedKeys.position() !== undefined
  blocks.unsharedKeys.leave()
  names.unsharedKeys.leave()
  await Promise.all([blocks.close(), names.close()])
  await claim.release()
  if (!isMember) return failed(exitCode.notFound, 'this machine is in no cluster')
  process.stdout.write(
    `this machine has left its cluster${waiting > 0 ? `; ${waiting} of its changes were not shared, and are kept here` : ''}\n`,
  )
  return exitCode.done
}

async function stepBack(sessions: PostgresSessions): Promise<number> {
  const steps = await takeStepBack(sessions)
  if (steps === undefined)
    return failed(
      exitCode.failed,
      `the last step was made by a newer release, or there is none: this one knows ${clusterSteps}`,
    )
  process.stdout.write(`the tables have step ${steps} now\n`)
  return exitCode.done
}
