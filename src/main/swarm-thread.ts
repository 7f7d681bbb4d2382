import type { Config } from '../../config/read.js'
import type { NamedPublisher } from '../../config/swarm.js'
import { vocabularies } from '../attest/vocabulary.js'
import { ownDomain, peerDomain } from '../bands/protocol.js'
import type { Subscription } from '../bands/subscription.js'
import { type SubscriberThread, type SwarmThread, swarmDefaults } from '../bands/swarm-wiring.js'
import { encodeBase58 } from '../format/base58.js'
import { decodeBase64url } from '../format/base64url.js'
import { bandsFolder } from '../threads/bands-options.js'
import { folders } from '../threads/folders.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { dhtUrl } from '../torrent/dht.js'
import { downloadDefaults } from '../torrent/download.js'
import { trackerDefaults } from '../torrent/tracker.js'
import { udpTimeouts } from '../torrent/udp-announce.js'
import { networkOf } from './network.js'

/** Who is told of our bands, and asked for those of others. */
function trackersOf({ swarm }: Config): readonly string[] {
  return [...swarm.trackers, ...(swarm.dhtNodes.length === 0 ? [] : [dhtUrl])]
}

/** What the thread is started with that seeds bands and fetches those of others. */
export function swarmThread(config: Config, shared: SharedMemory): SwarmThread {
  const { server, swarm } = config
  const { peersPerAddressMax, slotsMax, slotMs, line } = swarmDefaults
  const seeding: SwarmThread['swarm'] = {
    seeder: {
      host: networkOf(config).host,
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
    trackers: trackersOf(config),
    timeouts: udpTimeouts,
  }
  return {
    row: shared.rows.swarm,
    meters: shared.meters,
    bandsPath: bandsFolder(folders(config).root),
    prepares: !config.bands.publish,
    dhtEntries: swarm.dhtNodes,
    // The same port number as the seeder's, so that a firewall needs one rule.
    dhtPlace: {
      host: networkOf(config).host,
      port: swarm.seed ? swarm.torrentPort : 0,
      addresses: swarm.torrentAddresses,
    },
    ...(swarm.seed ? { swarm: seeding } : {}),
    seedsFetched: swarm.seedFetched,
    ...(swarm.subscriptions.length === 0 ? {} : { subscriber: subscriberThread(config) }),
    logLevel: server.logLevel,
  }
}

/** A gateway to be followed: an address without a path means its usual one, in our own vocabulary or the other. */
export function subscriptionOf({ server }: Config, named: NamedPublisher): Subscription {
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
export function subscriberThread(config: Config): SubscriberThread {
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
