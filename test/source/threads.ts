import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { addressOf } from '../../src/actor/address.js'
import { systemClock } from '../../src/actor/clock.js'
import { meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meters.js'
import { startThread } from '../../src/actor/thread.js'
import { Generations, generationBytes } from '../../src/catalog/generations.js'
import { LmdbCatalog } from '../../src/catalog/reader.js'
import { Sieve } from '../../src/moderation/sieve.js'
import { Opener } from '../../src/source/opener.js'
import { ProgressListener, ProgressTable, progressBytes } from '../../src/source/progress.js'
import type { SourceProgress, SourceReply, SourceRequest } from '../../src/source/protocol.js'
import { type SourceThread, sourceDefaults } from '../../src/source/wiring.js'
import { SegmentMarks } from '../../src/store/segments/marks.js'
import { SegmentReader } from '../../src/store/segments/segment-reader.js'
import { soundBytes } from '../../src/store/sound-files.js'
import { patient } from '../chain/hostile.js'
import { scratch } from '../scratch.js'
import { manifestLimits } from './rig.js'

export interface Threads {
  readonly path: string
  readonly catalog: LmdbCatalog
  readonly opener: Opener
  stop(): Promise<void>
}

/** The threads of the catalog and the sources as the program starts them, with one reader on this thread. */
export async function threads(
  t: Test,
  {
    gateways,
    nodes,
    more = {},
  }: { gateways: readonly string[]; nodes: readonly string[]; more?: Partial<SourceThread> },
): Promise<Threads> {
  const path = scratch('threads')
  const generations = new SharedArrayBuffer(generationBytes)
  const progress = new SharedArrayBuffer(progressBytes(64))
  const catalogPath = join(path, 'catalog')
  const keeperData = { keeper: { path: catalogPath, touchEveryMs: 0 }, generations, logLevel: 'silent' }
  const keeper = await startThread('catalog', 'catalog', keeperData)
  const line = keeper.connect()
  const sieve = new Sieve()
  sieve.fill()
  const data: SourceThread = {
    ...sourceDefaults,
    blobsPath: join(path, 'blobs'),
    manifestsPath: join(path, 'manifests'),
    manifests: { limits: manifestLimits, cacheMaxBytes: 2 ** 30, flightsMax: 64 },
    catalogPath,
    keeper: line,
    generations,
    sound: new SharedArrayBuffer(soundBytes(64)),
    progress,
    meters: new SharedArrayBuffer(meterBytes(meterTable, 1)),
    row: 0,
    order: ['trusted-gateways', 'ar-io-network', 'chunks-offset-aware', 'tx-data'],
    gateways: {
      gateways: gateways.map((url) => ({ url, priority: 1, trusted: true })),
      headMs: 10_000,
      stallMs: 10_000,
      hopsMax: 3,
      ownHosts: [],
      release: 'test',
      connectionsMax: 64,
    },
    ...(nodes.length === 0
      ? {}
      : { chain: { ...patient, nodes, callsMax: 64, waitingMax: 1000, coolMs: 1 } }),
    eviction: { ...sourceDefaults.eviction, maxBytes: 10 ** 10 },
    verifier: { ...sourceDefaults.verifier, retryMs: 20 },
    moderation: { path: join(path, 'moderation'), sieve: sieve.memory },
    proofThreads: 1,
    logLevel: 'silent',
    ...more,
  }
  const source = await startThread('source', 'source', data)
  const listener = new ProgressListener(new ProgressTable(progress))
  const port = source.connect()
  const address = addressOf<SourceRequest, SourceReply, SourceProgress>(port, 1024, listener.hear)
  const catalog = new LmdbCatalog(catalogPath, new Generations(generations))
  const { segments } = data
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
  return { path, catalog, opener: new Opener(address, listener, systemClock, catalog, reader), stop }
}
