import { systemClock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { LmdbCatalog } from '../catalog/reader.js'
import type { Id } from '../format/id.js'
import { isRefusal } from '../format/refusal.js'
import { GuardedObjects, guardDefaults } from '../source/objects/guarded-objects.js'
import { CredentialsFile } from '../source/objects/s3-credentials.js'
import { S3Objects } from '../source/objects/s3-objects.js'
import type { S3Credentials } from '../source/objects/s3-requests.js'
import type { Source } from '../source/source.js'
import type { SourceReply, TierRequest } from '../source/source-messages.js'
import { ContentTier } from '../source/tier/content-tier.js'
import { hedged } from '../source/tier/hedged-source.js'
import { tierMeters } from '../source/tier/tier-meters.js'
import { inOrder } from '../source/upstream/in-order.js'
import type { BlobStore } from '../store/blobs.js'
import { openEnvironment } from '../store/lmdb.js'
import { folders } from './folders.js'
import type { Settings } from './thread-settings.js'

export interface TierParts {
  readonly catalog: LmdbCatalog
  readonly store: BlobStore
  readonly log: Log
  readonly meters: Meters
  readonly isForbidden: (id: Id, digest: Uint8Array) => boolean
  readonly hasRoom: () => boolean
}

/** Sockets to the store, and the longest silence of a body. */
const [connectionsMax, stallMaxMs] = [96, 10_000] as const

/** Content in an object store below the disk, where the settings name one. Throws where its credentials cannot be read. */
export function openTier(
  settings: Settings<'contentStore' | 'retrieval' | 'server'>,
  { catalog, store, log, meters, isForbidden, hasRoom }: TierParts,
): ContentTier | undefined {
  const { contentStore, retrieval, server } = settings
  const { kind, region, bucket, prefix, timeoutMs: headMs, keepMinBytes } = contentStore
  if (kind === 'none' || bucket === undefined) return undefined
  const credentials = credentialsOf(settings)
  const endpoint = contentStore.endpoint ?? `https://s3.${region}.amazonaws.com`
  const stallMs = Math.min(retrieval.streamStallMs, stallMaxMs)
  const told = tierMeters(meters)
  const objects = new S3Objects(
    { endpoint, region, bucket, credentials, headMs, stallMs, connectionsMax },
    systemClock,
  )
  return new ContentTier(
    {
      store: new GuardedObjects(objects, guardDefaults, told.store, systemClock),
      environment: openEnvironment(folders(settings).tier),
      catalog,
      blobs: store,
      isForbidden,
      hasRoom,
      meters: told,
      clock: systemClock,
      log,
    },
    { prefix, network: server.network, keepMinBytes },
  )
}

function credentialsOf({ contentStore }: Settings<'contentStore'>): S3Credentials | CredentialsFile {
  const { accessKeyId, secretAccessKey, sessionToken, credentialsPath = '' } = contentStore
  if (accessKeyId === undefined || secretAccessKey === undefined) return new CredentialsFile(credentialsPath)
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) }
}

/** The object store between what is on this machine and the network. */
export function withTier(
  tier: ContentTier | undefined,
  here: Source,
  network: Source,
  hedgeMs: number,
): Source {
  const far = tier === undefined ? network : hedged(tier.source, network, hedgeMs)
  return inOrder(network.name, [here, far])
}

/** Answers what an operator asks of the store. */
export async function answerTier(
  tier: ContentTier | undefined,
  { order }: TierRequest,
): Promise<SourceReply> {
  if (tier === undefined) return { kind: 'store' }
  if (order === 'state') return { kind: 'store', state: tier.state }
  const state = order === 'stop' ? await tier.stopWalk() : tier.walk(order)
  return isRefusal(state) ? { kind: 'refused', refusal: state } : { kind: 'store', state }
}
