import { parentPort, workerData } from 'node:worker_threads'
import { answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { BucketKeeper } from '../src/admission/keeper.js'
import type { KeeperReply, KeeperRequest } from '../src/admission/keeper-protocol.js'
import { KeptTable } from '../src/admission/kept-table.js'
import type { AdmissionThread } from '../src/admission/wiring.js'

/** The thread of the keeper of buckets: up as soon as what the disk holds is in the memory that all threads share. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const { place, keeper: about, logLevel } = workerData as AdmissionThread
const log = createLog(logLevel, 'admission')
const tables =
  place.kind === 'memory'
    ? {
        ip: new KeptTable(place.ipMemory, place.ip),
        resource: new KeptTable(place.resourceMemory, place.resource),
      }
    : undefined
const keeper = tables === undefined ? undefined : new BucketKeeper(about, tables, systemClock, log)

parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) {
    void Promise.resolve(keeper?.close()).then(() => process.exit(0))
    return
  }
  if (keeper === undefined) order.connect.close()
  else answer<KeeperRequest, KeeperReply>(order.connect, (message) => keeper.handle(message))
})
keepHeartbeat()
// Where the buckets are in Redis, the hash is not used, so its key does not matter.
parent.postMessage({ ready: { secret: keeper?.secret ?? { low: 0, high: 0 } } })
