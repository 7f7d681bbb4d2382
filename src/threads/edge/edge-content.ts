import { systemClock } from '../../actor/clock.js'
import { type Address, addressOf } from '../../actor/mailbox-address.js'
import { BandFinder } from '../../bands/finder.js'
import { rangesUpstream } from '../../bands/ranges.js'
import type { CatalogReply, CatalogRequest } from '../../catalog/catalog-messages.js'
import { Generations } from '../../catalog/generations.js'
import { ChainIndex } from '../../catalog/index-reader.js'
import { IndexedCatalog } from '../../catalog/indexed.js'
import { openCatalogTables } from '../../catalog/tables.js'
import type { GatewayParts } from '../../gateway/gateway-parts.js'
import { Guard } from '../../gateway/guard.js'
import { BlockFilter } from '../../moderation/block-filter.js'
import { FilteredBlockList } from '../../moderation/list.js'
import { ModerationStore } from '../../moderation/moderation-store.js'
import { ProgressReader, ProgressTable } from '../../source/reading/progress-table.js'
import { TransferClient } from '../../source/reading/transfer-client.js'
import type { SourceProgress, SourceReply, SourceRequest } from '../../source/source-messages.js'
import { BlobFiles } from '../../store/blob-files.js'
import { blobPath } from '../../store/blobs.js'
import { MappedFiles } from '../../store/mapped.js'
import { SegmentMarks } from '../../store/segments/segment-marks.js'
import { SegmentReader } from '../../store/segments/segment-reader.js'
import { SoundFiles } from '../../store/sound-files.js'
import { UploadedBundles } from '../../upload/records/uploaded-bundles.js'
import type { EdgeGiven } from '../edge-given.js'
import { folders } from '../folders.js'
import { nearOrigin } from '../host-names.js'
import { bandsReading } from '../index/bands-options.js'
import { uploadFolders } from '../upload-options.js'
import type { EdgeTools } from './edge-tools.js'

/** Everything that an edge thread reads content from. */
export interface EdgeContent {
  /** What of it the gateway takes. */
  readonly parts: Pick<
    GatewayParts,
    'blobs' | 'catalog' | 'finder' | 'guard' | 'keeper' | 'offered' | 'sound'
  > & {
    readonly transfers: TransferClient
  }
  readonly catalog: IndexedCatalog
  readonly index: ChainIndex
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly fetcher: Address<SourceRequest, SourceReply>
  readonly blocks: ModerationStore
  readonly guard: Guard
  readonly finder: BandFinder
  readonly offers: NonNullable<GatewayParts['offered']>['offers']
  /** What the store holds, in files and in segments. */
  usage(): { readonly blobs: number; readonly bytes: number }
  close(): Promise<void>
}

/** Opens the catalog, the store, the block list and the bands for reading, and the lines to those who write them. */
export async function openEdgeContent(given: EdgeGiven, tools: EdgeTools): Promise<EdgeContent> {
  const { settings, memory, ports } = given
  const { log, mailboxMax } = tools
  const places = folders(settings)
  const generations = new Generations(memory.generations)
  const { environment } = openCatalogTables(places.catalog)
  const index = new ChainIndex(environment, generations)
  // One snapshot of LMDB for both: each has its own timer in each turn of the loop.
  const catalog = new IndexedCatalog(places.catalog, generations, index, () => environment)
  const keeper = addressOf<CatalogRequest, CatalogReply>(ports.catalog, mailboxMax)
  const progress = new ProgressReader(new ProgressTable(memory.progress))
  const fetcher = addressOf<SourceRequest, SourceReply, SourceProgress>(ports.source, mailboxMax, {
    hear: progress.hear,
    isBatched: true,
  })
  const store = openStore(given)
  const blocks = new ModerationStore(places.moderation)
  const list = new FilteredBlockList(new BlockFilter(memory.filter), blocks, log)
  const uploaded =
    given.services.upload === undefined ? undefined : new UploadedBundles(uploadFolders(settings).tables)
  const guard = new Guard(list, catalog, settings.answers.blockedMaxAge, (id) => uploaded?.of(id))
  const transfers = new TransferClient(fetcher, progress, systemClock, catalog, store.small)
  const bands = await openBands(settings, transfers, tools)
  const origin = nearOrigin(settings, given.serve.port)
  return {
    parts: {
      catalog,
      keeper,
      transfers,
      guard,
      finder: bands.finder,
      offered: { offers: bands.offers, files: store.files, ...(origin === undefined ? {} : { origin }) },
      blobs: store.blobs,
      sound: new SoundFiles(memory.sound),
    },
    catalog,
    index,
    keeper,
    fetcher,
    blocks,
    guard,
    finder: bands.finder,
    offers: bands.offers,
    usage: () => {
      const { blobs, bytes } = catalog.usage()
      return { blobs, bytes: bytes + (store.small?.marks.fileBytes ?? 0) }
    },
    async close() {
      await store.close()
      await bands.close()
      await catalog.close()
      await blocks.close()
      await uploaded?.close()
    },
  }
}

interface EdgeStore extends Pick<GatewayParts, 'blobs'> {
  readonly files: MappedFiles
  readonly small: SegmentReader | undefined
  close(): Promise<void>
}

/** The blobs on disk, as this thread reads them. */
function openStore({ settings, memory: { segments, descriptors } }: EdgeGiven): EdgeStore {
  const { blobs: folder } = folders(settings)
  const filesMax = descriptors?.filesMax ?? 1024
  // 64 GiB of address space use no memory except page tables for what was read.
  const files = new MappedFiles({ mappedMaxBytes: 64 * 2 ** 30, filesMax, believeMs: 1000 }, systemClock)
  const small =
    segments &&
    new SegmentReader(segments.folder, new SegmentMarks(segments.memory, segments.shape), systemClock)
  const held = new BlobFiles(files, filesMax)
  return {
    files,
    small,
    blobs: {
      path: (digest) => blobPath(folder, digest),
      open: held.open,
      ...(small === undefined ? {} : { segments: small }),
    },
    async close() {
      held.close()
      files.close()
      await small?.close()
    },
  }
}

interface EdgeBands extends Pick<EdgeContent, 'finder' | 'offers'> {
  close(): Promise<void>
}

/** Bands of others, to find items in, and those of this gateway, to give away. */
async function openBands(
  settings: EdgeGiven['settings'],
  content: TransferClient,
  { log, meters }: EdgeTools,
): Promise<EdgeBands> {
  const { finder: finding, remote, http, root, published } = bandsReading(settings)
  const upstream = rangesUpstream(http)
  const lines = { upstream, content, clock: systemClock, options: remote }
  const finder = new BandFinder(finding, lines, log, meters)
  // Read where something is published only, because checking a publication takes zod, 2.7 MB of this thread.
  const offers = published
    ? new (await import('../../bands/band-offer.js')).OfferReader(root, systemClock)
    : { root, current: () => undefined }
  return {
    finder,
    offers,
    async close() {
      finder.close()
      await upstream.destroy()
    },
  }
}
