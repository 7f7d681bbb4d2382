import { randomBytes } from 'node:crypto'
import { Agent } from 'undici'
import { systemClock } from '../../actor/clock.js'
import { createLog } from '../../actor/log.js'
import { answer } from '../../actor/mailbox-address.js'
import { Meters } from '../../actor/meter.js'
import { meterTable } from '../../actor/meter-table.js'
import { endThread, type OpenThread } from '../../actor/run-thread.js'
import { OfferReader, offeringsOf } from '../../bands/band-offer.js'
import { BandStore } from '../../bands/band-store.js'
import { openSubscriber } from '../../bands/open-subscriber.js'
import type { Subscriber } from '../../bands/subscriber.js'
import { swarmDefaults } from '../../bands/subscriber-options.js'
import { refuse } from '../../format/refusal.js'
import { Dht } from '../../torrent/dht.js'
import { dhtDefaults } from '../../torrent/dht-node.js'
import { type SeededTorrent, Swarm, type SwarmReply, type SwarmRequest } from '../../torrent/swarm.js'
import { folders } from '../folders.js'
import { bandsFolder } from './bands-options.js'
import { dhtPlace, type SwarmGiven, subscriberOptions, swarmOptions } from './swarm-options.js'

/** Seeds bands and fetches those of others: apart from the thread that builds them, which is often busy. */
export async function openSwarm(given: SwarmGiven): Promise<OpenThread> {
  const { settings, memory } = given
  const { swarm: rules, bands } = settings
  const log = createLog(settings.server.logLevel, 'swarm')
  const meters = new Meters(meterTable, memory.meters, memory.rows.swarm)
  const path = bandsFolder(folders(settings).root)
  const dispatcher = new Agent({ connections: swarmDefaults.connectionsMax })
  const place = dhtPlace(given)
  const dht =
    rules.dhtNodes.length === 0
      ? undefined
      : await Dht.open(rules.dhtNodes, { ...dhtDefaults, ...place }, systemClock, meters)
  if (dht?.families.length === 0) log.warn(place, 'no UDP port for the DHT: it gets no requests')
  const bandStore = new BandStore(path)
  // Where bands are built, that thread makes the folders and clears away drafts.
  if (!bands.publish) await bandStore.prepare()
  let subscriber: Subscriber | undefined
  const offers = new OfferReader(path, systemClock)
  const offered = (): SeededTorrent[] => [
    ...offeringsOf(offers.current(), path),
    ...(rules.seedFetched ? (subscriber?.offerings ?? []) : []),
  ]
  const seeding = swarmOptions(given)
  const swarm = seeding && new Swarm(seeding, offered, systemClock, meters, log, dispatcher, dht)
  const port = (await swarm?.start()) ?? 0
  const peerId = swarm?.peerId ?? randomBytes(20)
  subscriber =
    rules.subscriptions.length === 0
      ? undefined
      : await openSubscriber(subscriberOptions(settings), { dispatcher, dht, peerId, bandStore, log })
  subscriber?.start((error) => endThread(log, error, 'bands cannot be kept: ending'))
  return {
    ready: { port },
    connect: (line) =>
      answer<SwarmRequest, SwarmReply>(line, (message) => {
        return swarm?.handle(message) ?? refuse('unknown', 'client', 'nothing is seeded')
      }),
    async close() {
      await subscriber?.stop()
      await swarm?.close()
      dht?.close()
      await dispatcher.destroy()
    },
  }
}
