import type { Meters, Series } from '../actor/meter.js'

/** The meters of which a history is kept: what an operator looks at when looking for what happened an hour ago. */
const kept = [
  'http_requests_total',
  'http_request_duration_seconds',
  'http_failures_total',
  'get_data_stream_bytes_total',
  'get_data_stream_errors_total',
  'contiguous_data_cache_hit_total',
  'contiguous_data_cache_miss_total',
  'fetches_total',
  'fetched_bytes_total',
  'client_stalls_total',
  'accept_pauses_total',
  'sockets_open',
  'flows_in_flight',
  'process_open_fds',
  'data_disk_free_bytes',
  'data_disk_size_bytes',
  'disk_errors_total',
  'last_height_imported',
  'data_items_indexed_total',
  'graphql_requests_total',
  'graphql_queries_waiting',
  'rate_limit_exceeded_total',
  'x402_payments_total',
  'upload_items_accepted_total',
  'upload_item_bytes_total',
  'upload_items_waiting',
  'upload_bundles',
  'payment_topups_pending',
  'torrent_sent_bytes_total',
] as const

/** A column of the history. Of a counter each row has what it grew by since the row before. */
export type Column = Series

/** The columns in order; `more` are gauges that no meter has. */
export function columnsOf(meters: Meters, more: Readonly<Record<string, () => number>>): Column[] {
  const others = Object.entries(more).map(([name, read]): Column => ({ name, kind: 'gauge', read }))
  return [...kept.flatMap((name) => meters.series(name)), ...others]
}
