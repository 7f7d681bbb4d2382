import { type ItemFilter, readItemFilter } from './item-filter.js'
import { custom, flag, maybeWhole, whole } from './setting.js'

const heights = { min: 0, max: 4_000_000_000 }

function filter(words: { env: string; why: string }) {
  return custom<ItemFilter | undefined>({
    ...words,
    allowed: 'a filter as JSON, such as {"tags":[{"name":"App-Name","value":"x"}]}',
    defaultText: '',
    default: undefined,
    read: readItemFilter,
  })
}

/** What of the chain is followed and indexed. */
export const indexing = {
  startHeight: maybeWhole({
    env: 'START_HEIGHT',
    ...heights,
    why: 'First block of a new index: 0 on devnet, 50 before the tip on mainnet. Lower than before: the gap is filled.',
  }),
  stopHeight: maybeWhole({
    env: 'STOP_HEIGHT',
    ...heights,
    why: 'Last block that is indexed; unset: every block to come.',
  }),
  prefetch: whole({
    env: 'BLOCK_PREFETCH_COUNT',
    default: 50,
    min: 1,
    max: 1000,
    why: 'Blocks requested ahead, with their transactions: each holds up to 1,000 headers of some 2 KiB.',
  }),
  forkDepthMax: whole({
    env: 'CHAIN_FORK_DEPTH_MAX',
    default: 18,
    min: 1,
    max: 10_000,
    why: 'A fork that replaces more blocks stops the import, not the gateway: look at the nodes, then raise this once.',
  }),
  segmentRows: whole({
    env: 'INDEX_SEGMENT_ROWS',
    default: 250_000,
    min: 0,
    max: 1_000_000,
    why: 'So many rows that no fork can replace leave the tables of the index for a file of a sixth of their size; 0: none do.',
  }),
  unbundleFilter: filter({
    env: 'ANS104_UNBUNDLE_FILTER',
    why: 'Bundles that are opened: {"always":true} on devnet, {"never":true} on mainnet.',
  }),
  indexFilter: filter({
    env: 'ANS104_INDEX_FILTER',
    why: 'Items of opened bundles that are indexed and served by id: {"always":true} on devnet, {"never":true} on mainnet.',
  }),
  keepFilter: filter({
    env: 'ANS104_KEEP_FILTER',
    why: 'Opened bundles whose bytes stay in the store: their items are served out of them. Unset: while a tenth of it is free.',
  }),
  bundlesAtOnce: whole({
    env: 'ANS104_DOWNLOAD_WORKERS',
    default: 4,
    min: 1,
    max: 64,
    why: 'Bundles read at once, and one small one more: each has 10 chunks on the way, some 5 MiB.',
  }),
  itemsSilentSeconds: maybeWhole({
    env: 'MAX_EXPECTED_DATA_ITEM_INDEXING_INTERVAL_SECONDS',
    min: 1,
    max: 31_536_000,
    why: 'The health check says unhealthy where no new data item was indexed for so long. Unset: however long.',
  }),
  optimistic: flag({
    env: 'OPTIMISTIC_TX_INDEXING_ENABLED',
    default: false,
    why: 'Takes transactions that were posted elsewhere by queue-optimistic-tx of the admin routes, before a node tells of them.',
  }),
  watchPending: flag({
    env: 'ENABLE_MEMPOOL_WATCHER',
    default: false,
    why: 'Asks nodes for transactions that wait for a block, so that queries find them.',
  }),
  pendingEveryMs: whole({
    env: 'MEMPOOL_POLLING_INTERVAL_MS',
    default: 30_000,
    min: 100,
    max: 3_600_000,
    why: 'Time between two such questions.',
  }),
}
