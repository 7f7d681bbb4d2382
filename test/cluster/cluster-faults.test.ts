/** Machines that share lists while their database is gone, hangs, can only be read, has older data, or is that of others. */
import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { Client } from 'pg'
import t, { type Test } from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { clusterFacts, findingsOf, presenceOf } from '../../src/cluster/cluster-doctor.js'
import {
  type ClusterMigration,
  clusterMigrations,
  migrateCluster,
  schemaSteps,
  takeStepBack,
  UnknownSchema,
} from '../../src/cluster/cluster-schema.js'
import { ForeignCluster } from '../../src/cluster/list-sharing.js'
import { PostgresEntries } from '../../src/cluster/postgres-entries.js'
import type { SharedChange } from '../../src/cluster/shared-entries.js'
import { idOfBytes } from '../../src/format/id.js'
import { PostgresSessions } from '../../src/ledger/postgres-session.js'
import type { Subject } from '../../src/moderation/moderation-messages.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { LocalRegistry } from '../../src/names/local-registry.js'
import { hasRedis, startRedis } from '../admission/redis-server.js'
import { type PostgresServer, postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { type ClusterMachine, clusterMachine, settledAmong } from './cluster-rig.js'

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false
const ground = { source: 'court', notes: '' }
const some = (): Subject => ({ kind: 'id', key: idOfBytes(randomBytes(32)) })
const often = { everyMs: 50, answerMs: 3000 }

function block(machine: ClusterMachine, subject: Subject): void {
  machine.blocks.block([subject], ground, 1_700_000_000, true)
}

const isBlocked = (machine: ClusterMachine, subject: Subject): boolean =>
  machine.blocks.find(subject) !== undefined

/** Blocks something on one machine, and waits until the other one has it. */
async function spreads(one: ClusterMachine, other: ClusterMachine): Promise<void> {
  const subject = some()
  block(one, subject)
  await eventually('the other machine blocks it', () => isBlocked(other, subject))
}

async function queried(url: string, ...statements: readonly string[]): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  let rows: unknown[] = []
  for (const statement of statements) rows = (await client.query(statement)).rows
  await client.end()
  return rows
}

async function withServer(t: Test, act: (server: PostgresServer) => Promise<void>): Promise<void> {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  await act(server)
}

t.test(
  'a block counts on the other machine by a notice of Redis, long before the next look',
  { skip: skip || (hasRedis ? false : 'no Redis here') },
  async (t) => {
    const redis = await startRedis(scratch('redis'))
    t.teardown(() => redis.stop())
    await withServer(t, async ({ url }) => {
      const more = { redisUrl: `redis://127.0.0.1:${redis.port}`, everyMs: 600_000 }
      const [one, other] = [
        await clusterMachine(t, url, 'one', more),
        await clusterMachine(t, url, 'other', more),
      ]
      for (let turn = 0; turn < 4; turn += 1) await spreads(one, other)
    })
  },
)

t.test('without Redis it counts with the next look, also where Redis is gone', { skip }, async (t) => {
  await withServer(t, async ({ url }) => {
    const more = { redisUrl: 'redis://127.0.0.1:1' }
    const [one, other] = [await clusterMachine(t, url, 'one', more), await clusterMachine(t, url, 'other')]
    await spreads(one, other)
  })
})

t.test('a database that is gone', { skip }, async (t) => {
  await withServer(t, async (server) => {
    const { url } = server
    const one = await clusterMachine(t, url, 'one', often)
    let other = await clusterMachine(t, url, 'other', often)
    const [known, fresh] = [some(), some()]
    block(one, known)
    await settledAmong([one, other], url)
    await server.stop()
    block(one, fresh)
    t.ok(isBlocked(one, fresh), 'in force where it was made')
    t.ok(isBlocked(other, known))
    t.equal(one.blocks.unsharedKeys.count, 1)
    const { folder } = other
    await other.close()
    other = await clusterMachine(t, url, 'other', { ...often, folder })
    t.ok(isBlocked(other, known), 'a machine that has followed starts without the database')
    await t.rejects(
      clusterMachine(t, url, 'new', { ...often, startPatienceMs: 500 }),
      /never had the block list/,
    )
    await server.start()
    await settledAmong([one, other], url)
    t.ok(isBlocked(other, fresh), 'shared when the database is back')
    const third = await clusterMachine(t, url, 'third', often)
    t.ok(
      isBlocked(third, known) && isBlocked(third, fresh),
      'a new machine, or one that has lost its disk, has them at once',
    )
  })
})

t.test('a database that hangs', { skip }, async (t) => {
  await withServer(t, async (server) => {
    const { url } = server
    const [one, other] = [
      await clusterMachine(t, url, 'one', often),
      await clusterMachine(t, url, 'other', often),
    ]
    server.hang()
    const subject = some()
    block(one, subject)
    await pause(1500)
    t.ok(isBlocked(one, subject))
    t.notOk(isBlocked(other, subject))
    server.wake()
    await settledAmong([one, other], url)
    t.ok(isBlocked(other, subject))
    server.hang()
    // A machine ends although the database hangs.
    await other.close()
    server.wake()
  })
})

