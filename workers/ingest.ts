import { parentPort, workerData } from 'node:worker_threads'
import { addressOf, answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { ranks, stepBack } from '../src/actor/priority.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import type { CatalogReply, CatalogRequest } from '../src/catalog/protocol.js'
import { refuse } from '../src/format/refusal.js'
import { Ingest } from '../src/ingest/ingest.js'
import type { IngestReply, IngestRequest } from '../src/ingest/protocol.js'
import type { IngestThread } from '../src/ingest/wiring.js'
import type { ExportReply, ExportRequest } from '../src/parquet/export-protocol.js'
import { Exporter } from '../src/parquet/exporter.js'
import type { SourceReply, SourceRequest } from '../src/source/protocol.js'

/** The thread that makes the index grow: follows the chain, repairs gaps, opens bundles. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const given = workerData as IngestThread
const log = createLog(given.logLevel, 'ingest')
stepBack(ranks.background, log)
const keeper = addressOf<CatalogRequest, CatalogReply>(given.keeper, given.keeperMailboxMax)
const { source: port } = given
const source = port && addressOf<SourceRequest, SourceReply>(port, given.keeperMailboxMax)
const lines = { keeper, ...(source === undefined ? {} : { source }) }
const ingest = new Ingest(given, lines, systemClock, log)
const { exportsPath: root, follow } = given
const exporter = new Exporter(ingest.index, { root, forkDepth: follow.forkDepthMax }, systemClock, log)

let stopping = false
void ingest.run().catch((error: unknown) => {
  if (stopping) return
  log.fatal({ err: error }, 'the index cannot grow: ending')
  process.exit(1)
})

parent.on('message', (order: ThreadOrder) => {
  if ('connect' in order) {
    answer<IngestRequest | ExportRequest, IngestReply | ExportReply>(order.connect, (message) => {
      if ('export' in message) return exporter.handle(message)
      // Rows that are still to be exported must not be removed meanwhile.
      if (message.kind === 'prune' && exporter.busy) return refuse('busy', 'self', 'An export is in progress')
      return ingest.handle(message)
    })
    return
  }
  if (stopping) return
  stopping = true
  void exporter
    .stop()
    .then(() => ingest.stop())
    .then(() => process.exit(0))
})
keepHeartbeat()
parent.postMessage({ ready: true })
