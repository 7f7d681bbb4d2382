import { systemClock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { PostgresFree, PostgresFreeOptions } from '../../cluster/postgres-free.js'
import type { FreePools } from '../../upload/records/free-pools.js'
import type { Settings } from '../thread-settings.js'

/**
 * Lets free bytes count once for all machines of the cluster that the settings name; undefined: there is none. The client of the
 * database is loaded only where there is one.
 */
export async function openSharedFree(
  { cluster: { databaseUrl } }: Settings<'cluster'>,
  pools: FreePools,
  log: Log,
  mode: Pick<PostgresFreeOptions, 'isReading'> = {},
): Promise<PostgresFree | undefined> {
  if (databaseUrl === undefined) return undefined
  const { PostgresFree } = await import('../../cluster/postgres-free.js')
  const free = new PostgresFree({
    databaseUrl,
    store: pools.store(),
    own: pools,
    clock: systemClock,
    log,
    ...mode,
  })
  pools.shareWith(free)
  return free
}
