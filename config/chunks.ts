import { foreignChunkSources } from './foreign.js'
import { flag, maybeUrls, sharedList, whole } from './setting.js'

/** Chunks by weave offset: finding, proving, posting. */
export const chunks = {
  serveDeadlineMs: whole({
    env: 'CHUNK_SERVE_DEADLINE_MS',
    default: 10_000,
    min: 100,
    max: 600_000,
    why: 'From GET /chunk to its answer, the search for the block included; then 504.',
  }),
  preferredGetUrls: maybeUrls({
    env: 'PREFERRED_CHUNK_GET_NODE_URLS',
    why:
      'Nodes (or gateways that serve chunks) that get requests for chunks before those of TRUSTED_NODE_URL. A node that had ' +
      'chunks of the same part of the weave comes before both; that is learned.',
  }),
  order: sharedList({
    foreign: foreignChunkSources,
    mayBeEmpty: false,
    env: 'CHUNK_DATA_RETRIEVAL_ORDER',
    default: ['ar-io-network', 'arweave-network'],
    shape: /^(ar-io-network|arweave-network)$/,
    allowed: 'ar-io-network or arweave-network',
    why:
      'Who gets requests for chunks of content, in order: gateways of PEER_GATEWAYS_URLS (nodes, where there are none), and ' +
      'nodes. Chunks for GET /chunk and for proofs come from nodes alone.',
  }),
  firstDataMs: whole({
    env: 'CHUNK_FIRST_DATA_TIMEOUT_MS',
    default: 10_000,
    min: 100,
    max: 600_000,
    why: 'From the request for content out of chunks to its first bytes; then the next source gets the request.',
  }),
  searchesChain: flag({
    env: 'CHUNK_OFFSET_CHAIN_FALLBACK_ENABLED',
    default: true,
    why: 'GET /chunk for offsets that are not indexed searches the blocks for them; without it the answer is 404.',
  }),
  searchesMax: whole({
    env: 'CHUNK_OFFSET_CHAIN_FALLBACK_CONCURRENCY',
    default: 5,
    min: 1,
    max: 1000,
    why: 'Searches through the chain at once for offsets that are not indexed, each edge thread; others wait.',
  }),
  memoryMaxBytes: whole({
    env: 'CHUNK_MEMORY_CACHE_MAX_BYTES',
    default: 64 * 2 ** 20,
    min: 0,
    max: 2 ** 40,
    why:
      'Proven chunks kept in memory by each edge thread (a quarter of it for chunks that clients post), and by the fetcher, ' +
      'whose chunks then go into the cache on disk.',
  }),
  learnMaxBytes: whole({
    env: 'CHUNK_LEARN_MAX_BYTES',
    default: 64 * 2 ** 20,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    why: 'Larger transactions are not fetched whole to compare their hash with blocked ones: then their chunks are 503.',
  }),
  postSuccessesMin: whole({
    env: 'CHUNK_POST_MIN_SUCCESS_COUNT',
    default: 3,
    min: 1,
    max: 1000,
    why: 'Nodes that must take a posted chunk; where fewer are configured, all of them.',
  }),
  preferredPostUrls: maybeUrls({
    env: 'PREFERRED_CHUNK_POST_NODE_URLS',
    why:
      'Nodes that get posted chunks, and those of bundles made here, before those of TRUSTED_NODE_URL. ' +
      'Unset: the latter are all preferred.',
  }),
  preferredSuccessesMin: whole({
    env: 'CHUNK_POST_MIN_PREFERRED_SUCCESS_COUNT',
    default: 2,
    min: 0,
    max: 1000,
    why: 'Nodes of PREFERRED_CHUNK_POST_NODE_URLS that must take a posted chunk; where fewer are configured, all of them.',
  }),
  postQueueMax: whole({
    env: 'CHUNK_POST_QUEUE_DEPTH_THRESHOLD',
    default: 20,
    min: 1,
    max: 10_000,
    why: 'Posted chunks under way to one node; more wait for a moment, then the node is skipped.',
  }),
  postRefusalsMax: whole({
    env: 'CHUNK_POST_MAX_CONSECUTIVE_FAILURES',
    default: 5,
    min: 1,
    max: 1000,
    why: 'Final refusals (4xx) of a posted chunk in a row, before any success, after which no other node gets it.',
  }),
  postConcurrency: whole({
    env: 'CHUNK_POST_PEER_CONCURRENCY',
    default: 3,
    min: 1,
    max: 100,
    why: 'Nodes that get one chunk at the same time.',
  }),
  dryRun: flag({
    env: 'ARWEAVE_POST_DRY_RUN',
    default: false,
    why: 'Posted transactions and chunks are checked and answered, but not sent to nodes: for tests.',
  }),
  postAbortMs: whole({
    env: 'CHUNK_POST_ABORT_TIMEOUT_MS',
    default: 2000,
    min: 10,
    max: 600_000,
    why: 'Timeout of the connection to a node for a posted chunk.',
  }),
  postResponseMs: whole({
    env: 'CHUNK_POST_RESPONSE_TIMEOUT_MS',
    default: 5000,
    min: 10,
    max: 600_000,
    why: 'Timeout of the answer of a node to a posted chunk.',
  }),
}
