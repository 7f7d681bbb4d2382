import type { Dispatcher } from 'undici'
import { systemClock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Dht } from '../torrent/dht.js'
import type { BandStore } from './band-store.js'
import { l1Bands } from './l1-kind.js'
import { PinnedKeys } from './publisher-keys.js'
import { RegisteredKeys } from './registered-keys.js'
import { rootTxBands } from './root-band.js'
import { Subscriber, type SubscriberParts } from './subscriber.js'
import { type SubscriberSetup, swarmDefaults } from './subscriber-options.js'

/** Opens a subscriber with its options. Rejects where its earlier state is unreadable. */
export function openSubscriber(
  given: SubscriberSetup,
  parts: {
    readonly dispatcher: Dispatcher
    readonly dht?: Dht | undefined
    readonly peerId: Buffer
    readonly bandStore: BandStore
    readonly log: Log
    readonly wants?: SubscriberParts['wants']
  },
): Promise<Subscriber> {
  const http = {
    dispatcher: parts.dispatcher,
    timeoutMs: swarmDefaults.timeoutMs,
    userAgent: given.userAgent,
  }
  const pinned = new PinnedKeys()
  const { registry, download, trackers } = given
  return Subscriber.open(given, {
    http,
    download,
    trackers,
    dht: parts.dht,
    clock: systemClock,
    peerId: parts.peerId,
    bandStore: parts.bandStore,
    log: parts.log,
    wants: parts.wants,
    keys: registry === undefined ? pinned : new RegisteredKeys(registry, pinned, http, systemClock),
    kinds: [rootTxBands, l1Bands].filter(({ kind }) => given.kinds.includes(kind)),
  })
}
