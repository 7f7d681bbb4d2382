import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { ranks, stepBack } from '../src/actor/priority.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { loadSigningKey } from '../src/attest/keys.js'
import { BandStore } from '../src/bands/band-store.js'
import { L1Builder } from '../src/bands/l1-builder.js'
import { l1Bands } from '../src/bands/l1-kind.js'
import { measureDigests } from '../src/bands/measure.js'
import { measureTorrent } from '../src/bands/measure-torrent.js'
import { PeriodicSteps } from '../src/bands/periodic-steps.js'
import { Publisher } from '../src/bands/publisher.js'
import { rootTxBands } from '../src/bands/root-band.js'
import { RootBuilder } from '../src/bands/root-builder.js'
import type { BandsThread } from '../src/bands/wiring.js'
import { Generations } from '../src/catalog/generations.js'
import { ChainIndex } from '../src/catalog/index-reader.js'
import { openCatalogTables } from '../src/catalog/tables.js'

/** The thread that builds bands of the index and publishes them. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const given = workerData as BandsThread
const log = createLog(given.logLevel, 'bands')
stepBack(ranks.background, log)
const { environment } = openCatalogTables(given.catalogPath)
const index = new ChainIndex(environment, new Generations(given.generations))
const key = loadSigningKey(given.signing)
const publisherName = given.publisher ?? key.solanaAddress
const shelf = new BandStore(given.root)
await shelf.prepare()
const builder = new RootBuilder(shelf, index, systemClock, log, { ...given.build, publisher: publisherName })
const torrentsPath = join(given.root, 'torrents')
const { pathPrefix } = given.publish
const { trackers } = given
const ownTracker = given.ownTracker === undefined ? [] : [given.ownTracker]
const measure =
  trackers === undefined ? measureDigests : measureTorrent({ torrentsPath, pathPrefix, trackers })
const publisher = new Publisher(shelf, [rootTxBands, l1Bands], measure, key, systemClock, log, {
  ...given.publish,
  publisher: publisherName,
  ...(trackers === undefined ? {} : { torrentsPath, trackers: [...ownTracker, ...trackers] }),
})
const stopping = new AbortController()
const l1 = given.l1 && new L1Builder(index, shelf, systemClock, { ...given.l1, publisher: publisherName })

/** One band in each round, so that it is published, and the document renewed, before the next one is built. */
async function buildL1(): Promise<void> {
  try {
    const refusal = await l1?.build(
      1,
      (band, transactions) => log.info({ band, transactions }, 'a band was built'),
      stopping.signal,
    )
    if (refusal !== undefined) log.warn({ reason: refusal.message }, 'a Parquet band cannot be built yet')
  } catch (error) {
    if (!stopping.signal.aborted) throw error
  }
}

const rounds = new PeriodicSteps(
  [() => builder.build(false), buildL1, () => publisher.publish()],
  given.scanMs,
  systemClock,
  log,
)
rounds.start()

parent.on('message', (order: ThreadOrder) => {
  if (!('stop' in order)) return
  stopping.abort()
  void rounds
    .stop()
    .then(() => environment.close())
    .then(() => process.exit(0))
})
keepHeartbeat()
parent.postMessage({ ready: true })