t.test('a database that can only be read', { skip }, async (t) => {
  await withServer(t, async (server) => {
    const { url } = server
    const [one, other] = [
      await clusterMachine(t, url, 'one', often),
      await clusterMachine(t, url, 'other', often),
    ]
    const [before, meanwhile] = [some(), some()]
    block(one, before)
    await settledAmong([one, other], url)
    await queried(url, 'ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()')
    const sessions = new PostgresSessions(url, 1, 5000)
    await eventually(
      'it can only be read',
      async () => (await clusterFacts(sessions, systemClock))?.isReadOnly,
    )
    block(one, meanwhile)
    const { folder } = other
    await other.close()
    const again = await clusterMachine(t, url, 'other', { ...often, folder })
    t.ok(isBlocked(again, before), 'starts with what it has')
    t.equal(one.blocks.unsharedKeys.count, 1)
    const facts = await clusterFacts(sessions, systemClock)
    t.ok(facts && findingsOf(facts).some(({ level, text }) => level === 'fault' && /only be read/.test(text)))
    await sessions.close()
    await queried(
      url,
      'SET default_transaction_read_only = off',
      'ALTER SYSTEM RESET default_transaction_read_only',
      'SELECT pg_reload_conf()',
    )
    await settledAmong([one, again], url)
    t.ok(isBlocked(again, meanwhile))
  })
})

const tables = ['cluster_state', 'cluster_versions', 'cluster_entries', 'cluster_changes']

t.test('a database with older data: no block is lost', { skip }, async (t) => {
  await withServer(t, async (server) => {
    const { url } = server
    const one = await clusterMachine(t, url, 'one', often)
    const [early, late, later, again] = [some(), some(), some(), some()]
    block(one, early)
    block(one, again)
    await settledAmong([one], url)
    one.blocks.release([again])
    await settledAmong([one], url)
    await queried(url, ...tables.map((table) => `CREATE TABLE kept_${table} AS TABLE ${table}`))
    const other = await clusterMachine(t, url, 'other', often)
    block(one, late)
    block(one, again)
    await settledAmong([one, other], url)
    const restored = tables.flatMap((table) => [
      `DELETE FROM ${table}`,
      `INSERT INTO ${table} TABLE kept_${table}`,
    ])
    // In one transaction: as a database that comes back.
    await queried(url, ['BEGIN', ...restored, 'COMMIT'].join(';'))
    const third = await clusterMachine(t, url, 'third', often)
    block(third, later)
    await settledAmong([one, other, third], url)
    for (const machine of [one, other, third])
      t.ok([early, late, later, again].every((subject) => isBlocked(machine, subject)))
  })
})

t.test('what a machine brings along, and what the others have released', { skip }, async (t) => {
  await withServer(t, async ({ url }) => {
    const one = await clusterMachine(t, url, 'one', often)
    const [mine, released] = [some(), some()]
    block(one, released)
    await settledAmong([one], url)
    one.blocks.release([released])
    await settledAmong([one], url)
    const folder = scratch('alone')
    const store = new ModerationStore(join(folder, 'moderation'))
    store.block([mine, released], ground, 1_700_000_000)
    t.equal(store.unsharedKeys.count, 0, 'a machine that is alone lists nothing for others')
    await store.close()
    const joined = await clusterMachine(t, url, 'lone', { ...often, folder })
    await settledAmong([one, joined], url)
    t.ok(isBlocked(one, mine), 'the cluster has what it brought')
    t.notOk(isBlocked(joined, released), 'what the cluster has released is not blocked again')
  })
})

t.test("another cluster's database is refused, until the machine leaves its own", { skip }, async (t) => {
  await withServer(t, async (server) => {
    const other = await server.database('foreign')
    const [mine, theirs] = [some(), some()]
    const one = await clusterMachine(t, server.url, 'one', often)
    const foreign = await clusterMachine(t, other, 'foreign', often)
    block(one, mine)
    block(foreign, theirs)
    await settledAmong([one], server.url)
    await settledAmong([foreign], other)
    const { folder } = one
    await one.close()
    await t.rejects(clusterMachine(t, other, 'one', { ...often, folder }), ForeignCluster)
    const [store, names] = [
      new ModerationStore(join(folder, 'moderation')),
      new LocalRegistry(join(folder, 'names')),
    ]
    store.unsharedKeys.leave()
    names.unsharedKeys.leave()
    await store.close()
    await names.close()
    const moved = await clusterMachine(t, other, 'one', { ...often, folder })
    await settledAmong([moved, foreign], other)
    t.ok(isBlocked(moved, theirs) && isBlocked(foreign, mine))
  })
})

