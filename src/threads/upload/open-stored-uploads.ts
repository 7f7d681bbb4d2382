import { systemClock } from '../../actor/clock.js'
import type { Meters } from '../../actor/meter.js'
import type { GoneMachines } from '../../cluster/gone-machines.js'
import { deepHash } from '../../proof/deep-hash.js'
import { sha256 } from '../../proof/digest.js'
import { GuardedObjects, guardDefaults } from '../../source/objects/guarded-objects.js'
import { TierKeys } from '../../source/tier/tier-keys.js'
import { tierMeters } from '../../source/tier/tier-meters.js'
import { takeUpBrought } from '../../upload/intake/open-intake.js'
import type { Signing } from '../../upload/intake/signing.js'
import type { AcceptedItem } from '../../upload/records/uploads.js'
import { StoredKeys } from '../../upload/stored/stored-keys.js'
import { StoredUploads, type StoredUploadsParts } from '../../upload/stored/stored-uploads.js'
import { nodeName, openObjects } from '../open-objects.js'
import type { Settings } from '../thread-settings.js'
import { durabilityOf } from '../upload-options.js'
import type { UploadGiven } from './upload-given.js'
import type { UploadRecords, UploadTools } from './upload-records.js'

/** Groups under way, as `StoredGroups` has them, and what may take long. */
const [groupsMax, slowMax] = [4, 4] as const

/** An uploader waits for the store: one that is slower is as good as none. */
const sentBytesPerSecondMin = 1024 * 1024

/** A machine that is gone has a tenth of the time in which it was missed to answer by the store: within these bounds. */
const [answerMinMs, answerMaxMs] = [15_000, 60_000] as const

/** What the wallet signs for the key that seals groups: no receipt and no transaction has these words. */
const sealWords = ['sluice', 'seal of stored uploads', '1']

/** What is heard of uploads in the object store. */
export interface StoredNews {
  /** Items that were brought back, or taken over. */
  readonly onBrought: (items: readonly AcceptedItem[]) => void
  readonly leaveSales: StoredUploadsParts['leaveSales']
  /** All that the store had of this machine was brought back. */
  readonly onRecovered: () => void
}

/**
 * Accepted uploads in the object store that the settings name; undefined: there is none. Throws where the credentials cannot be
 * read.
 */
export function openStoredUploads(
  { settings }: Pick<UploadGiven, 'settings'>,
  { meters, log: logger, bundler }: UploadTools,
  { uploads, itemLog, storing, entering }: UploadRecords,
  signing: Pick<Signing, 'receipt'>,
  { onBrought, onRecovered, leaveSales }: StoredNews,
): StoredUploads | undefined {
  const objects = openObjects(settings, { sentBytesPerSecondMin })
  if (objects === undefined || storing === undefined) return undefined
  const counted = tierMeters(meters).store
  const { prefix } = settings.contentStore
  const guarded = (writesMax: number): GuardedObjects =>
    new GuardedObjects(objects, { ...guardDefaults, writesMax }, counted, systemClock)
  const { isOnDisk, isStored } = durabilityOf(settings)
  const takeover = takeoverOf(settings, meters)
  return new StoredUploads(
    {
      store: guarded(groupsMax),
      slowStore: guarded(slowMax),
      keys: new StoredKeys(prefix),
      tierKeys: new TierKeys(prefix),
      network: settings.server.network,
      node: nodeName(settings),
      uploads,
      itemLog,
      seen: storing.seen,
      unstored: storing.unstored,
      secret: async () => {
        const message = deepHash(sealWords.map((word) => Buffer.from(word)))
        return sha256(await signing.receipt(message, 'paid'))
      },
      onRecovered,
      leaveSales,
      takeUp: (items) => onBrought(takeUpBrought(items, itemLog, entering)),
      betweenRounds: bundler.betweenRounds,
      ...(takeover === undefined ? {} : { takeover }),
      count: countOf(meters),
      clock: systemClock,
      logger,
    },
    { isWanted: isStored, isOnDisk },
  )
}

/** How this machine learns which other ones are gone; undefined: it has no cluster. */
function takeoverOf({ cluster }: Settings<'cluster'>, meters: Meters): StoredUploadsParts['takeover'] {
  const { databaseUrl, takeoverSeconds } = cluster
  if (databaseUrl === undefined) return undefined
  const answerMs = Math.min(Math.max(takeoverSeconds * 100, answerMinMs), answerMaxMs)
  const count = meters.of('upload_taken_over_items_total')
  // The client of the database is loaded only where there is one.
  let opened: Promise<GoneMachines> | undefined
  const machines = (): Promise<GoneMachines> => {
    opened ??= import('../../cluster/gone-machines.js').then(
      (room) => new room.GoneMachines(databaseUrl, takeoverSeconds),
    )
    return opened
  }
  return {
    // A machine that takes nothing over still answers those that do.
    gone: async () => (takeoverSeconds === 0 ? [] : (await machines()).look()),
    onAdopted: (items) => count.add(items),
    answerMs,
    close: async () => (await opened)?.close(),
  }
}

function countOf(meters: Meters): (outcome: 'put' | 'failed', items: number) => void {
  const [items, objects] = ['upload_stored_items_total', 'upload_stored_objects_total'].map((name) => ({
    put: meters.of(name, { outcome: 'put' }),
    failed: meters.of(name, { outcome: 'failed' }),
  }))
  return (outcome, count) => {
    items?.[outcome].add(count)
    objects?.[outcome].add(1)
  }
}
