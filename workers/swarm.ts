import { randomBytes } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { Agent } from 'undici'
import { answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { Meters } from '../src/actor/meter.js'
import { meterTable } from '../src/actor/meters.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { BandStore } from '../src/bands/band-store.js'
import { OfferReader, offeringsOf } from '../src/bands/offer.js'
import { openSubscriber } from '../src/bands/open-subscriber.js'
import type { Subscriber } from '../src/bands/subscriber.js'
import { type SwarmThread, swarmDefaults } from '../src/bands/swarm-wiring.js'
import { refuse } from '../src/format/refusal.js'
import { Dht } from '../src/torrent/dht.js'
import { dhtDefaults } from '../src/torrent/dht-node.js'
import { type SeededTorrent, Swarm, type SwarmReply, type SwarmRequest } from '../src/torrent/swarm.js'

/** The thread that seeds bands and fetches those of others: apart from the one that builds them, which is often busy. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const given = workerData as SwarmThread
const log = createLog(given.logLevel, 'swarm')
const meters = new Meters(meterTable, given.meters, given.row)
const { connectionsMax } = swarmDefaults
const dispatcher = new Agent({ connections: connectionsMax })

const dht =
  given.dhtEntries.length === 0
    ? undefined
    : await Dht.open(given.dhtEntries, { ...dhtDefaults, ...given.dhtPlace }, systemClock, meters)
if (dht?.families.length === 0) log.warn(given.dhtPlace, 'no UDP port for the DHT: it is not asked')

const shelf = new BandStore(given.bandsPath)
if (given.prepares) await shelf.prepare()
let subscriber: Subscriber | undefined
const fetchedOfferings = (): readonly SeededTorrent[] =>
  given.seedsFetched ? (subscriber?.offerings ?? []) : []
const offers = new OfferReader(given.bandsPath, systemClock)
const swarm =
  given.swarm === undefined
    ? undefined
    : new Swarm(
        given.swarm,
        () => [...offeringsOf(offers.current(), given.bandsPath), ...fetchedOfferings()],
        systemClock,
        meters,
        log,
        dispatcher,
        dht,
      )
const port = (await swarm?.start()) ?? 0

const peerId = swarm?.peerId ?? randomBytes(20)
subscriber =
  given.subscriber && (await openSubscriber(given.subscriber, { dispatcher, dht, peerId, shelf, log }))
subscriber?.start((error) => {
  log.fatal({ err: error }, 'bands cannot be kept: ending')
  process.exit(1)
})

async function stop(): Promise<void> {
  await subscriber?.stop()
  await swarm?.close()
  dht?.close()
  await dispatcher.destroy()
  process.exit(0)
}

parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) {
    void stop()
    return
  }
  answer<SwarmRequest, SwarmReply>(order.connect, (message) => {
    return swarm?.handle(message) ?? refuse('unknown', 'client', 'nothing is seeded')
  })
})
keepHeartbeat()
parent.postMessage({ ready: { port } })