t.test('a change that is given twice, before and behind one of another machine', { skip }, async (t) => {
  await withServer(t, async ({ url }) => {
    const sessions = new PostgresSessions(url, 2, 5000)
    t.teardown(() => sessions.close())
    await migrateCluster(sessions)
    const [one, other] = [new PostgresEntries(sessions, 'one'), new PostgresEntries(sessions, 'other')]
    const key = `id:${some().key}`
    const change = (body: string | undefined): SharedChange => ({
      list: 'blocks',
      key,
      body,
      rank: 0,
      token: randomUUID(),
      isInitial: false,
    })
    const release = change(undefined)
    await other.push([change('{}')])
    await one.push([release])
    await other.push([change('{"source":"again"}')])
    // The answer to the first try was lost: it must not release what was blocked since.
    const instead = await one.push([release])
    t.equal(instead[0]?.body, '{"source":"again"}')
    const { version } = await one.head(0)
    t.strictSame(
      (await one.since(['blocks'], 0, version, 10)).map(({ body }) => body),
      ['{"source":"again"}'],
    )
  })
})

t.test('a process that stands still in a transaction keeps nobody from theirs', { skip }, async (t) => {
  await withServer(t, async ({ url }) => {
    const [standing, sessions] = [new PostgresSessions(url, 1, 5000, 300), new PostgresSessions(url, 1, 5000)]
    await migrateCluster(sessions)
    let wake = (): void => undefined
    const asleep = new Promise<void>((resolve) => {
      wake = resolve
    })
    let hold = (): void => undefined
    const holds = new Promise<void>((resolve) => {
      hold = resolve
    })
    const stands = standing.transaction('BEGIN', async (ask) => {
      await ask('SELECT version FROM cluster_state FOR UPDATE')
      hold()
      await asleep
      await ask('UPDATE cluster_state SET version = 77')
    })
    await holds
    const given = { list: 'blocks', key: `id:${some().key}`, body: '{}', rank: 0, isInitial: false } as const
    await new PostgresEntries(sessions, 'one').push([{ ...given, token: randomUUID() }])
    wake()
    await t.rejects(stands, 'what it does when it wakes up is void')
    t.equal((await new PostgresEntries(sessions, 'one').head(0)).version, 1)
    await Promise.all([standing.close(), sessions.close()])
  })
})

t.test('heartbeats, and what the doctor finds', { skip }, async (t) => {
  await withServer(t, async ({ url }) => {
    const one = await clusterMachine(t, url, 'one', often)
    const other = await clusterMachine(t, url, 'other', often)
    one.thread.onMessage?.({ urls: { gateway: 'http://10.0.0.1:3000' } })
    const sessions = new PostgresSessions(url, 1, 5000)
    t.teardown(() => sessions.close())
    const facts = () => clusterFacts(sessions, systemClock)
    await eventually('both are there', async () => {
      const { machines = [] } = (await facts()) ?? {}
      return machines.length === 2 && machines[0]?.urls.gateway === 'http://10.0.0.1:3000'
    })
    const well = await facts()
    t.notOk(well && findingsOf(well).some(({ level }) => level === 'fault'))
    await other.close()
    t.strictSame((await facts())?.machines.map(presenceOf), ['there', 'stopped'])
    await queried(
      url,
      "UPDATE cluster_machines SET ended = false, seen_at = seen_at - interval '5 minutes' WHERE node = 'other'",
    )
    const lost = await facts()
    t.ok(
      lost &&
        findingsOf(lost).some(
          ({ level, text }) => level === 'fault' && /^other was last seen 5 min ago/.test(text),
        ),
    )
  })
})

t.test(
  'a release works with one step of the tables more than it knows, and steps are taken back',
  { skip },
  async (t) => {
    await withServer(t, async ({ url }) => {
      const sessions = new PostgresSessions(url, 2, 5000)
      t.teardown(() => sessions.close())
      const next: ClusterMigration = {
        forward: 'ALTER TABLE cluster_entries ADD COLUMN later text',
        back: 'ALTER TABLE cluster_entries DROP COLUMN later',
      }
      const [newer, newest] = [
        [...clusterMigrations, next],
        [...clusterMigrations, next, { forward: 'SELECT 1', back: 'SELECT 1' }],
      ]
      const one = await clusterMachine(t, url, 'one', often)
      await migrateCluster(sessions, newer)
      const other = await clusterMachine(t, url, 'other', often)
      const [subject, later] = [some(), some()]
      block(one, subject)
      await settledAmong([one, other], url)
      t.ok(isBlocked(other, subject), 'both releases share')
      await migrateCluster(sessions, newest)
      await t.rejects(clusterMachine(t, url, 'old', often), UnknownSchema)
      t.equal(await takeStepBack(sessions), undefined, 'a step of a newer release is not known here')
      t.equal(await takeStepBack(sessions, newest), clusterMigrations.length + 1)
      t.equal(await takeStepBack(sessions, newest), clusterMigrations.length)
      block(other, later)
      await settledAmong([one, other], url)
      t.ok(isBlocked(one, later))
      await Promise.all([one.close(), other.close()])
      for (let left = clusterMigrations.length - 1; left >= 0; left -= 1)
        t.equal(await takeStepBack(sessions), left)
      t.equal(await schemaSteps(sessions), 0)
      await migrateCluster(sessions)
      t.equal(await schemaSteps(sessions), clusterMigrations.length)
    })
  },
)
