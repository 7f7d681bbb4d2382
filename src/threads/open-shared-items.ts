import { systemClock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { PostgresItems } from '../cluster/postgres-items.js'
import type { FreePools } from '../upload/records/free-pools.js'
import type { Settings } from './thread-settings.js'

/**
 * What all machines of the cluster that the settings name have accepted; undefined: there is none, or this is a sandbox, where
 * items are uploaded again when they are gone. The client of the database is loaded only where there is one.
 */
export async function openSharedItems(
  { cluster: { databaseUrl }, uploads: { sandbox } }: Settings<'cluster' | 'uploads'>,
  pools: Pick<FreePools, 'store'>,
  log: Log,
): Promise<PostgresItems | undefined> {
  if (databaseUrl === undefined || sandbox) return undefined
  const { PostgresItems } = await import('../cluster/postgres-items.js')
  return new PostgresItems({ databaseUrl, store: pools.store(), clock: systemClock, log })
}
