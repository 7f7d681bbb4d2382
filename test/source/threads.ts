import { rm } from 'node:fs/promises'
import type { Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { addressOf } from '../../src/actor/mailbox-address.js'
import { startThread } from '../../src/actor/thread.js'
import { Generations } from '../../src/catalog/generations.js'
import { LmdbCatalog } from '../../src/catalog/reader.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { ProgressReader, ProgressTable } from '../../src/source/reading/progress-table.js'
import { TransferClient } from '../../src/source/reading/transfer-client.js'
import type { SourceProgress, SourceReply, SourceRequest } from '../../src/source/source-messages.js'
import { SegmentMarks, type SharedSegments } from '../../src/store/segments/segment-marks.js'
import { SegmentReader } from '../../src/store/segments/segment-reader.js'
import { folders } from '../../src/threads/folders.js'
import type { SourceGiven } from '../../src/threads/source/source-given.js'
import { settingsOf } from '../../src/threads/thread-settings.js'
import { scratch } from '../scratch.js'
import { threadSettings } from '../thread-settings.js'

export interface Threads {
  readonly path: string
  readonly catalog: LmdbCatalog
  readonly transfers: TransferClient
  stop(): Promise<void>
}

/** The threads of the catalog and the sources as the program starts them, with one reader on this thread. */
export async function threads(
  t: Test,
  given: {
    readonly gateways: readonly string[]
    readonly nodes: readonly string[]
    readonly environment?: Readonly<Record<string, string>>
    /** Absent: every payload has a file of its own. */
    readonly segments?: SharedSegments
  },
): Promise<Threads> {
  const path = scratch('threads')
  const { config, memory } = threadSettings(path, {
    ON_DEMAND_RETRIEVAL_ORDER: 'trusted-gateways,ar-io-network,chunks-offset-aware,tx-data',
    ...given.environment,
  })
  const { catalog: catalogPath } = folders(config)
  const { generations, progress, filter } = memory
  const keeperData = { keeper: { path: catalogPath, touchEveryMs: 0 }, generations, logLevel: 'silent' }
  const keeper = await startThread('catalog', 'catalog', keeperData)
  new BlockFilter(filter).fill()
  const { segments: _, ...shared } = memory
  const { segments } = given
  const source = await startThread('source', 'source', {
    settings: settingsOf(config, 'source'),
    memory: segments === undefined ? shared : { ...shared, segments },
    nodes: given.nodes,
    gateways: given.gateways.map((url) => ({ url, priority: 1, trusted: true })),
    ports: { catalog: keeper.connect() },
    hasUploads: false,
  } satisfies SourceGiven)
  const progressReader = new ProgressReader(new ProgressTable(progress))
  const port = source.connect()
  const address = addressOf<SourceRequest, SourceReply, SourceProgress>(port, 1024, {
    hear: progressReader.hear,
  })
  const catalog = new LmdbCatalog(catalogPath, new Generations(generations))
  const reader =
    segments &&
    new SegmentReader(segments.folder, new SegmentMarks(segments.memory, segments.shape), systemClock)
  let stopped = false
  const stop = async (): Promise<void> => {
    if (stopped) return
    stopped = true
    await source.stop(60_000)
    t.equal(await source.gone, 0, 'the source thread left by itself')
    await catalog.close()
    await reader?.close()
    await keeper.stop(60_000)
    t.equal(await keeper.gone, 0, 'the catalog thread left by itself')
    await rm(path, { recursive: true, force: true })
  }
  t.teardown(stop)
  return {
    path,
    catalog,
    transfers: new TransferClient(address, progressReader, systemClock, catalog, reader),
    stop,
  }
}
