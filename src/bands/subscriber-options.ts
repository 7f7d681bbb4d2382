import type { DownloadOptions } from '../torrent/download.js'
import { connectionDefaults } from '../torrent/peer-connection.js'
import type { RegistryOptions } from './registered-keys.js'
import type { SubscriberOptions } from './subscriber.js'
import type { Subscription } from './subscription.js'

/** Who is followed, and how bands are fetched from them. */
export interface SubscriberSetup extends SubscriberOptions {
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
  /** Longest time of a request for a document, a .torrent file or a piece over HTTP. */
  timeoutMs: 30_000,
  /** Connections to one publisher: announces and pieces. */
  connectionsMax: 16,
} as const
