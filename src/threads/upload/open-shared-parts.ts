import { randomUUID } from 'node:crypto'
import { systemClock, type Timer, withinTime } from '../../actor/clock.js'
import { EngineAway } from '../../cluster/engine-away.js'
import { deepHash } from '../../proof/deep-hash.js'
import { sha256 } from '../../proof/digest.js'
import { GuardedObjects, guardDefaults } from '../../source/objects/guarded-objects.js'
import { tierMeters } from '../../source/tier/tier-meters.js'
import type { Signing } from '../../upload/intake/signing.js'
import type { PartRecords } from '../../upload/parts/part-records.js'
import type { PartStore } from '../../upload/parts/part-store.js'
import { openObjects } from '../open-objects.js'
import { uploadFolders } from '../upload-options.js'
import type { UploadGiven } from './upload-given.js'
import type { UploadTools } from './upload-records.js'

/** Parts on their way into the store at once. */
const writesMax = 16
/** An uploader waits for the store: one that is slower is as good as none. */
const sentBytesPerSecondMin = 1024 * 1024
const answerMs = 3000
const cleanEveryMs = 10 * 60_000
/** What one machine of all does. */
const cleaning = 'uploads'

/** What the wallet signs for the secret of ids: all machines of a wallet have it, and no receipt has these words. */
const secretWords = ['sluice', 'secret of upload ids', '1']

/** Uploads in several requests that any machine of the cluster goes on with. */
export interface SharedParts {
  readonly records: PartRecords
  readonly files: PartStore
  /** Makes ids of uploads out of payments, on all machines the same. */
  readonly secret: Uint8Array
  close(): Promise<void>
}

/**
 * Undefined: the settings name no cluster or no object store, and each machine has its own. The client of the database is loaded
 * only where there is one. Throws where the credentials cannot be read.
 */
export async function openSharedParts(
  { settings }: Pick<UploadGiven, 'settings'>,
  { meters, log }: UploadTools,
  signing: Pick<Signing, 'receipt'>,
): Promise<SharedParts | undefined> {
  const { databaseUrl } = settings.cluster
  const objects = databaseUrl === undefined ? undefined : openObjects(settings, { sentBytesPerSecondMin })
  if (databaseUrl === undefined || objects === undefined) return undefined
  const [{ PostgresUploads }, { PostgresLeads }, { SharedRecords }, { PartObjects }] = await Promise.all([
    import('../../cluster/postgres-uploads.js'),
    import('../../ledger/postgres-leads.js'),
    import('../../upload/parts/shared-records.js'),
    import('../../upload/parts/part-objects.js'),
  ])
  const uploads = new PostgresUploads(databaseUrl, randomUUID(), systemClock)
  const leads = new PostgresLeads(databaseUrl, answerMs, systemClock)
  const isLeading = (): Promise<boolean> => leads.leads(cleaning)
  const records = new SharedRecords(uploads, isLeading, systemClock, log)
  const store = new GuardedObjects(
    objects,
    { ...guardDefaults, writesMax },
    tierMeters(meters).store,
    systemClock,
  )
  const { prefix } = settings.contentStore
  const folder = `${uploadFolders(settings).parts}-arriving`
  const files = new PartObjects({ store, uploads, records, prefix, folder })
  let cleanup: Promise<void> | undefined
  const clean = async (): Promise<void> => {
    try {
      if (await isLeading()) await files.clean()
    } catch (error) {
      if (!(error instanceof EngineAway) && !(error instanceof Error && 'code' in error)) throw error
      log.warn({ reason: error.message }, 'parts that nobody needs could not be removed: later')
    }
  }
  const timer: Timer = systemClock.every(cleanEveryMs, () => {
    cleanup ??= clean().finally(() => {
      cleanup = undefined
    })
  })
  const secret = sha256(await signing.receipt(deepHash(secretWords.map((word) => Buffer.from(word))), 'paid'))
  return {
    records,
    files,
    secret,
    async close() {
      timer.cancel()
      await files.close()
      await cleanup
      await withinTime(systemClock, 1000, leads.close(), undefined)
    },
  }
}
