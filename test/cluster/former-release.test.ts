/** Machines are updated one after the other: until the last one is, the release before this one works with the same tables. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { clusterMigrations, migrateCluster, takeStepBack } from '../../src/cluster/cluster-schema.js'
import { headKey } from '../../src/ledger/head-key.js'
import { PostgresLedger } from '../../src/ledger/postgres.js'
import { migrations } from '../../src/ledger/postgres-schema.js'
import { PostgresSessions } from '../../src/ledger/postgres-session.js'
import { postgresAbsent, postgresFor } from '../engines/two-machines.js'
import { type FormerRelease, formerPath } from './former-release.js'

const former = JSON.parse(readFileSync(formerPath, 'utf8')) as FormerRelease

interface Column {
  readonly table: string
  readonly column: string
  readonly type: string
  /** A row needs a value for it. */
  readonly needed: boolean
}

async function columnsOf(sessions: PostgresSessions): Promise<Column[]> {
  return sessions.ask<Column>(`
    SELECT table_name AS table, column_name AS column, data_type AS type,
      is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO' AS needed
    FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name ~ '^(cluster|ledger)_' ORDER BY 1, 2`)
}

const nameOf = ({ table, column }: Column): string => `${table}.${column}`

/** Takes each of the former release's statements; what the server has against them. */
async function refused(sessions: PostgresSessions): Promise<string[]> {
  const faults: string[] = []
  for (const [at, text] of former.statements.entries())
    await sessions
      .ask(`PREPARE former_${at} AS ${text}`)
      .catch((error: Error) => faults.push(`${error.message}: ${text}`))
  return faults
}

t.test('a step that was released never changes, and a release adds one at most', async (t) => {
  t.ok(former.statements.length > 60, `${former.statements.length} statements`)
  const forward = clusterMigrations.map((step) => step.forward)
  t.strictSame(forward.slice(0, former.cluster.length), former.cluster)
  t.strictSame(migrations.slice(0, former.ledger.length), former.ledger)
  t.ok(clusterMigrations.length <= former.cluster.length + 1, 'the release before works with one step more')
})

t.test(
  'the release before works with the tables of this one, and again with its own',
  postgresAbsent,
  async (t) => {
    const server = await postgresFor(t)
    const url = await server.database('former')
    const sessions = new PostgresSessions(url, 1, 20_000)
    t.teardown(() => sessions.close())
    await migrateCluster(
      sessions,
      former.cluster.map((forward) => ({ forward, back: '' })),
    )
    await sessions.ask('CREATE TABLE ledger_migrations (step integer PRIMARY KEY)')
    for (const [step, forward] of former.ledger.entries()) {
      await sessions.ask(forward)
      await sessions.ask('INSERT INTO ledger_migrations VALUES ($1)', [step])
    }
    const before = await columnsOf(sessions)
    t.strictSame(await refused(sessions), [], 'they are statements for its tables')
    await sessions.ask('DEALLOCATE ALL')
    await migrateCluster(sessions)
    const key = headKey(join(t.testdir(), 'key.pem'))
    const ledger = await PostgresLedger.open({ url, clock: systemClock, key })
    await ledger.close()
    t.strictSame(await refused(sessions), [], 'and for those of this release')
    await sessions.ask('DEALLOCATE ALL')
    const [known, tables] = [new Set(before.map(nameOf)), new Set(before.map(({ table }) => table))]
    const now = await columnsOf(sessions)
    const added = now.filter((column) => tables.has(column.table) && !known.has(nameOf(column)))
    t.strictSame(
      added.filter(({ needed }) => needed).map(nameOf),
      [],
      'rows of the release before have no value for a new column',
    )
    t.strictSame(
      now.filter((column) => known.has(nameOf(column))),
      before,
      'no column is another one',
    )
    for (let steps = clusterMigrations.length; steps > former.cluster.length; steps -= 1)
      t.equal(await takeStepBack(sessions), steps - 1)
    const isShared = ({ table }: Column): boolean => table.startsWith('cluster_')
    t.strictSame((await columnsOf(sessions)).filter(isShared), before.filter(isShared), 'a way back')
  },
)
