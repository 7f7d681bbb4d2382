import type { PeerAddress } from '../torrent/compact-peers.js'
import type { DhtPlace } from '../torrent/dht.js'
import type { DownloadOptions } from '../torrent/download.js'
import { connectionDefaults } from '../torrent/peer-connection.js'
import type { SwarmOptions } from '../torrent/swarm.js'
import type { RegistryOptions } from './registered-keys.js'
import type { SubscriberOptions } from './subscriber.js'
import type { Subscription } from './subscription.js'

/** What `workers/swarm.ts` is started with. Says `{port}`: that of the seeder, 0 where there is none. */
export interface SwarmThread {
  /** Row of this thread in the meter table. */
  readonly row: number
  readonly meters: SharedArrayBuffer
  /** `DATA_PATH/bands`. */
  readonly bandsPath: string
  /** True: no other thread makes the folders and clears away drafts. */
  readonly prepares: boolean
  /** Nodes of the distributed hash table to begin with; none: it is not asked. */
  readonly dhtEntries: readonly PeerAddress[]
  readonly dhtPlace: Omit<DhtPlace, 'answerMs'>
  /** Absent: nothing is seeded. */
  readonly swarm?: SwarmOptions
  /** Bands of others are seeded on. */
  readonly seedsFetched: boolean
  /** Absent: nobody is followed. */
  readonly subscriber?: SubscriberThread
  readonly logLevel: string
}

export interface SubscriberThread extends SubscriberOptions {
  readonly subscriptions: readonly Subscription[]
  /** Absent: only keys in the setting are accepted. */
  readonly registry?: RegistryOptions
  /** Kinds that are fetched, of those that are known. */
  readonly kinds: readonly string[]
  readonly download: Omit<DownloadOptions, 'isNear'>
  readonly trackers: readonly string[]
  readonly userAgent: string
}

/** Values that are no settings. */
export const swarmDefaults = {
  /** Several people behind one router. */
  peersPerAddressMax: 16,
  slotsMax: 50,
  slotMs: 30_000,
  line: connectionDefaults,
  /** For documents, .torrent files and pieces over HTTP. */
  timeoutMs: 30_000,
  /** Connections to one publisher: announces and pieces. */
  connectionsMax: 16,
} as const
