import { parentPort, workerData } from 'node:worker_threads'
import { answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { Meters } from '../src/actor/meter.js'
import { meterTable } from '../src/actor/meters.js'
import { mayComeBack, ownThread, ranks, stepBack } from '../src/actor/priority.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { Generations } from '../src/catalog/generations.js'
import { ChainIndex } from '../src/catalog/index-reader.js'
import { IndexedCatalog } from '../src/catalog/indexed.js'
import { openCatalogTables } from '../src/catalog/tables.js'
import type { QueryLineAbout, QueryOrder, QueryReply } from '../src/query/protocol.js'
import { movedOf } from '../src/query/scheduler.js'
import { openQueries, type QueryThread, type QueryThreadSaid } from '../src/query/wiring.js'

/** One thread that answers queries, beside those that serve sockets. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const given = workerData as QueryThread
const log = createLog(given.logLevel, 'query')
const isIdle = mayComeBack(ranks.query)
stepBack(isIdle ? ranks.query : ranks.queryForGood, log)
const generations = new Generations(given.generations)
const { environment } = openCatalogTables(given.catalogPath)
const index = new ChainIndex(environment, generations)
const catalog = new IndexedCatalog(given.catalogPath, generations, index)
const meters = new Meters(meterTable, given.meters, given.row)
const queries = openQueries(given, { index, catalog, clock: systemClock, log, meters })

async function stop(): Promise<void> {
  await queries.close()
  await catalog.close()
  await environment.close()
  process.exit(0)
}

parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) {
    void stop()
    return
  }
  const left = new Int32Array((order.about as QueryLineAbout).left)
  answer<QueryOrder, QueryReply>(
    order.connect,
    ({ asked, client, place }) => queries.scheduler.ask(asked, client, () => Atomics.load(left, place) !== 0),
    movedOf,
  )
})
keepHeartbeat()
parent.postMessage({ ready: (isIdle ? { thread: ownThread() } : {}) satisfies QueryThreadSaid })
