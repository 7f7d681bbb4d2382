import type { NodeRouteParts } from '../routes/node-routes.js'
import type { Settings } from './thread-settings.js'

/** How edge threads find chunks and pass on what is posted to them. */
export function chunkOptions({ chunks, limits }: Settings<'chunks' | 'limits'>): NodeRouteParts['chunks'] {
  const postedCacheBytes = Math.floor(chunks.memoryMaxBytes / 4)
  return {
    finder: {
      deadlineMs: chunks.serveDeadlineMs,
      // Time for ten requests to a fast node; an answer without the id is complete all the same.
      nameMs: Math.min(1500, chunks.serveDeadlineMs / 2),
      flightsMax: 256,
      searchesMax: chunks.searchesMax,
      fetchedCacheBytes: chunks.memoryMaxBytes - postedCacheBytes,
      postedCacheBytes,
    },
    broadcast: {
      successesMin: chunks.postSuccessesMin,
      concurrency: chunks.postConcurrency,
      abortMs: chunks.postAbortMs,
      responseMs: chunks.postResponseMs,
      perNodeMax: 20,
    },
    pricedBytes: limits.chunkPricedBytes,
    learnMaxBytes: chunks.learnMaxBytes,
    dryRun: chunks.dryRun,
  }
}
