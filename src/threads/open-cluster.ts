import { join } from 'node:path'
import { systemClock } from '../actor/clock.js'
import { createLog } from '../actor/log.js'
import { answer } from '../actor/mailbox-address.js'
import { Meters } from '../actor/meter.js'
import { meterTable } from '../actor/meter-table.js'
import type { OpenThread } from '../actor/run-thread.js'
import { programVersion } from '../actor/version.js'
import { clusterShown } from '../cluster/cluster-doctor.js'
import { ClusterMember, type MemberOptions } from '../cluster/cluster-member.js'
import { Drain } from '../cluster/drain.js'
import type { IndexWork } from '../cluster/machines.js'
import { sharedBlocks, sharedNames } from '../cluster/shared-sides.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import { ModerationStore } from '../moderation/moderation-store.js'
import { LocalRegistry } from '../names/local-registry.js'
import type { ClusterReply, ClusterRequest } from '../routes/admin/cluster-order.js'
import { hearWrites } from '../store/file-changes.js'
import type { SharedMemory } from './shared-memory.js'

/** What `workers/cluster.ts` is started with (plain, cloned). */
export interface ClusterGiven extends Pick<MemberOptions, 'everyMs' | 'answerMs' | 'startPatienceMs'> {
  readonly databaseUrl: string
  readonly redisUrl: string | undefined
  /** Name of this machine. */
  readonly node: string
  readonly services: readonly string[]
  /** It may write the index into ClickHouse. */
  readonly pushes?: boolean
  /** Folders of the lists. */
  readonly lists: Readonly<Record<'moderation' | 'names', string>>
  readonly memory: Pick<SharedMemory, 'meters' | 'rows'>
  readonly logLevel: string
}

/** What the supervisor states to the thread: where the services of this machine answer. */
export interface ClusterNotice {
  readonly urls: Readonly<Record<string, string>>
}

/** Changes that the system did not announce are looked for so often. */
const lookMs = 1000

/** This machine in its cluster: up as soon as the lists of the cluster are here. */
export async function openCluster(given: ClusterGiven): Promise<OpenThread> {
  const { lists, memory, logLevel, pushes = false, ...more } = given
  const log = createLog(logLevel, 'cluster')
  const meters = new Meters(meterTable, memory.meters, memory.rows.cluster)
  const [looked, waiting] = [meters.of('cluster_look_seconds'), meters.of('cluster_unshared_changes')]
  const moderation = new ModerationStore(lists.moderation)
  const names = new LocalRegistry(lists.names)
  const sides = [sharedBlocks(moderation, systemClock.now), sharedNames(names)]
  const owed = (): { items: number; bundles: number } => ({
    items: meters.total('upload_items_waiting'),
    bundles: meters.total('upload_bundles'),
  })
  const member = new ClusterMember({
    ...more,
    drain: new Drain(owed, systemClock, log),
    version: programVersion(),
    sides,
    clock: systemClock,
    log,
    ...(pushes && { index: indexWork(meters) }),
    onRound: (isWell, unshared) => {
      if (isWell) looked.set(Math.floor(systemClock.now() / 1000))
      waiting.set(unshared)
    },
  })
  const lookHere = (): void => {
    if (sides.some(({ unsharedCount }) => unsharedCount > 0)) member.look()
  }
  const hearing = [lists.moderation, lists.names].map((path) => hearWrites(join(path, 'data.mdb'), lookHere))
  const close = async (): Promise<void> => {
    for (const one of [...hearing, timer]) one.cancel()
    await member.close()
    await Promise.all([moderation.close(), names.close()])
  }
  const timer = systemClock.every(lookMs, lookHere)
  try {
    await member.start()
  } catch (error) {
    await close()
    throw error
  }
  return {
    log,
    connect: (port) => void answer<ClusterRequest, ClusterReply>(port, () => machinesOf(member)),
    close,
    onMessage: (message) => member.setUrls((message as ClusterNotice).urls),
  }
}

/** What the console shows of all machines. */
async function machinesOf(member: ClusterMember): Promise<ClusterReply | Refusal> {
  const facts = await member.facts()
  if (isRefusal(facts)) return facts
  return { machines: facts && clusterShown(facts) }
}

/** What the thread that writes the index states in its meters. */
function indexWork(meters: Meters): () => IndexWork {
  return () => ({
    leads: meters.total('clickhouse_push_leads') > 0,
    height: meters.total('clickhouse_push_height'),
    lag: meters.total('clickhouse_push_lag_heights'),
  })
}
