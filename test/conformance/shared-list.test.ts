import t from 'tap'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { LocalRegistry } from '../../src/names/local-registry.js'
import { hasRedis } from '../admission/redis-server.js'
import { clusterOfTwo } from '../cluster/cluster-rig.js'
import { postgresFolder, startPostgres } from '../engines/postgres-server.js'
import { conformSharedList } from './shared-list.js'

t.test('two programs on one disk', async (t) => {
  const path = t.testdir()
  const opened = (): { blocks: ModerationStore; names: LocalRegistry } => ({
    blocks: new ModerationStore(`${path}/moderation`),
    names: new LocalRegistry(`${path}/names`),
  })
  const [one, other] = [opened(), opened()]
  await conformSharedList(t, async () => ({ one, other, settled: async () => undefined }))
  for (const { blocks, names } of [one, other]) {
    await blocks.close()
    await names.close()
  }
})

t.test(
  'two machines and PostgreSQL',
  { skip: postgresFolder === undefined ? 'no PostgreSQL here' : false },
  async (t) => {
    const server = await startPostgres()
    t.teardown(() => server.stop())
    await conformSharedList(t, () => clusterOfTwo(t, { url: server.url }))
  },
)

t.test(
  'two machines, PostgreSQL and Redis',
  { skip: postgresFolder === undefined || !hasRedis ? 'no PostgreSQL or no Redis here' : false },
  async (t) => {
    const server = await startPostgres()
    t.teardown(() => server.stop())
    await conformSharedList(t, () => clusterOfTwo(t, { url: server.url, hasNews: true }))
  },
)
