import { systemClock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { PostgresItems } from '../../cluster/postgres-items.js'
import { sha256 } from '../../proof/digest.js'
import { nodeName } from '../open-objects.js'
import type { Settings } from '../thread-settings.js'

/**
 * What all machines of the cluster that the settings name have accepted; undefined: there is none, or this is a sandbox, where
 * items are uploaded again when they are gone. The client of the database is loaded only where there is one.
 */
export async function openSharedItems(
  settings: Settings<'cluster' | 'contentStore' | 'uploads'>,
  log: Log,
): Promise<PostgresItems | undefined> {
  const { databaseUrl } = settings.cluster
  if (databaseUrl === undefined || settings.uploads.sandbox) return undefined
  const { PostgresItems } = await import('../../cluster/postgres-items.js')
  return new PostgresItems({ databaseUrl, store: storeOf(nodeName(settings)), clock: systemClock, log })
}

/** A UUID for a machine's name. Who comes under the name with an empty disk takes again what the disk before it had accepted. */
function storeOf(name: string): string {
  const text = Buffer.from(sha256(Buffer.from(name))).toString('hex')
  return [
    [0, 8],
    [8, 12],
    [12, 16],
    [16, 20],
    [20, 32],
  ]
    .map(([from, to]) => text.slice(from, to))
    .join('-')
}
