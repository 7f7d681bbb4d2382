import { parentPort, workerData } from 'node:worker_threads'
import { addressOf, answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { createLog } from '../src/actor/log.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import type { CatalogReply, CatalogRequest } from '../src/catalog/protocol.js'
import { Ingest } from '../src/ingest/ingest.js'
import type { IngestReply, IngestRequest } from '../src/ingest/protocol.js'
import type { IngestThread } from '../src/ingest/wiring.js'

/** The thread that makes the index grow: follows the chain, repairs gaps, opens bundles. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const given = workerData as IngestThread
const log = createLog(given.logLevel, 'ingest')
const keeper = addressOf<CatalogRequest, CatalogReply>(given.keeper, given.keeperMailboxMax)
const ingest = new Ingest(given, keeper, systemClock, log)

let stopping = false
void ingest.run().catch((error: unknown) => {
  if (stopping) return
  log.fatal({ err: error }, 'the index cannot grow: ending')
  process.exit(1)
})

parent.on('message', (order: ThreadOrder) => {
  if ('connect' in order) {
    answer<IngestRequest, IngestReply>(order.connect, (message) => ingest.handle(message))
    return
  }
  if (stopping) return
  stopping = true
  void ingest.stop().then(() => process.exit(0))
})
parent.postMessage({ ready: true })
