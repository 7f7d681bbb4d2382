import type { Order, Told } from './order.js'

const absent = (what: string): Told => ({ status: 501, body: what })

/** What other gateways have under these names and this one answers otherwise, said in plain words. */
export const absentOrders: readonly Order[] = [
  {
    method: 'POST',
    path: 'export-parquet',
    act: () => absent('Parquet is not exported on request: see sluice bands'),
  },
  {
    method: 'GET',
    path: 'export-parquet/status',
    act: () => ({ status: 200, body: { status: 'not_started' } }),
  },
  {
    method: 'GET',
    path: 'export-parquet/status/',
    act: () => ({ status: 404, body: { error: 'Unknown or expired jobId' } }),
  },
  {
    method: 'POST',
    path: 'prune-stable-data-items',
    act: () =>
      absent('Items stay in the index, which serves queries and offsets from one place: nothing is pruned'),
  },
]
