import type { MeterRow } from './meter.js'

/** Meters of the upload service and of the payment service. Gauges are what the service has looked at within the last seconds. */
export const serviceMeters: readonly MeterRow[] = [
  {
    name: 'upload_items_accepted_total',
    kind: 'counter',
    help: 'Items that were accepted for the first time.',
  },
  { name: 'upload_item_bytes_total', kind: 'counter', help: 'Bytes of those items.' },
  { name: 'upload_items_waiting', kind: 'gauge', help: 'Accepted items that are in no bundle.' },
  {
    name: 'upload_items_waiting_oldest_seconds',
    kind: 'gauge',
    help: 'How long the first of them has waited; 0: none waits.',
  },
  {
    name: 'upload_items_waiting_oldest_paid_seconds',
    kind: 'gauge',
    help: 'The same of those that were paid for; free ones wait behind them.',
  },
  {
    name: 'upload_items_unreadable',
    kind: 'gauge',
    help: 'Accepted items that the disk does not give as they were accepted, and no object store has: they are in no bundle.',
  },
  {
    name: 'upload_items_given_up_total',
    kind: 'counter',
    help: 'Items whose bundles were dropped too often: they wait for the operator.',
  },
  {
    name: 'upload_bundles',
    kind: 'gauge',
    help: 'Bundles on their way, by state.',
    labels: { state: ['packed', 'posted', 'seeded'] },
  },
  {
    name: 'upload_bundle_oldest_seconds',
    kind: 'gauge',
    help: 'Age of the oldest bundle that is not permanent; 0: none is on its way.',
  },
  {
    name: 'upload_bundle_failures_max',
    kind: 'gauge',
    help: 'Failures in a row of the present step, or of looks for its data, of the bundle that has most.',
  },
  {
    name: 'upload_bundles_unseen',
    kind: 'gauge',
    help: 'Bundles deep in the chain whose data no node has shown: nodes deny it, do not answer, or do not take it again.',
    labels: { why: ['missing', 'silent', 'untaken'] },
  },
  {
    name: 'upload_bundles_total',
    kind: 'counter',
    help: 'Bundles that were packed, became permanent, or were dropped.',
    labels: { outcome: ['packed', 'permanent', 'dropped'] },
  },
  { name: 'upload_parts_open', kind: 'gauge', help: 'Uploads in several requests that are not over.' },
  { name: 'upload_parts_bytes', kind: 'gauge', help: 'Bytes of their parts on disk.' },
  { name: 'upload_parts_max_bytes', kind: 'gauge', help: 'Bytes of parts that may lie on disk.' },
  {
    name: 'upload_wallet_winston',
    kind: 'gauge',
    help: 'What the wallet has that pays for bundles; -1: no node has stated it.',
  },
  {
    name: 'payment_topups_pending',
    kind: 'gauge',
    help: 'Payments on chains that are not deep enough yet.',
  },
  {
    name: 'payment_topup_oldest_pending_seconds',
    kind: 'gauge',
    help: 'How long the oldest of them has waited; 0: none waits.',
  },
  { name: 'payment_oracle_age_seconds', kind: 'gauge', help: 'Age of the prices; 0: they are fixed.' },
  {
    name: 'payment_oracle_failing',
    kind: 'gauge',
    help: '1 while no prices can be stated: nothing is sold.',
  },
  { name: 'payment_ledger_failing', kind: 'gauge', help: '1 while the ledger cannot be read or written.' },
  {
    name: 'payment_unpaid_items_total',
    kind: 'counter',
    help: 'Accepted items for which nothing was held back when they were to be paid: bugs. The log has their ids.',
  },
  { name: 'payment_corrections_total', kind: 'counter', help: 'Balances that the operator has corrected.' },
]
