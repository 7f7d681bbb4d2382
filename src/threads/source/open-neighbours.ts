import { systemClock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Meter, Meters } from '../../actor/meter.js'
import { GuardedObjects, guardDefaults } from '../../source/objects/guarded-objects.js'
import type { Source } from '../../source/source.js'
import { tierMeters } from '../../source/tier/tier-meters.js'
import type { ReadOutcome } from '../../source/tier/tier-source.js'
import { openEnvironment } from '../../store/lmdb.js'
import { NeighbourFollower } from '../../upload/stored/neighbour-follower.js'
import { NeighbourRecords } from '../../upload/stored/neighbour-records.js'
import { NeighbourSource } from '../../upload/stored/neighbour-source.js'
import { RecentObjects } from '../../upload/stored/recent-objects.js'
import { StoredKeys } from '../../upload/stored/stored-keys.js'
import { folders } from '../folders.js'
import { nodeName, openObjects } from '../open-objects.js'
import type { Settings } from '../thread-settings.js'

export interface Neighbours {
  readonly source: Source
  close(): Promise<void>
}

const outcomes: readonly ReadOutcome[] = ['packed', 'object', 'absent', 'forged', 'failed']
const countMs = 5000

/** Uploads that other machines keep in the object store; undefined: there is none. Throws where credentials cannot be read. */
export function openNeighbours(
  settings: Settings<'cluster' | 'contentStore' | 'retrieval' | 'server'>,
  meters: Meters,
  log: Log,
): Neighbours | undefined {
  const objects = openObjects(settings)
  if (objects === undefined) return undefined
  const store = new GuardedObjects(objects, guardDefaults, tierMeters(meters).store, systemClock)
  const environment = openEnvironment(folders(settings).neighbours)
  const keys = new StoredKeys(settings.contentStore.prefix)
  const records = new NeighbourRecords(environment)
  const recent = new RecentObjects(store)
  const node = nodeName(settings)
  const isAlone = settings.cluster.databaseUrl === undefined
  const follower = new NeighbourFollower({
    store,
    recent,
    keys,
    node,
    records,
    isAlone,
    clock: systemClock,
    log,
  })
  const read = new Map<ReadOutcome, Meter>(
    outcomes.map((outcome) => [outcome, meters.of('neighbour_uploads_reads_total', { outcome })]),
  )
  const known = meters.of('neighbour_uploads_known')
  const timer = systemClock.every(countMs, () => known.set(records.count))
  follower.start()
  return {
    source: new NeighbourSource(records, follower, recent, keys, (outcome) => read.get(outcome)?.add(1)),
    async close() {
      timer.cancel()
      await follower.stop()
      await store.close()
      await environment.close()
    },
  }
}
