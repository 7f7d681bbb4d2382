import { join } from 'node:path'
import { systemClock } from '../../actor/clock.js'
import { createLog, type Log } from '../../actor/log.js'
import { ranks, stepBack } from '../../actor/priority.js'
import type { OpenThread } from '../../actor/run-thread.js'
import { loadSigningKey, type SigningKey } from '../../attest/keys.js'
import { BandStore } from '../../bands/band-store.js'
import type { BandsThread } from '../../bands/bands-thread.js'
import { L1Builder } from '../../bands/l1-builder.js'
import { l1Bands } from '../../bands/l1-kind.js'
import { measureDigests } from '../../bands/measure.js'
import { measureTorrent } from '../../bands/measure-torrent.js'
import { PeriodicSteps } from '../../bands/periodic-steps.js'
import { Publisher } from '../../bands/publisher.js'
import { rootTxBands } from '../../bands/root-band.js'
import { RootBuilder } from '../../bands/root-builder.js'
import { Generations } from '../../catalog/generations.js'
import { ChainIndex } from '../../catalog/index-reader.js'
import { openCatalogTables } from '../../catalog/tables.js'
import type { SharedMemory } from '../shared-memory.js'
import type { SettingsOf } from '../thread-settings.js'
import { bandsThread } from './bands-options.js'

/** What the thread is started with that builds bands of the index and publishes them. Plain: it is cloned. */
export interface BandsGiven {
  readonly settings: SettingsOf<'bands'>
  readonly memory: SharedMemory
}

/** Builds bands of the index and publishes them. Nobody can ask it anything: edge threads read its files. */
export async function openBands({ settings, memory }: BandsGiven): Promise<OpenThread> {
  const log = createLog(settings.server.logLevel, 'bands')
  stepBack(ranks.background, log)
  const options = bandsThread(settings, memory.generations)
  if (options === undefined) throw new Error('these settings publish no bands')
  const { environment } = openCatalogTables(options.catalogPath)
  const index = new ChainIndex(environment, new Generations(options.generations))
  const key = loadSigningKey(options.signing)
  const publisher = options.publisher ?? key.solanaAddress
  const bandStore = new BandStore(options.root)
  await bandStore.prepare()
  const builder = new RootBuilder(bandStore, index, systemClock, log, { ...options.build, publisher })
  const publishing = publisherOf(options, bandStore, key, log)
  const stopping = new AbortController()
  const l1 = options.l1 && new L1Builder(index, bandStore, systemClock, { ...options.l1, publisher })
  const rounds = new PeriodicSteps(
    [
      () => builder.build(false),
      async () => l1 && (await buildL1(l1, stopping.signal, log)),
      () => publishing.publish(),
    ],
    options.scanMs,
    systemClock,
    log,
  )
  rounds.start()
  return {
    async close() {
      stopping.abort()
      await rounds.stop()
      await environment.close()
    },
  }
}

function publisherOf(options: BandsThread, bandStore: BandStore, key: SigningKey, log: Log): Publisher {
  const { root, publish, trackers, ownTracker } = options
  const torrentsPath = join(root, 'torrents')
  const { pathPrefix } = publish
  const measure =
    trackers === undefined ? measureDigests : measureTorrent({ torrentsPath, pathPrefix, trackers })
  const own = ownTracker === undefined ? [] : [ownTracker]
  return new Publisher(bandStore, [rootTxBands, l1Bands], measure, key, systemClock, log, {
    ...publish,
    publisher: options.publisher ?? key.solanaAddress,
    ...(trackers === undefined ? {} : { torrentsPath, trackers: [...own, ...trackers] }),
  })
}

/** One band in each round, so that it is published, and the document renewed, before the next one is built. */
async function buildL1(l1: L1Builder, stopping: AbortSignal, log: Log): Promise<void> {
  const onBuilt = (band: string, transactions: number): void =>
    log.info({ band, transactions }, 'a band was built')
  try {
    const refusal = await l1.build(1, onBuilt, stopping)
    if (refusal !== undefined) log.warn({ reason: refusal.message }, 'a Parquet band cannot be built yet')
  } catch (error) {
    if (!stopping.aborted) throw error
  }
}
