import type { PostgresSessions } from '../ledger/postgres-session.js'
import { clusterSteps, schemaSteps } from './cluster-schema.js'
import { type Machine, Machines } from './machines.js'
import { PostgresEntries } from './postgres-entries.js'

/** What the database says of the cluster. */
export interface ClusterFacts {
  readonly cluster: string
  /** Version of the last change of the lists. */
  readonly version: number
  readonly steps: number
  /** Milliseconds of one question. */
  readonly answerMs: number
  /** A change would be refused. */
  readonly isReadOnly: boolean
  /** Seconds that the clock here is ahead of the database's. */
  readonly aheadSeconds: number
  /** The newest process of each machine first. */
  readonly machines: readonly Machine[]
}

/** A machine that was not seen for so long is lost: it states every five seconds that it is there. */
export const lostSeconds = 30
/** More stable heights than that are late, unless there is much to catch up with. */
const indexLagMax = 100
/** Clocks that are further apart make receipts, signed orders and certificates fail. */
const clockSeconds = 30

/** What is shown of the cluster to operators: one process of each machine, and what is well or not. */
export function clusterShown(facts: ClusterFacts): object {
  const { cluster, version, steps, answerMs, isReadOnly } = facts
  const machines = machinesNow(facts).map((machine) => ({ ...machine, presence: presenceOf(machine) }))
  return { cluster, version, steps, answerMs, isReadOnly, machines, findings: findingsOf(facts) }
}

/** Undefined: the database has no tables of a cluster. Rejects where it cannot be reached. */
export async function clusterFacts(
  sessions: PostgresSessions,
  clock: { now(): number; monotonic(): number },
): Promise<ClusterFacts | undefined> {
  const steps = await schemaSteps(sessions)
  if (steps === 0) return undefined
  const begun = clock.monotonic()
  const [row] = await sessions.ask<{ read_only: string; now_ms: string }>(
    `SELECT current_setting('transaction_read_only') AS read_only,
       extract(epoch FROM clock_timestamp()) * 1000 AS now_ms`,
  )
  const answerMs = Math.round(clock.monotonic() - begun)
  const aheadSeconds = (clock.now() - Number(row?.now_ms)) / 1000
  const { cluster, version } = await new PostgresEntries(sessions, '').head(0)
  const machines = await new Machines(sessions).list()
  return { cluster, version, steps, answerMs, isReadOnly: row?.read_only === 'on', aheadSeconds, machines }
}

/** One process of each machine: the one that was seen last. */
export function machinesNow({ machines }: Pick<ClusterFacts, 'machines'>): Machine[] {
  return machines.filter(({ node }, at) => machines[at - 1]?.node !== node)
}

/** Whether a machine is there. */
export function presenceOf({ ageSeconds, isStopped }: Machine): 'there' | 'stopped' | 'lost' {
  if (isStopped) return 'stopped'
  return ageSeconds > lostSeconds ? 'lost' : 'there'
}

/** What a machine still owes that is being drained; undefined: it is not. */
export function drainOf({ drain }: Pick<Machine, 'drain'>): string | undefined {
  if (drain === undefined) return undefined
  const { state, items, bundles, changes } = drain
  if (state === 'drained') return 'drained: it may be stopped'
  return `being drained: ${items} items wait, ${bundles} bundles are under way, ${changes} changes of lists wait`
}

/** What a machine does for the index in ClickHouse; undefined: nothing. */
export function indexWorkOf({ index }: Pick<Machine, 'index'>): string | undefined {
  if (index === undefined) return undefined
  if (!index.leads) return 'another machine writes the index into ClickHouse'
  return `writes the index into ClickHouse: up to height ${index.height}, ${index.lag} stable heights behind`
}

/** What a look at the cluster found. */
export interface Finding {
  readonly level: 'ok' | 'warning' | 'fault'
  readonly text: string
}

const ok = (text: string): Finding => ({ level: 'ok', text })
const warning = (text: string): Finding => ({ level: 'warning', text })
const fault = (text: string): Finding => ({ level: 'fault', text })

