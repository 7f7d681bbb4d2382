import { gatewayDefaults } from '../../gateway/gateway-parts.js'
import type { ProofBudgetOptions } from '../../ingest/proof-budget.js'
import type { EvictionOptions } from '../../source/keeping/evictor.js'
import type { ManifestOptions } from '../../source/keeping/manifest-cache.js'
import type { RootLookupOptions } from '../../source/roots/root-lookup.js'
import { sourceDefaults, type VerifierOptions } from '../../source/source-defaults.js'
import type { PeerOptions } from '../../source/upstream/network-peers.js'
import type { RawOptions } from '../../source/upstream/raw-client.js'
import { ownHosts } from '../host-names.js'
import { publicRoots } from '../public-gateways.js'
import type { SharedMemory } from '../shared-memory.js'
import type { Settings } from '../thread-settings.js'

/** How manifests are packed. */
export function manifestOptions({ manifests }: Settings<'manifests'>): ManifestOptions {
  const { maxBytes, pathsMax, pathMaxBytes, cacheMaxBytes, waitingMax } = manifests
  return {
    limits: { sizeBytes: maxBytes, pathsMax, pathMaxBytes },
    cacheMaxBytes,
    flightsMax: waitingMax,
  }
}

/** How content is proven after it was cached; undefined: it is not. */
export function verifierOptions({ retrieval }: Settings<'retrieval'>): VerifierOptions | undefined {
  const { verifies, verifyEverySeconds, verifyRetries, verifyWaitingMax } = retrieval
  if (!verifies) return undefined
  return {
    ...sourceDefaults.verifier,
    waitingMax: verifyWaitingMax,
    everyMs: verifyEverySeconds * 1000,
    attemptsMax: verifyRetries + 1,
  }
}

/** What proving may cost. */
export function proofBudgetOptions({ retrieval }: Settings<'retrieval'>): ProofBudgetOptions {
  const { verifyPercent, verifyRequestsPerSecond } = retrieval
  const share = verifyPercent / 100
  return { ...sourceDefaults.proofBudget, share, requestsPerSecond: verifyRequestsPerSecond }
}

/** What is removed from the cache, and when. */
export function evictionOptions({ retrieval }: Settings<'retrieval'>): EvictionOptions {
  const { cacheMaxBytes: maxBytes, cacheMaxAgeSeconds: age } = retrieval
  return { ...sourceDefaults.eviction, maxBytes, ...(age === undefined ? {} : { maxAgeSeconds: age }) }
}

/** Who is queried for where items lie; undefined: nobody. */
export function rootLookupOptions(
  config: Settings<'names' | 'retrieval' | 'rootLookup' | 'server'>,
): RootLookupOptions | undefined {
  const { rootLookup, retrieval, server } = config
  const { order, burst, perMinute, rememberedMax, rememberedMs } = rootLookup
  const named = rootLookup.gateways ?? (server.network === 'mainnet' ? publicRoots : [])
  if (!order.includes('gateways') || named.length === 0) return undefined
  const gateways = [...named].sort((one, other) => one.priority - other.priority).map(({ url }) => url)
  const breaker = { burst, perMinute, failuresMax: 5, coolMs: 30_000 }
  const headMs = retrieval.gatewayTimeoutMs
  const own = { hopsMax: gatewayDefaults.hopsMax, ownHosts: ownHosts(config), release: server.release }
  return { gateways, headMs, breaker, rememberedMax, rememberedMs, ...own }
}

/** How content is requested from other gateways. */
export function rawOptions(
  config: Settings<'names' | 'retrieval' | 'server'>,
  { descriptors }: SharedMemory,
): RawOptions {
  const { server, retrieval } = config
  return {
    headMs: retrieval.gatewayTimeoutMs,
    stallMs: retrieval.streamStallMs,
    hopsMax: gatewayDefaults.hopsMax,
    ownHosts: ownHosts(config),
    release: server.release,
    connectionsMax: descriptors?.upstreamMax ?? 256,
    ...(retrieval.extraAuthorities === undefined ? {} : { authoritiesFile: retrieval.extraAuthorities }),
  }
}

/** How gateways of the network are queried; undefined: none is known. */
export function peerOptions(
  config: Settings<'names' | 'peers' | 'retrieval' | 'server'>,
  memory: SharedMemory,
): PeerOptions | undefined {
  const { urls, ...rules } = config.peers
  if (urls === undefined || urls.length === 0) return undefined
  const rest = { failuresMax: 5, restMs: 30_000, restMaxMs: 30_000 }
  return { ...rawOptions(config, memory), ...rules, peers: urls, rest }
}
