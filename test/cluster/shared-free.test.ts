/** Free bytes of several machines while their database is gone, hangs, or has older data, and after kills. */
import { Client } from 'pg'
import t, { type Test } from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
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
  'a database that hangs keeps an uploader for a short time, and the next ones not at all',
  { skip },
  async (t) => {
    await withServer(t, async (server) => {
      const { url } = server
      // Patience ends when the test has it end.
      const patienceMs = 400
      const waits: (() => void)[] = []
      const after: Clock['after'] = (ms, act) => {
        if (ms !== patienceMs) return systemClock.after(ms, act)
        waits.push(act)
        return { cancel: () => undefined }
      }
      const clock = { ...systemClock, after }
      const one = await freeMachine(t, url, { patienceMs, restMs: 3_600_000, clock })
      t.ok(await takes(one, 100))
      server.hang()
      const before = waits.length
      const first = takes(one, 100)
      // One time is that of who waits in line, and one that of the call for all of them.
      await eventually('it waits for the database', () => waits.length === before + 2)
      for (const over of waits.slice(before)) over()
      t.ok(await first)
      for (let turn = 0; turn < 8; turn += 1) t.ok(await takes(one, 100))
      t.notOk(await takes(one, 1), 'its own count still ends')
      t.equal(waits.length, before + 2, 'nine more have not waited')
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