/** What is well and what is not, with what to do about it. */
export function findingsOf(facts: ClusterFacts): Finding[] {
  const now = machinesNow(facts)
  const there = now.filter((machine) => presenceOf(machine) === 'there')
  return [
    ...databaseFindings(facts),
    ...presenceFindings(facts, now, there),
    ...indexFindings(there),
    ...there.flatMap((machine) => machineFindings(machine, facts.version)),
  ]
}

function databaseFindings({ answerMs, isReadOnly, steps, aheadSeconds }: ClusterFacts): Finding[] {
  const apart = Math.round(Math.abs(aheadSeconds))
  return [
    isReadOnly
      ? fault(
          'PostgreSQL can only be read: changes wait on the machines. Make it writable, or name its primary',
        )
      : ok(`PostgreSQL answers in ${answerMs} ms and can be written`),
    ...(steps > clusterSteps
      ? [
          warning(
            `the tables have step ${steps}, this release knows ${clusterSteps}: update the machines that are older`,
          ),
        ]
      : []),
    apart > clockSeconds
      ? fault(`the clock here and that of PostgreSQL are ${apart} s apart: set them by NTP`)
      : ok('the clock here is that of PostgreSQL'),
  ]
}

function presenceFindings(
  { machines }: ClusterFacts,
  now: readonly Machine[],
  there: readonly Machine[],
): Finding[] {
  const lost = now.filter((machine) => presenceOf(machine) === 'lost')
  const versions = [...new Set(there.map(({ version }) => version))]
  const twice = there.filter(
    ({ node, process }) =>
      machines.filter((one) => one.node === node && one.process !== process && presenceOf(one) === 'there')
        .length > 0,
  )
  return [
    there.length === 0
      ? warning('no machine is there')
      : ok(`machines that are there (${there.length}): ${there.map(({ node }) => node).join(', ')}`),
    ...lost.map(({ node, ageSeconds, unshared }) =>
      fault(
        `${node} was last seen ${inWords(ageSeconds)} ago, and was not stopped` +
          (unshared > 0
            ? `; ${unshared} changes of lists wait on its disk`
            : '; it owed no changes of lists'),
      ),
    ),
    ...twice.map(({ node }) =>
      fault(
        `two machines have the name ${node}, or it was killed and started less than ${lostSeconds} s ago: see CLUSTER_NODE`,
      ),
    ),
    ...(versions.length > 1 ? [warning(`versions differ: ${versions.join(', ')}`)] : []),
  ]
}

function indexFindings(there: readonly Machine[]): Finding[] {
  const may = there.filter(({ index }) => index !== undefined)
  if (may.length === 0) return []
  const leading = may.filter(({ index }) => index?.leads === true)
  if (leading.length === 0)
    return [fault('no machine writes the index into ClickHouse: see the logs of those with CLICKHOUSE_PUSH')]
  return leading.map((machine) => {
    const text = `${machine.node} ${indexWorkOf(machine)}`
    return (machine.index?.lag ?? 0) > indexLagMax ? warning(text) : ok(text)
  })
}

function machineFindings(machine: Machine, version: number): Finding[] {
  const { node, unshared, aheadSeconds, engines, listVersion } = machine
  const apart = Math.round(Math.abs(aheadSeconds))
  const away = Object.entries(engines).filter(([, health]) => typeof health === 'string')
  const found = [
    ...(apart > clockSeconds
      ? [fault(`the clock of ${node} is ${apart} s away from that of PostgreSQL: set it by NTP`)]
      : []),
    ...(unshared > 0 ? [warning(`${unshared} changes of lists wait on ${node}`)] : []),
    ...(machine.drain === undefined ? [] : [warning(`${node} is ${drainOf(machine)}`)]),
    ...away.map(([engine, health]) => fault(`${node} does not reach ${engine}: ${health}`)),
  ]
  if (found.length > 0) return found
  const behind = Math.max(0, version - listVersion)
  return [
    ok(
      `${node} has all lists${behind === 0 ? '' : ` but the last ${behind} changes, by its last heartbeat`}`,
    ),
  ]
}

/** A time in the unit that suits it. */
export function inWords(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`
}
