import type { MeterRow } from './meter.js'

/** Every meter of the program, declared once: name, unit (in the name), meaning. Rooms resolve handles by these names. */
export const meterTable: readonly MeterRow[] = [
  {
    name: 'http_requests_total',
    kind: 'counter',
    help: 'Requests answered, by status class and route family.',
    labels: {
      route: ['data', 'raw', 'manifest', 'info', 'other'],
      status: ['2xx', '3xx', '4xx', '5xx', 'aborted'],
    },
  },
  {
    name: 'http_repeated_answers_total',
    kind: 'counter',
    help: 'Answers given again by the server itself, within the second of the first of them.',
  },
  {
    name: 'http_request_duration_seconds',
    kind: 'histogram',
    help: 'From the request head to the last byte handed to the socket.',
    labels: { route: ['data', 'raw', 'manifest', 'info', 'other'] },
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30],
  },
  {
    name: 'get_data_stream_bytes_total',
    kind: 'counter',
    help: 'Body bytes handed to sockets on data routes.',
  },
  {
    name: 'get_data_stream_errors_total',
    kind: 'counter',
    help: 'Bodies that ended short because a source failed.',
  },
  {
    name: 'client_disconnects_total',
    kind: 'counter',
    help: 'Clients that left before their body was sent.',
  },
  {
    name: 'client_stalls_total',
    kind: 'counter',
    help: 'Clients dropped because they took no byte for too long.',
  },
  { name: 'flows_in_flight', kind: 'gauge', help: 'Requests being answered.' },
  {
    name: 'contiguous_data_cache_hit_total',
    kind: 'counter',
    help: 'Data requests answered from the local store.',
  },
  {
    name: 'contiguous_data_cache_miss_total',
    kind: 'counter',
    help: 'Data requests that had to ask a source.',
  },
  {
    name: 'fetches_total',
    kind: 'counter',
    help: 'Payloads brought whole, or broken off, by source; or by none, because none has it or all failed.',
    labels: {
      source: [
        'parent',
        'trusted-gateways',
        'ar-io-network',
        'chunks',
        'chunks-offset-aware',
        'tx-data',
        'none',
      ],
      outcome: ['whole', 'broken', 'unknown', 'failed'],
    },
  },
  {
    name: 'fetches_resumed_total',
    kind: 'counter',
    help: 'Payloads that broke off on their way and were asked for from there on.',
  },
  {
    name: 'fetched_bytes_total',
    kind: 'counter',
    help: 'Bytes of payloads and windows that sources brought.',
  },
  {
    name: 'chunk_requests_total',
    kind: 'counter',
    help: 'Chunks asked for by weave offset: proven ones from memory or from a node, absent ones, and failures.',
    labels: { outcome: ['cache', 'node', 'absent', 'failed'] },
  },
  {
    name: 'chunk_posts_total',
    kind: 'counter',
    help: 'Chunks posted: taken by enough nodes, not taken, or refused here.',
    labels: { outcome: ['taken', 'failed', 'refused'] },
  },
  {
    name: 'band_lookups_total',
    kind: 'counter',
    help: 'Items looked for in bands: found on this machine, found far away, in none, and questions that failed.',
    labels: { outcome: ['local', 'remote', 'absent', 'failed'] },
  },
  { name: 'last_height_imported', kind: 'gauge', help: 'Height of the highest block in the index.' },
  { name: 'blocks_imported_total', kind: 'counter', help: 'Blocks put into the index.' },
  {
    name: 'transactions_imported_total',
    kind: 'counter',
    help: 'Transactions put into the index with their blocks.',
  },
  {
    name: 'transactions_repaired_total',
    kind: 'counter',
    help: 'Transactions that came later than their blocks.',
  },
  { name: 'forks_total', kind: 'counter', help: 'Times that the chain took another branch.' },
  { name: 'blocks_unwound_total', kind: 'counter', help: 'Blocks taken back because of forks.' },
  {
    name: 'chain_import_halted',
    kind: 'gauge',
    help: '1 while a fork is deeper than may be followed unasked.',
  },
  { name: 'bundles_unbundled_total', kind: 'counter', help: 'Bundles read to their end.' },
  {
    name: 'bundles_retried_total',
    kind: 'counter',
    help: 'Bundles put off because their bytes could not be had.',
  },
  {
    name: 'bundles_failed_total',
    kind: 'counter',
    help: 'Bundles given up: malformed, or on no branch any more.',
  },
  {
    name: 'data_item_last_indexed_timestamp_seconds',
    kind: 'gauge',
    help: 'When the last data item came into the index; 0: none since the start.',
  },
  { name: 'data_items_indexed_total', kind: 'counter', help: 'Data items new to the index.' },
  {
    name: 'data_items_bad_total',
    kind: 'counter',
    help: 'Items of bundles that are malformed or not signed by their owner, and bundles inside that are cut off.',
  },
  {
    name: 'webhooks_total',
    kind: 'counter',
    help: 'Events to receivers: told, put off for another try, given up, or dropped because too many waited.',
    labels: { outcome: ['told', 'put-off', 'given-up', 'dropped'] },
  },
  { name: 'arns_cache_hit_total', kind: 'counter', help: 'Names answered from memory.' },
  { name: 'arns_cache_miss_total', kind: 'counter', help: 'Names that resolvers had to be asked for.' },
  {
    name: 'arns_resolution_time_ms',
    kind: 'histogram',
    help: 'From the question to the first resolver until the name is resolved, or is not.',
    buckets: [1, 5, 10, 50, 100, 250, 500, 1000, 3000, 10_000, 30_000],
  },
  {
    name: 'arns_resolution_resolver_count',
    kind: 'counter',
    help: 'Questions to resolvers, by what they said.',
    labels: {
      resolver: ['local', 'gateway', 'on-demand'],
      outcome: ['found', 'absent', 'blocked', 'failed'],
    },
  },
  {
    name: 'arns_base_name_cache_entries',
    kind: 'gauge',
    help: 'Names remembered, each on every thread that served it.',
  },
  {
    name: 'graphql_requests_total',
    kind: 'counter',
    help: 'Queries by outcome: answered whole, in part, with errors, or refused before anything was read.',
    labels: { outcome: ['whole', 'partial', 'error', 'refused'] },
  },
  {
    name: 'graphql_request_duration_seconds',
    kind: 'histogram',
    help: 'From a query whose text is here to its whole answer.',
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 12],
  },
  {
    name: 'rate_limit_requests_total',
    kind: 'counter',
    help: 'Answers that the rate limiter was asked about.',
    labels: { domain: ['data', 'chunk', 'index'] },
  },
  {
    name: 'rate_limit_exceeded_total',
    kind: 'counter',
    help: 'Answers for which free and paid tokens did not suffice, by the bucket that was short.',
    labels: { limit_type: ['ip', 'resource'], domain: ['data', 'chunk', 'index'] },
  },
  {
    name: 'rate_limit_holds_total',
    kind: 'counter',
    help: 'Connections left unread for a while, because their client went on asking after refusals.',
  },
  {
    name: 'rate_limit_bytes_blocked_total',
    kind: 'counter',
    help: 'Body bytes of denied answers.',
    labels: { domain: ['data', 'chunk', 'index'] },
  },
  {
    name: 'rate_limit_tokens_consumed_total',
    kind: 'counter',
    help: 'Tokens taken from the buckets of clients, what is given back later included.',
    labels: {
      bucket_type: ['ip'],
      token_type: ['regular', 'paid'],
      domain: ['data', 'chunk', 'index'],
    },
  },
  {
    name: 'x402_payments_total',
    kind: 'counter',
    help: 'Payments that clients showed, by what became of them; one that is shown again counts again.',
    labels: { outcome: ['settled', 'refused', 'malformed', 'pending', 'down'] },
  },
  {
    name: 'x402_offers_total',
    kind: 'counter',
    help: 'Answers 402 with an offer.',
  },
  { name: 'torrent_peers', kind: 'gauge', help: 'BitTorrent peers that are connected to the seeder.' },
  { name: 'torrent_sent_bytes_total', kind: 'counter', help: 'Bytes of bands sent to BitTorrent peers.' },
  {
    name: 'torrent_announces_total',
    kind: 'counter',
    help: 'Torrents told to trackers elsewhere.',
    labels: { outcome: ['answered', 'failed'] },
  },
  {
    name: 'dht_questions_total',
    kind: 'counter',
    help: 'Questions to nodes of the BitTorrent DHT.',
    labels: { outcome: ['answered', 'silent'] },
  },
  {
    name: 'torrent_connections_ended_total',
    kind: 'counter',
    help: 'Ends of BitTorrent connections, by why.',
    labels: {
      reason: [
        ...['closed', 'done', 'garbage', 'clear', 'unknown', 'late'],
        ...['idle', 'stalled', 'flood', 'full', 'forged'],
      ],
    },
  },
]
