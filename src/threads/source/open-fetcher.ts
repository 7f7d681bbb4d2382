import { systemClock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Address } from '../../actor/mailbox-address.js'
import type { Meters } from '../../actor/meter.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import type { LmdbCatalog } from '../../catalog/reader.js'
import { fetchMeters } from '../../source/fetch-meters.js'
import { BlobCache, type Kept, type KeptNotes } from '../../source/keeping/blob-cache.js'
import { ManifestCache, type ManifestOptions } from '../../source/keeping/manifest-cache.js'
import type { ManifestPacker } from '../../source/keeping/manifest-packer.js'
import type { SmallContent } from '../../source/keeping/small-content.js'
import type { BlobProver } from '../../source/proving/prover.js'
import { Soundness } from '../../source/proving/soundness.js'
import { StoredItems } from '../../source/proving/stored-items.js'
import type { ProgressTable } from '../../source/reading/progress-table.js'
import type { BlobRoots } from '../../source/roots/blob-roots.js'
import type { Source } from '../../source/source.js'
import { AvoidedOrigins } from '../../source/transfer/avoided-origins.js'
import { Fetcher, type FetcherOptions } from '../../source/transfer/fetcher.js'
import { Suspects } from '../../source/transfer/suspects.js'
import type { FetchOptions, Forbidden } from '../../source/transfer/transfer-parts.js'
import { BlobStore } from '../../store/blobs.js'
import { SoundFiles } from '../../store/sound-files.js'

/** What transfers are made with. */
export interface FetcherGiven {
  /** Requested where content is not in the store. */
  readonly source: Source
  readonly progress: ProgressTable
  readonly store: BlobStore
  /** Absent: every payload has a file of its own. */
  readonly small?: SmallContent['blobs'] | undefined
  readonly catalog: LmdbCatalog
  readonly keeper: Address<CatalogRequest, CatalogReply>
  /** Opens bundles of the store. */
  readonly roots: BlobRoots
  readonly prover: BlobProver
  readonly packer: ManifestPacker
  /** Folder of the packed manifests. */
  readonly manifestsPath: string
  readonly manifests: ManifestOptions
  /** Which blobs were hashed. Absent: this thread alone knows. */
  readonly sound?: SoundFiles
  /** Absent: nothing is forbidden. */
  readonly forbidden?: Forbidden
  readonly meters: Meters
  readonly log: Log
  readonly fetch: FetchOptions
  readonly rules: Omit<FetcherOptions, 'manifests' | 'storedItems'>
  /** Hears of every payload after it counts as cached. */
  readonly onKept: (kept: Kept) => void
  /** And before. */
  readonly notes?: KeptNotes | undefined
}

export interface OpenedFetcher {
  readonly fetcher: Fetcher
  readonly blobCache: BlobCache
  readonly soundness: Soundness
  readonly manifests: ManifestCache
}

/** The fetcher, with all that keeps and checks what it brings. */
export async function openFetcher(parts: FetcherGiven): Promise<OpenedFetcher> {
  const { store, small, catalog, keeper, roots, prover, log, onKept } = parts
  const manifests = new ManifestCache(new BlobStore(parts.manifestsPath), parts.packer, log, parts.manifests)
  await manifests.prepare()
  const blobCache = new BlobCache({
    store,
    keeper,
    clock: systemClock,
    log,
    small,
    notes: parts.notes,
    onKept(kept, identity) {
      if (identity !== undefined) soundness.believe(kept.digest, identity)
      onKept(kept)
    },
    onDropped: (digest) => manifests.drop(digest),
  })
  const sound = parts.sound ?? new SoundFiles()
  const soundness = new Soundness(store, prover, blobCache, catalog, keeper, log, sound, small)
  const fetcher = new Fetcher(
    parts.progress,
    {
      source: parts.source,
      store,
      ...(small === undefined ? {} : { small }),
      catalog,
      keeper,
      blobCache,
      avoided: new AvoidedOrigins(systemClock),
      suspects: new Suspects(),
      ...(parts.forbidden === undefined ? {} : { forbidden: parts.forbidden }),
      meters: fetchMeters(parts.meters),
      log,
      options: parts.fetch,
    },
    soundness,
    {
      ...parts.rules,
      manifests,
      storedItems: new StoredItems({ catalog, store, roots, prover, soundness, keeper, log }),
    },
  )
  return { fetcher, blobCache, soundness, manifests }
}
