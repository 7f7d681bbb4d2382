import { join } from 'node:path'
import t from 'tap'
import { FreePools } from '../../src/upload/records/free-pools.js'
import { openUploadTables } from '../../src/upload/records/uploads.js'
import { freeMachine } from '../cluster/free-rig.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { conformFreeBytes, freeRulesOfTests } from './free-bytes.js'

t.test('one machine', async (t) => {
  const environment = openUploadTables(join(t.testdir(), 'uploads'))
  const pools = new FreePools(environment, freeRulesOfTests)
  await conformFreeBytes(t, async () => ({
    one: pools,
    other: pools,
    keep: (_, taken) => environment.write(() => pools.record(taken)),
  }))
  await environment.close()
})

t.test(
  'two machines and PostgreSQL',
  { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false },
  async (t) => {
    const server = await startPostgres()
    t.teardown(() => server.stop())
    const [one, other] = [await freeMachine(t, server.url), await freeMachine(t, server.url)]
    await conformFreeBytes(t, async () => ({
      one: one.pools,
      other: other.pools,
      keep: (pools, taken) => (pools === one.pools ? one : other).keep(taken),
    }))
  },
)
