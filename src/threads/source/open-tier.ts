import { systemClock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Meters } from '../../actor/meter.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import type { Id } from '../../format/id.js'
import { isRefusal } from '../../format/refusal.js'
import { GuardedObjects, guardDefaults } from '../../source/objects/guarded-objects.js'
import type { SourceReply, TierRequest } from '../../source/source-messages.js'
import { ContentTier } from '../../source/tier/content-tier.js'
import { tierMeters } from '../../source/tier/tier-meters.js'
import type { BlobStore } from '../../store/blobs.js'
import { openEnvironment } from '../../store/lmdb.js'
import { folders } from '../folders.js'
import { openObjects } from '../open-objects.js'
import type { Settings } from '../thread-settings.js'

export interface TierParts {
  readonly catalog: LmdbCatalog
  readonly store: BlobStore
  readonly log: Log
  readonly meters: Meters
  readonly isForbidden: (id: Id, digest: Uint8Array) => boolean
  readonly hasRoom: () => boolean
}

/** Content in an object store below the disk, where the settings name one. Throws where its credentials cannot be read. */
export function openTier(
  settings: Settings<'contentStore' | 'retrieval' | 'server'>,
  { catalog, store, log, meters, isForbidden, hasRoom }: TierParts,
): ContentTier | undefined {
  const { prefix, keepMinBytes, dailyMaxBytes: dailyBytes, maxBytes } = settings.contentStore
  const { network } = settings.server
  const objects = openObjects(settings)
  if (objects === undefined) return undefined
  const counted = tierMeters(meters)
  return new ContentTier(
    {
      store: new GuardedObjects(objects, guardDefaults, counted.store, systemClock),
      environment: openEnvironment(folders(settings).tier),
      catalog,
      blobs: store,
      isForbidden,
      hasRoom,
      meters: counted,
      clock: systemClock,
      log,
    },
    { prefix, network, keepMinBytes, budget: { dailyBytes, maxBytes } },
  )
}

/** Answers what an operator asks of the store. */
export async function answerTier(
  tier: ContentTier | undefined,
  { order }: TierRequest,
): Promise<SourceReply> {
  if (tier === undefined) return { kind: 'object-store' }
  if (order === 'state') return { kind: 'object-store', state: tier.state }
  const state = order === 'stop' ? await tier.stopWalk() : tier.walk(order)
  return isRefusal(state) ? { kind: 'refused', refusal: state } : { kind: 'object-store', state }
}
