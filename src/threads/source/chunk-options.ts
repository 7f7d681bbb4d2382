import type { BroadcastOptions } from '../../chain/broadcast.js'
import type { NodeRouteParts } from '../../routes/node-routes.js'
import type { Settings } from '../thread-settings.js'

/** How edge threads find chunks and pass on what is posted to them. */
export function chunkOptions({ chunks, limits }: Settings<'chunks' | 'limits'>): NodeRouteParts['chunks'] {
  const postedCacheBytes = Math.floor(chunks.memoryMaxBytes / 4)
  return {
    finder: {
      deadlineMs: chunks.serveDeadlineMs,
      // Time for ten requests to a fast node; an answer without the id is complete all the same.
      nameMs: Math.min(1500, chunks.serveDeadlineMs / 2),
      flightsMax: 256,
      searchesChain: chunks.searchesChain,
      searchesMax: chunks.searchesMax,
      fetchedCacheBytes: chunks.memoryMaxBytes - postedCacheBytes,
      postedCacheBytes,
    },
    broadcast: {
      ...preferredPosts(chunks),
      successesMin: chunks.postSuccessesMin,
      concurrency: chunks.postConcurrency,
      abortMs: chunks.postAbortMs,
      responseMs: chunks.postResponseMs,
      perNodeMax: chunks.postQueueMax,
      refusalsMax: chunks.postRefusalsMax,
    },
    pricedBytes: limits.chunkPricedBytes,
    learnMaxBytes: chunks.learnMaxBytes,
    dryRun: chunks.dryRun,
  }
}

/** Nodes that get a posted chunk first, and how many of them must take it. */
function preferredPosts({
  preferredPostUrls,
  preferredSuccessesMin,
}: Settings<'chunks'>['chunks']): Pick<BroadcastOptions, 'preferred'> {
  if (preferredPostUrls === undefined) return {}
  return { preferred: { nodes: preferredPostUrls, successesMin: preferredSuccessesMin } }
}
