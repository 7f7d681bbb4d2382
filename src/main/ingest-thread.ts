import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import { type IngestThread, ingestDefaults } from '../ingest/wiring.js'
import { sourceDefaults } from '../source/wiring.js'
import { chainOptions } from '../threads/chain-options.js'
import { folders } from '../threads/folders.js'
import { openingRules } from '../threads/opening-rules.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { webhookOptions } from './webhooks.js'

/** How often a node is asked for its tip; blocks come each two minutes, on devnet each two seconds. */
const pollMs = { mainnet: 15_000, devnet: 1000 }

/** A new index of the public network begins so many blocks before the tip: enough to follow a fork. */
const blocksBeforeTip = 50

/** What the thread that grows the index is started with. */
export function ingestThread(
  config: Config,
  nodes: readonly string[],
  shared: SharedMemory,
  keeper: MessagePort,
  source: MessagePort,
): IngestThread {
  const { server, indexing, retrieval } = config
  const { catalog, blobs, agenda, webhooks, exports, keys } = folders(config)
  const told = webhookOptions(config, keys)
  return {
    ...ingestDefaults,
    catalogPath: catalog,
    blobsPath: blobs,
    ...(shared.segments === undefined ? {} : { segments: shared.segments }),
    agendaPath: agenda,
    keeper,
    source,
    ...(indexing.keepFilter === undefined ? {} : { keepFilter: indexing.keepFilter }),
    cacheMaxBytes: retrieval.cacheMaxBytes,
    generations: shared.generations,
    tip: shared.tip,
    following: shared.following,
    meters: shared.meters,
    row: shared.rows.ingest,
    chain: chainOptions(nodes, config),
    chunks: { ...sourceDefaults.chunks, concurrencyMax: retrieval.chunkReadAhead },
    location: sourceDefaults.location,
    follow: {
      start: startOf(config),
      stopHeight: indexing.stopHeight ?? Number.MAX_SAFE_INTEGER,
      forkDepthMax: indexing.forkDepthMax,
      pollMs: pollMs[server.network],
      haltedMs: ingestDefaults.haltedMs,
    },
    blocksAhead: indexing.prefetch,
    unbundle: {
      ...ingestDefaults.unbundle,
      ...openingRules(config),
      atOnce: indexing.bundlesAtOnce,
    },
    webhooksPath: webhooks,
    exportsPath: exports,
    ...(told === undefined ? {} : { webhooks: told }),
    proofThreads: Math.max(1, server.edgeThreads >> 1),
    ...(indexing.watchPending ? { mempool: { everyMs: indexing.pendingEveryMs, atOnceMax: 1000 } } : {}),
    logLevel: server.logLevel,
  }
}

function startOf({ server, indexing }: Config): IngestThread['follow']['start'] {
  if (indexing.startHeight !== undefined) return { height: indexing.startHeight }
  if (server.network === 'mainnet') return { behindTip: blocksBeforeTip }
  // Recorded answers have only the recorded blocks, usually not the first ones.
  return server.devnetReplayPath === undefined ? { height: 0 } : { behindTip: 0 }
}
