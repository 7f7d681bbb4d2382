import { parentPort, workerData } from 'node:worker_threads'
import { answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { Generations } from '../src/catalog/generations.js'
import { LmdbCatalog } from '../src/catalog/reader.js'
import { ModerationKeeper } from '../src/moderation/keeper.js'
import type { ModerationReply, ModerationRequest } from '../src/moderation/protocol.js'
import { Sieve } from '../src/moderation/sieve.js'
import { ModerationStore } from '../src/moderation/store.js'
import type { ModerationThread } from '../src/moderation/wiring.js'

/** The thread of the block list's keeper: up as soon as the list on disk is in the sieve that all threads share. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const given = workerData as ModerationThread
const log = createLog(given.logLevel, 'moderation')
const store = new ModerationStore(given.path)
const catalog = new LmdbCatalog(given.catalogPath, new Generations(given.generations))
const keeper = new ModerationKeeper(store, new Sieve(given.sieve), systemClock, log, (digest) =>
  catalog.blobSize(digest),
)

parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) {
    void Promise.all([keeper.close(), catalog.close()]).then(() => process.exit(0))
    return
  }
  answer<ModerationRequest, ModerationReply>(order.connect, (message) => keeper.handle(message))
})
keepHeartbeat()
parent.postMessage({ ready: true })
