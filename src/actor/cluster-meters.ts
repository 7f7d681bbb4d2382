import type { MeterRow } from './meter.js'

/** Meters of a machine among others: its lists, and the index that one of them writes into ClickHouse. */
export const clusterMeters: readonly MeterRow[] = [
  {
    name: 'cluster_look_seconds',
    kind: 'gauge',
    help: 'When the lists of this machine were last compared with those of its cluster, since 1970; 0: in none.',
  },
  {
    name: 'cluster_unshared_changes',
    kind: 'gauge',
    help: 'Changes of the block list and of names on this machine that its cluster does not have yet.',
  },
  {
    name: 'clickhouse_push_leads',
    kind: 'gauge',
    help: '1: this machine writes the index into ClickHouse now.',
  },
  {
    name: 'clickhouse_push_height',
    kind: 'gauge',
    help: 'Up to this height everything is in ClickHouse, as the machine that writes knows it; 0 on others.',
  },
  {
    name: 'clickhouse_push_lag_heights',
    kind: 'gauge',
    help: 'Stable heights of the index of the machine that writes which are not in ClickHouse.',
  },
  {
    name: 'clickhouse_push_well_seconds',
    kind: 'gauge',
    help: 'When this machine last looked at ClickHouse, or wrote into it, without a failure, since 1970; 0: it never writes.',
  },
  {
    name: 'clickhouse_push_rows_total',
    kind: 'counter',
    help: 'Rows that this machine has written into ClickHouse and recorded.',
  },
  {
    name: 'clickhouse_push_failures_total',
    kind: 'counter',
    help: 'Attempts to write that failed, at ClickHouse or at the database that says who writes.',
  },
]
