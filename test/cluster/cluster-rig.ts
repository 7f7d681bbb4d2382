import { join } from 'node:path'
import { Client } from 'pg'
import type { Test } from 'tap'
import { meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import type { OpenThread } from '../../src/actor/run-thread.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { LocalRegistry } from '../../src/names/local-registry.js'
import { type ClusterGiven, openCluster } from '../../src/threads/open-cluster.js'
import { startRedis } from '../admission/redis-server.js'
import type { Sharer } from '../conformance/shared-list.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

/** A machine: the thread that shares, and the lists as its gateway opens them. */
export interface ClusterMachine extends Sharer {
  readonly folder: string
  readonly thread: OpenThread
  close(): Promise<void>
}

const rows = { source: 0, ingest: 0, swarm: 0, payment: 0, upload: 0, cluster: 0, push: 0, queries: 0 }

export function clusterGiven(
  url: string,
  node: string,
  folder: string,
  more: Partial<ClusterGiven> = {},
): ClusterGiven {
  return {
    databaseUrl: url,
    redisUrl: undefined,
    node,
    services: ['gateway'],
    lists: { moderation: join(folder, 'moderation'), names: join(folder, 'names') },
    memory: { meters: new SharedArrayBuffer(meterBytes(meterTable, 1)), rows },
    logLevel: 'silent',
    ...more,
  }
}

/** Starts a machine; it is closed after the test. */
export async function clusterMachine(
  t: Test,
  url: string,
  node: string,
  more: Partial<ClusterGiven> & { readonly folder?: string } = {},
): Promise<ClusterMachine> {
  const { folder = scratch(`cluster-${node}`), ...given } = more
  const { lists, ...rest } = clusterGiven(url, node, folder, given)
  const [blocks, names] = [new ModerationStore(lists.moderation), new LocalRegistry(lists.names)]
  let isClosed = false
  let thread: OpenThread | undefined
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    await thread?.close()
    await Promise.all([blocks.close(), names.close()])
  }
  t.teardown(close)
  try {
    thread = await openCluster({ ...rest, lists })
  } catch (error) {
    await close()
    throw error
  }
  return { folder, thread, blocks, names, close }
}

/** Resolves when no machine has changes for itself, and all have followed to the same version. */
export async function settledAmong(machines: readonly ClusterMachine[], url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await eventually('all machines have the same lists', async () => {
      const lists = machines.flatMap(({ blocks, names }) => [blocks.unsharedKeys, names.unsharedKeys])
      if (lists.some(({ count }) => count > 0)) return false
      const { rows: states } = await client.query<{ version: string }>('SELECT version FROM cluster_state')
      return lists.every((unsharedKeys) => unsharedKeys.position()?.version === Number(states[0]?.version))
    })
  } finally {
    await client.end()
  }
}

/** Two machines that look often, or hear each other over Redis. */
export async function clusterOfTwo(
  t: Test,
  { url, hasNews = false }: { readonly url: string; readonly hasNews?: boolean },
): Promise<{ one: ClusterMachine; other: ClusterMachine; settled(): Promise<void> }> {
  const redis = hasNews ? await startRedis(scratch('redis')) : undefined
  if (redis !== undefined) t.teardown(() => redis.stop())
  const more =
    redis === undefined ? { everyMs: 50 } : { everyMs: 600_000, redisUrl: `redis://127.0.0.1:${redis.port}` }
  const one = await clusterMachine(t, url, 'one', more)
  const other = await clusterMachine(t, url, 'other', more)
  return { one, other, settled: () => settledAmong([one, other], url) }
}
