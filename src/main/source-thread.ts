import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import { gatewayDefaults } from '../gateway/parts.js'
import type { FetcherThread } from '../ingest/wiring.js'
import type { RawOptions } from '../source/raw-line.js'
import { sourceDefaults } from '../source/wiring.js'
import { chainOptions } from '../threads/chain-options.js'
import { folders } from '../threads/folders.js'
import { ownHosts } from '../threads/host-names.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { uploadFolders } from '../threads/upload-options.js'
import { type Network, publicRoots } from './network.js'
import { hasUploads } from './upload-service.js'
import { webhookOptions } from './webhooks.js'

/** What the thread of the fetcher is started with. */
export function sourceThread(
  config: Config,
  network: Network,
  shared: SharedMemory,
  keeper: MessagePort,
): FetcherThread {
  const { server, retrieval, answers } = config
  const { root, catalog, blobs, keys, pins, manifests } = folders(config)
  const told = webhookOptions(config, keys)
  const age = retrieval.cacheMaxAgeSeconds
  const { verifier: _, ...usual } = sourceDefaults
  return {
    ...usual,
    blobsPath: blobs,
    ...(shared.segments === undefined ? {} : { segments: shared.segments }),
    pinsPath: pins,
    manifestsPath: manifests,
    manifests: manifestOptions(config),
    catalogPath: catalog,
    keeper,
    generations: shared.generations,
    sound: shared.sound,
    progress: shared.progress,
    meters: shared.meters,
    row: 0,
    ...(told?.cached === true ? { webhooks: { path: join(root, 'webhooks-cached'), options: told } } : {}),
    ...(hasUploads(config) ? { uploads: { ...uploadFolders(config), pending: shared.pendingItems } } : {}),
    order: retrieval.onDemandOrder,
    backgroundOrder: retrieval.backgroundOrder,
    gateways: { ...rawOptions(config, shared), gateways: network.gateways },
    ...peersOf(config, shared),
    chain: chainOptions(network.nodes, config),
    chunks: {
      ...sourceDefaults.chunks,
      concurrencyMax: retrieval.chunkReadAhead,
      memoryMaxBytes: config.chunks.memoryMaxBytes,
    },
    ...rootsOf(config),
    fetch: { ...sourceDefaults.fetch, wholeFirstMaxBytes: answers.digestBufferMaxBytes },
    fetchesMax: retrieval.fetchesMax,
    moderation: { path: folders(config).moderation, sieve: shared.sieve },
    ...(config.absence.enabled ? { absence: config.absence } : {}),
    ...verifierOf(config),
    eviction: {
      ...sourceDefaults.eviction,
      maxBytes: retrieval.cacheMaxBytes,
      ...(age === undefined ? {} : { maxAgeSeconds: age }),
    },
    proofThreads: Math.max(1, server.edgeThreads >> 1),
    logLevel: server.logLevel,
  }
}

/** How manifests are packed. */
function manifestOptions({ manifests }: Config): FetcherThread['manifests'] {
  const { maxBytes, pathsMax, pathMaxBytes, cacheMaxBytes, waitingMax } = manifests
  return {
    limits: { sizeBytes: maxBytes, pathsMax, pathMaxBytes },
    cacheMaxBytes,
    flightsMax: waitingMax,
  }
}

/** How content is proven after it was cached. */
function verifierOf({ retrieval }: Config): Pick<FetcherThread, 'verifier'> {
  const { verifies, verifyEverySeconds, verifyRetries } = retrieval
  if (!verifies) return {}
  const rules = { everyMs: verifyEverySeconds * 1000, attemptsMax: verifyRetries + 1 }
  return { verifier: { ...sourceDefaults.verifier, ...rules } }
}

/** Who is asked where items lie. */
function rootsOf(config: Config): Pick<FetcherThread, 'roots'> {
  const { rootLookup, retrieval, server } = config
  const { order, burst, perMinute, rememberedMax, rememberedMs } = rootLookup
  const named = rootLookup.gateways ?? (server.network === 'mainnet' ? publicRoots : [])
  if (!order.includes('gateways') || named.length === 0) return {}
  const gateways = [...named].sort((one, other) => one.priority - other.priority).map(({ url }) => url)
  const breaker = { burst, perMinute, failuresMax: 5, coolMs: 30_000 }
  const headMs = retrieval.gatewayTimeoutMs
  const own = { hopsMax: gatewayDefaults.hopsMax, ownHosts: ownHosts(config), release: server.release }
  return { roots: { gateways, headMs, breaker, rememberedMax, rememberedMs, ...own } }
}

/** How other gateways are asked for content. */
function rawOptions(config: Config, { descriptors }: SharedMemory): RawOptions {
  const { server, retrieval } = config
  return {
    headMs: retrieval.gatewayTimeoutMs,
    stallMs: retrieval.streamStallMs,
    hopsMax: gatewayDefaults.hopsMax,
    ownHosts: ownHosts(config),
    release: server.release,
    connectionsMax: descriptors?.upstreamMax ?? 256,
  }
}

function peersOf(config: Config, shared: SharedMemory): Pick<FetcherThread, 'peers'> {
  const { urls, ...rules } = config.peers
  if (urls === undefined || urls.length === 0) return {}
  // No rate limit: the number of answers under way is bounded instead.
  const breaker = { burst: 1e9, perMinute: 1e9, failuresMax: 5, coolMs: 30_000 }
  const peers = { ...rawOptions(config, shared), ...rules, peers: urls, breaker, weights: shared.peerWeights }
  return { peers }
}
