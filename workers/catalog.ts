import { parentPort, workerData } from 'node:worker_threads'
import { answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { ranks, stepBack } from '../src/actor/priority.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { Generations } from '../src/catalog/generations.js'
import { CatalogKeeper } from '../src/catalog/keeper.js'
import type { CatalogReply, CatalogRequest } from '../src/catalog/protocol.js'
import type { CatalogThread } from '../src/catalog/wiring.js'

/** The thread of the catalog's keeper: the one writer of the index environment. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const options = workerData as CatalogThread
const log = createLog(options.logLevel, 'catalog')
if (options.isBeside) stepBack(ranks.keeper, log)
const keeper = new CatalogKeeper(options.keeper, new Generations(options.generations), systemClock, log)

parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) {
    void keeper.close().then(() => process.exit(0))
    return
  }
  answer<CatalogRequest, CatalogReply>(order.connect, (message) => keeper.handle(message))
})
keepHeartbeat()
parent.postMessage({ ready: true })
