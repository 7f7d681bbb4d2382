/**
 * Settings that mean nothing here, of other gateways of the network or of services to come, each with the reason. An operator
 * who brings them along sees that at the start, and need not look for them. Whatever would be a promise (who is served, what is
 * requested from whom) is not among them: that is either a setting of ours, or it stops the start.
 */
const groups: readonly (readonly [why: string, names: string, isAbsent?: true])[] = [
  [
    'state lies below DATA_PATH, in one place',
    'CONTIGUOUS_DATA_PATH CHUNKS_DATA_PATH HEADERS_DATA_PATH SQLITE_DATA_PATH LMDB_DATA_PATH DUCKDB_DATA_PATH TEMP_DATA_PATH',
  ],
  [
    'headers and chunks are kept in the index and beside content, never in Redis',
    'CHAIN_CACHE_TYPE CHUNK_METADATA_CACHE_TYPE REDIS_CACHE_TTL_SECONDS CHUNK_INGEST_CACHE_ENABLED',
  ],
  ['it is for the Redis of a deployment: see deploy/compose.yaml', 'EXTRA_REDIS_FLAGS REDIS_MAX_MEMORY'],
  [
    'content has one limit of size and one of age: CONTIGUOUS_DATA_CACHE_MAX_BYTES and CONTIGUOUS_DATA_CACHE_CLEANUP_THRESHOLD',
    'PREFERRED_ARNS_CONTIGUOUS_DATA_CACHE_CLEANUP_THRESHOLD CHUNK_DATA_CACHE_CLEANUP_THRESHOLD ENABLE_FS_HEADER_CACHE_CLEANUP ' +
      'FS_CLEANUP_WORKER_BATCH_SIZE FS_CLEANUP_WORKER_BATCH_PAUSE_DURATION FS_CLEANUP_WORKER_RESTART_PAUSE_DURATION',
  ],
  [
    'the index is one store that any thread reads; export-parquet feeds other databases',
    'CORE_SQLITE_READ_WORKER_COUNT DATA_SQLITE_READ_WORKER_COUNT TAG_SELECTIVITY GRAPHQL_RESOLVER_DEADLINE_MS GRAPHQL_HOST',
  ],
  [
    'what ClickHouse reads is bounded by the time of a query; answers have a bound of their own',
    'CLICKHOUSE_GQL_MAX_ROWS_TO_READ CLICKHOUSE_STREAMING_ENABLED',
  ],
  [
    'bundles are opened as they flow by, and what waits is on disk: there are no queues to size',
    'ANS104_UNBUNDLE_WORKERS ANS104_PARSE_JOB_TIMEOUT_MS BUNDLE_DATA_IMPORTER_QUEUE_SIZE VERIFICATION_DATA_IMPORTER_QUEUE_SIZE ' +
      'DATA_ITEM_INDEXER_QUEUE_SIZE DATA_ITEM_INDEXER_WORKER_COUNT MAX_DATA_ITEM_QUEUE_SIZE DATA_ITEM_FLUSH_COUNT_THRESHOLD ' +
      'MAX_FLUSH_INTERVAL_SECONDS DATA_IMPORTER_DOWNLOAD_TIMEOUT_MS BACKFILL_BUNDLE_RECORDS FILTER_CHANGE_REPROCESS ' +
      'BUNDLE_REPAIR_RETRY_INTERVAL_SECONDS BUNDLE_REPAIR_RETRY_BATCH_SIZE',
  ],
  [
    'all cached content is proven in the background, and what proves wrong is thrown away',
    'BACKGROUND_DATA_VERIFICATION_WORKER_COUNT MIN_DATA_VERIFICATION_PRIORITY UNTRUSTED_CACHE_RETRY_RATE ' +
      'TRUSTED_CACHE_RETRY_RATE',
  ],
  [
    'signatures of transactions are kept, those of items are read from content when requested',
    'WRITE_ANS104_DATA_ITEM_DB_SIGNATURES WRITE_TRANSACTION_DB_SIGNATURES',
  ],
  [
    'names are requested one by one: no list of all names is kept',
    'ARNS_NAMES_CACHE_TTL_SECONDS ARNS_NAME_LIST_CACHE_MISS_REFRESH_INTERVAL_SECONDS ' +
      'ARNS_NAME_LIST_CACHE_HIT_REFRESH_INTERVAL_SECONDS',
  ],
  [
    'the registry is reached at ARNS_REGISTRY_URL',
    'IO_PROCESS_ID SOLANA_RPC_URL ARIO_CORE_PROGRAM_ID ARIO_GAR_PROGRAM_ID ARIO_ARNS_PROGRAM_ID ARIO_ANT_PROGRAM_ID',
  ],
  [
    'nodes are named by TRUSTED_NODE_URL, and judged by what they answer',
    'ARWEAVE_PEER_DNS_RECORDS ARWEAVE_PEER_DNS_PORT ARWEAVE_NODE_MAX_HEIGHT_LAG ARWEAVE_NODE_MAX_HEIGHT_LEAD ' +
      'ARWEAVE_HEIGHT_MIN_CONSENSUS_COUNT ARWEAVE_NODE_FULL_SYNC_THRESHOLD ARWEAVE_PEER_HEALTH_CHECK_INTERVAL_MS ' +
      'ENABLE_ARWEAVE_PEER_EDS',
  ],
  [
    'the proof of a chunk comes with the chunk: see CHUNK_DATA_RETRIEVAL_ORDER',
    'CHUNK_METADATA_RETRIEVAL_ORDER',
  ],
  [
    'requests for one id share one fetch, whose bytes they read as they come',
    'FOREGROUND_CACHE_COALESCE_TIMEOUT_MS',
  ],
  [
    'a transfer ends when it stalls (STREAM_STALL_TIMEOUT_MS), not when it is long',
    'STREAM_REQUEST_TIMEOUT_MS GET_DATA_CIRCUIT_BREAKER_TIMEOUT_MS HTTP_KEEP_ALIVE_TIMEOUT_MS',
  ],
  [
    'where an item lies is always looked for in ROOT_TX_LOOKUP_ORDER',
    'ENABLE_DATA_ITEM_ROOT_TX_SEARCH ENABLE_PASSTHROUGH_WITHOUT_OFFSETS',
  ],
  [
    'it is for trying out',
    'SKIP_CACHE SKIP_DATA_CACHE SIMULATED_REQUEST_FAILURE_RATE ARWEAVE_POST_DRY_RUN_SKIP_VALIDATION',
  ],
  [
    'the log is JSON and names its thread; memory is bounded by part, not by a heap',
    'LOG_FORMAT INSTANCE_ID NODE_MAX_OLD_SPACE_SIZE',
  ],
  ['exports lie below DATA_PATH/parquet, for a front proxy or a copy', 'ENABLE_DATASETS_ENDPOINT'],
  [
    'the same bucket is read with CONTENT_STORE=s3: see S3_BUCKET, S3_PREFIX and S3_ENDPOINT',
    'AWS_S3_CONTIGUOUS_DATA_BUCKET AWS_S3_CONTIGUOUS_DATA_PREFIX AWS_ENDPOINT',
  ],
  ['peers are few enough to be compared each', 'PEER_HASH_RING_VIRTUAL_NODES'],
  ['the observer is another program', 'OBSERVER_WALLET HTTPSIG_UPLOAD_ATTESTATION'],
  ['one program does it all: see STOP_HEIGHT', 'START_WRITERS'],
]

