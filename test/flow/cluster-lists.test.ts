/** Two whole gateways on one PostgreSQL: what is blocked or named at one counts at the other; one is killed; the commands. */
import { randomBytes } from 'node:crypto'
import { get } from 'node:http'
import t from 'tap'
import { idOfBytes } from '../../src/format/id.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { eventually } from '../eventually.js'
import { type Running, run, seeded, sluice } from './running.js'

const adminKey = 'a-key-of-tests'

async function block({ urls }: Running, id: string): Promise<number> {
  const { status } = await fetch(`${urls.gateway}/gateway/admin/block-data`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id, notes: 'order 12/26', source: 'court' }),
  })
  return status
}

const statusOf = async ({ urls }: Running, path: string): Promise<number> =>
  (await fetch(`${urls.gateway}/${path}`)).status

/** Of a request by name. */
function namedStatus({ urls }: Running, name: string): Promise<number | undefined> {
  const { port } = new URL(urls.gateway ?? '')
  return new Promise((resolve, reject) => {
    get({ port, path: '/', headers: { host: `${name}.localhost:${port}` } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    }).on('error', reject)
  })
}

t.test(
  'two gateways on one database',
  { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false },
  async (t) => {
    const server = await startPostgres()
    t.teardown(() => server.stop())
    const folders = t.testdir({ one: {}, two: {} })
    const settings = { CLUSTER_DATABASE_URL: server.url, ADMIN_API_KEY: adminKey }
    const named = (name: string): Record<string, string> => ({ ...settings, CLUSTER_NODE: name })
    const [one, two] = await Promise.all([
      run(t, `${folders}/one`, { ...named('one'), ...seeded }),
      run(t, `${folders}/two`, { ...named('two'), SERVICES: 'gateway' }),
    ])
    const id = idOfBytes(randomBytes(32))
    const shown = Object.values(one.examples)[0] ?? ''
    const commands = { ...named('one'), DATA_PATH: `${folders}/one` }

    await t.test('a takedown and a name', async (t) => {
      t.equal(await statusOf(one, shown), 200)
      t.equal(await block(two, shown), 200)
      t.equal(await block(one, id), 200)
      await eventually('each has what the other has blocked', async () => {
        return (await statusOf(two, id)) === 451 && (await statusOf(one, shown)) === 451
      })
      const set = await sluice(['names', 'set', 'shared', id], commands)
      t.equal(set.code, 0, set.err)
      await eventually('the name of the other is known, and what it means is blocked', async () => {
        return (await namedStatus(two, 'shared')) === 451
      })
    })

    await t.test('status and doctor', async (t) => {
      const status = await eventually('both have stated where they answer', async () => {
        const { out } = await sluice(['cluster', 'status', '--json'], commands)
        const { machines } = JSON.parse(out) as {
          machines: { node: string; presence: string; urls: object }[]
        }
        return machines.every(({ urls }) => 'gateway' in urls) ? machines : undefined
      })
      t.strictSame(
        status.map(({ node, presence }) => [node, presence]),
        [
          ['one', 'there'],
          ['two', 'there'],
        ],
      )
      const lines = await sluice(['cluster', 'status'], commands)
      t.match(lines.out, /^one {2}there {2}\S+ {2}gateway/m)
      const doctor = await sluice(['cluster', 'doctor'], commands)
      t.equal(doctor.code, 0, doctor.out)
      t.equal((await sluice(['cluster', 'leave'], commands)).code, 1, 'not while it runs')
      t.equal((await sluice(['cluster', 'status'], { ...commands, CLUSTER_DATABASE_URL: '' })).code, 2)
      const gone = { ...commands, CLUSTER_DATABASE_URL: 'postgres://sluice@127.0.0.1:1/none' }
      t.equal((await sluice(['cluster', 'doctor'], gone)).code, 5)
      const empty = { ...commands, CLUSTER_DATABASE_URL: await server.database('empty') }
      t.equal((await sluice(['cluster', 'status'], empty)).code, 3)
      t.equal((await sluice(['cluster'], commands)).code, 2)
    })

    await t.test('one that is killed has the lists again when it starts, and can leave', async (t) => {
      await two.kill()
      const late = idOfBytes(randomBytes(32))
      t.equal(await block(one, late), 200)
      const again = await run(t, `${folders}/two`, { ...named('two'), SERVICES: 'gateway' })
      t.equal(await statusOf(again, late), 451, 'from its first answer')
      t.equal(await again.stop(), 0)
      const left = { ...named('two'), DATA_PATH: `${folders}/two` }
      t.equal((await sluice(['cluster', 'leave'], left)).code, 0)
      t.equal((await sluice(['cluster', 'leave'], left)).code, 3)
    })
  },
)
