import type { MessagePort } from 'node:worker_threads'
import { hearsBlockNews } from '../../actor/block-news.js'
import { type IngestParts, ingestDefaults } from '../../ingest/ingest-parts.js'
import type { WebhookOptions } from '../../ingest/webhooks.js'
import { sourceDefaults } from '../../source/source-defaults.js'
import { chainOptions, isEmbedded } from '../chain-options.js'
import { folders } from '../folders.js'
import { openingRules } from '../opening-rules.js'
import type { SharedMemory } from '../shared-memory.js'
import type { Settings, SettingsOf } from '../thread-settings.js'

/** What the thread is started with that makes the index grow. Plain: cloned, and the ports move. */
export interface IngestGiven {
  readonly settings: SettingsOf<'ingest'>
  readonly memory: SharedMemory
  /** Base URLs of the nodes of the chain. */
  readonly nodes: readonly string[]
  /** Lines to the keeper of the catalog, and to the fetcher, which brings opened bundles into the store. */
  readonly ports: { readonly catalog: MessagePort; readonly source: MessagePort }
  /** Receivers of what was indexed; absent: none. */
  readonly webhooks?: WebhookOptions
}

/**
 * After an answer the tip of a node is polled again so much later, and then at a full second of the thread's timers. Blocks come
 * each two minutes, on devnet each two seconds; the embedded node sends news of them.
 */
const pollMs = { mainnet: 14_900, devnet: 900, embedded: 14_900 }

/** A new index of the public network begins so many blocks before the tip: enough to follow a fork. */
const blocksBeforeTip = 50

/** How the index grows. */
export function ingestParts({ settings, memory, nodes, webhooks: receivers }: IngestGiven): IngestParts {
  const { server, indexing, retrieval } = settings
  const { catalog, blobs, agenda, webhooks } = folders(settings)
  return {
    ...ingestDefaults,
    catalogPath: catalog,
    blobsPath: blobs,
    ...(memory.segments === undefined ? {} : { segments: memory.segments }),
    agendaPath: agenda,
    ...(indexing.keepFilter === undefined ? {} : { keepFilter: indexing.keepFilter }),
    cacheMaxBytes: retrieval.cacheMaxBytes,
    generations: memory.generations,
    tip: memory.tip,
    following: memory.following,
    meters: memory.meters,
    row: memory.rows.ingest,
    chain: chainOptions(nodes, settings),
    chunks: { ...sourceDefaults.chunks, concurrencyMax: retrieval.chunkReadAhead },
    location: sourceDefaults.location,
    follow: {
      start: startOf(settings),
      stopHeight: indexing.stopHeight ?? Number.MAX_SAFE_INTEGER,
      forkDepthMax: indexing.forkDepthMax,
      pollMs: pollMs[isEmbedded(settings) ? 'embedded' : server.network],
      haltedMs: ingestDefaults.haltedMs,
    },
    ...(isEmbedded(settings) ? { blockNews: hearsBlockNews } : {}),
    blocksAhead: indexing.prefetch,
    unbundle: {
      ...ingestDefaults.unbundle,
      ...openingRules(settings),
      atOnce: indexing.bundlesAtOnce,
    },
    webhooksPath: webhooks,
    ...(receivers === undefined ? {} : { webhooks: receivers }),
    proofThreads: Math.max(1, server.edgeThreads >> 1),
    ...(indexing.watchPending ? { mempool: { everyMs: indexing.pendingEveryMs, atOnceMax: 1000 } } : {}),
  }
}

function startOf({ server, indexing }: Settings<'indexing' | 'server'>): IngestParts['follow']['start'] {
  if (indexing.startHeight !== undefined) return { height: indexing.startHeight }
  if (server.network === 'mainnet') return { behindTip: blocksBeforeTip }
  // Recorded answers have only the recorded blocks, usually not the first ones.
  return server.devnetReplayPath === undefined ? { height: 0 } : { behindTip: 0 }
}