/** Sources of content that other gateways have in their orders. */
export const foreignSources: ReadonlyMap<string, string> = new Map([
  ['trusted-gateways-offset-aware', 'items themselves are requested from trusted gateways'],
  ['s3', 'CONTENT_STORE=s3 reads a bucket, before all of these'],
  ...['turbo-s3', 'turbo-elasticache', 'turbo-dynamodb'].map(
    (name) => [name, 'stores of an upload service are not read'] as const,
  ),
])

/** Sources of chunks that other gateways have in their orders. */
export const foreignChunkSources: ReadonlyMap<string, string> = new Map([
  ['legacy-s3', 'a bucket of chunks is not read'],
])

/** Whom other gateways ask where an item lies. */
export const foreignRootLookups: ReadonlyMap<string, string> = new Map([
  ['turbo', 'no upload service gets requests'],
  ['hyperbeam', 'no compute node gets requests'],
  ['peers', 'gateways of GATEWAYS_ROOT_TX_URLS get the requests: gateways'],
  ['graphql', 'no other index gets requests'],
])

/** Name to reason. */
export const foreign: ReadonlyMap<string, string> = new Map(
  groups.flatMap(([why, names]) => names.split(' ').map((name) => [name, why] as const)),
)

/** Those of them that are for what this program cannot do. */
export const absentHere: ReadonlySet<string> = new Set(
  groups.flatMap(([, names, isAbsent]) => (isAbsent === true ? names.split(' ') : [])),
)
