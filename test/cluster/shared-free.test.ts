/** Free bytes of several machines while their database is gone, hangs, or has older data, and after kills. */
import { Client } from 'pg'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { FreeUser } from '../../src/upload/records/free-pools.js'
import { type PostgresServer, postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'
import { type FreeMachine, freeMachine } from './free-rig.js'

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false
const wallet: FreeUser = { wallet: 'a wallet', range: undefined }

async function takes(machine: FreeMachine, bytes: number, taker = wallet): Promise<boolean> {
  const taken = await machine.pools.reserve(taker, bytes)
  if (taken !== undefined) machine.keep(taken)
  return taken !== undefined
}

/** What the database counts of a key. */
async function sumOf(url: string, key = 'w:a wallet'): Promise<number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ sum: string | null }>(
    'SELECT sum(used) FROM cluster_free WHERE key = $1',
    [key],
  )
  await client.end()
  return Number(rows[0]?.sum ?? 0)
}

async function withServer(t: Test, act: (server: PostgresServer) => Promise<void>): Promise<void> {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  await act(server)
}

t.test(
  'a database that is gone: free by what each machine knows, and counted when it is back',
  { skip },
  async (t) => {
    await withServer(t, async (server) => {
      const { url } = server
      const more = { restMs: 200 }
      const [one, other] = [await freeMachine(t, url, more), await freeMachine(t, url, more)]
      t.ok(await takes(one, 600))
      t.ok(await takes(other, 100), 'the other knows of the 600')
      await server.stop()
      t.ok(await takes(other, 300))
      t.notOk(await takes(other, 1), 'not more than there was when it last asked')
      t.ok(await takes(one, 400), 'what the other gave is not known')
      await server.start()
      await eventually('both are counted', async () => (await sumOf(url)) === 1400)
      t.notOk(await takes(one, 1))
    })
  },
)

t.test('what is known of others outlives a start without the database', { skip }, async (t) => {
  await withServer(t, async (server) => {
    const { url } = server
    const [one, other] = [await freeMachine(t, url), await freeMachine(t, url)]
    t.ok(await takes(one, 600))
    t.ok(await takes(other, 100))
    await server.stop()
    const { folder } = other
    await other.close()
    const again = await freeMachine(t, url, { folder, isMigrated: true, restMs: 200 })
    t.notOk(await takes(again, 301))
    t.ok(await takes(again, 300))
  })
})

t.test(
  'a database that hangs keeps an uploader for half a second, and the next ones not at all',
  { skip },
  async (t) => {
    await withServer(t, async (server) => {
      const { url } = server
      const one = await freeMachine(t, url, { patienceMs: 400, restMs: 60_000 })
      t.ok(await takes(one, 100))
      server.hang()
      const begun = systemClock.monotonic()
      t.ok(await takes(one, 100))
      const first = systemClock.monotonic() - begun
      t.ok(first >= 390 && first < 2000, `${Math.round(first)} ms`)
      for (let turn = 0; turn < 8; turn += 1) t.ok(await takes(one, 100))
      t.notOk(await takes(one, 1), 'its own count still ends')
      const more = systemClock.monotonic() - begun - first
      t.ok(more < 300, `${Math.round(more)} ms for nine more`)
      server.wake()
    })
  },
)

t.test(
  'a wallet is known to the others by the address of its own network, and listed once',
  { skip },
  async (t) => {
    await withServer(t, async ({ url }) => {
      const [one, other] = [await freeMachine(t, url), await freeMachine(t, url)]
      t.ok(await takes(one, 300, { wallet: 'normalized', name: '0xNative', range: undefined }))
      for (const { pools } of [one, other])
        for (const name of ['0xNative', 'normalized']) {
          await pools.refresh(name)
          t.equal(pools.left(name), 700, name)
        }
      t.strictSame((await one.pools.listed(10)).most, [{ name: 'normalized', bytes: 300 }])
      t.ok(await takes(other, 700, { wallet: 'normalized', name: '0xNative', range: undefined }))
      t.notOk(await takes(one, 1, { wallet: 'normalized', name: '0xNative', range: undefined }))
    })
  },
)

t.test('bytes that were taken and not accepted before a kill are free again', { skip }, async (t) => {
  await withServer(t, async ({ url }) => {
    const one = await freeMachine(t, url)
    t.ok(await takes(one, 200))
    t.ok(await one.pools.reserve(wallet, 700), 'not accepted')
    t.equal(await sumOf(url), 900)
    const { folder } = one
    await one.close(true)
    await freeMachine(t, url, { folder })
    await eventually('the comparison at the start', async () => (await sumOf(url)) === 200)
  })
})

t.test('a database with older data, and a disk that is lost', { skip }, async (t) => {
  await withServer(t, async (server) => {
    const { url } = server
    const one = await freeMachine(t, url)
    const lost = await freeMachine(t, url)
    t.ok(await takes(one, 300))
    t.ok(await takes(lost, 500))
    await lost.close(true)
    t.equal(await sumOf(url), 800)
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query('UPDATE cluster_free SET used = 100 WHERE used = 300')
    await client.end()
    const { folder } = one
    await one.close(true)
    const again = await freeMachine(t, url, { folder })
    await eventually('its own count is right again', async () => (await sumOf(url)) === 800)
    t.notOk(await takes(again, 201), 'what the lost machine gave still counts')
    t.ok(await takes(again, 200))
  })
})
