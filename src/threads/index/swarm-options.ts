import type { NamedPublisher } from '../../../config/swarm.js'
import { vocabularies } from '../../attest/vocabulary.js'
import { ownDomain, peerDomain } from '../../bands/publication.js'
import { type SubscriberSetup, swarmDefaults } from '../../bands/subscriber-options.js'
import type { Subscription } from '../../bands/subscription.js'
import { encodeBase58 } from '../../format/base58.js'
import { decodeBase64url } from '../../format/base64url.js'
import { type DhtPlace, dhtUrl } from '../../torrent/dht.js'
import { downloadDefaults } from '../../torrent/download.js'
import type { SwarmOptions } from '../../torrent/swarm.js'
import { trackerDefaults } from '../../torrent/tracker.js'
import { udpTimeouts } from '../../torrent/udp-announce.js'
import type { SharedMemory } from '../shared-memory.js'
import type { Settings, SettingsOf } from '../thread-settings.js'

/** What the thread is started with that seeds bands and fetches those of others. Plain: it is cloned. */
export interface SwarmGiven {
  readonly settings: SettingsOf<'swarm'>
  readonly memory: SharedMemory
  /** Address to listen on. */
  readonly host: string
}

/** Trackers that get own bands, and are queried for those of others. */
function trackersOf({ swarm }: Settings<'swarm'>): readonly string[] {
  return [...swarm.trackers, ...(swarm.dhtNodes.length === 0 ? [] : [dhtUrl])]
}

/** How bands are seeded; undefined: they are not. */
export function swarmOptions({ settings, host }: SwarmGiven): SwarmOptions | undefined {
  const { swarm } = settings
  if (!swarm.seed) return undefined
  const { peersPerAddressMax, slotsMax, slotMs, line } = swarmDefaults
  return {
    seeder: {
      host,
      port: swarm.torrentPort,
      peersMax: swarm.peersMax,
      peersPerAddressMax,
      slotsMax,
      slotMs,
      line,
      encryption: swarm.encryption,
      upload: { bytesPerSecond: swarm.uploadBytesPerSecond, bytesPerDay: swarm.uploadBytesPerDay },
    },
    tracker: trackerDefaults,
    addresses: swarm.torrentAddresses,
    trackers: trackersOf(settings),
    timeouts: udpTimeouts,
  }
}

/** Where the distributed hash table is spoken to. It has the seeder's port number, so that a firewall needs one rule. */
export function dhtPlace({ settings: { swarm }, host }: SwarmGiven): Omit<DhtPlace, 'answerMs'> {
  return { host, port: swarm.seed ? swarm.torrentPort : 0, addresses: swarm.torrentAddresses }
}

/** A gateway to be followed: an address without a path means its usual one, in our own vocabulary or the other. */
export function subscriptionOf({ server }: Settings<'server'>, named: NamedPublisher): Subscription {
  const { url } = named
  const signed = 'keyId' in named ? { url, keyId: base58Key(named.keyId) } : named
  if (new URL(url).pathname !== '/') return signed
  const own = vocabularies[server.vocabulary].pathPrefix
  const others = Object.values(vocabularies).flatMap(({ pathPrefix }) => {
    return pathPrefix === own ? [] : [`${url}${pathPrefix}`]
  })
  return { ...signed, url: `${url}${own}`, others }
}

/** Documents name their key in base58; `/gateway/info` shows it as signatures name it, too. */
function base58Key(keyId: string): string {
  const [, shown] = /^ed25519:(.*)$/.exec(keyId) ?? []
  const bytes = shown === undefined ? undefined : decodeBase64url(shown)
  return bytes === undefined ? keyId : encodeBase58(bytes)
}

/** A revoked key is accepted for at most so long. */
const registryMs = 300_000

/** How bands of others are fetched. */
export function subscriberOptions(config: Settings<'server' | 'swarm'>): SubscriberSetup {
  const { server, swarm } = config
  return {
    subscriptions: swarm.subscriptions.map((named) => subscriptionOf(config, named)),
    ...(swarm.registry === undefined ? {} : { registry: { source: swarm.registry, believeMs: registryMs } }),
    kinds: swarm.subscribedKinds,
    // Both are accepted: the key identifies the publisher, and publishers may use either vocabulary.
    domains: [ownDomain, peerDomain],
    pollMs: swarm.pollSeconds * 1000,
    graceMs: swarm.graceSeconds * 1000,
    bytesMax: swarm.fetchedBytesMax,
    bandsAtOnce: swarm.bandsAtOnce,
    download: {
      ...downloadDefaults,
      webAfterMs: swarm.webSeconds * 1000,
      line: swarmDefaults.line,
      encryption: swarm.encryption,
    },
    trackers: trackersOf(config),
    userAgent: `sluice/${server.release}`,
  }
}
