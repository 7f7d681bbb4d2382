import type { MeterRow } from './meter.js'

/** States of the object store of CONTENT_STORE; the first two are no fault. */
export const storeStates = [
  'well',
  'opening',
  'read only',
  'other network',
  'newer format',
  'no conditional writes',
  'away',
  'credentials',
  'denied',
  'bucket',
  'full',
  'daily limit',
  'size limit',
  'clock',
] as const

/** Metrics of the object store below the disk (CONTENT_STORE). All are 0 where there is none. */
export const storeMeters: readonly MeterRow[] = [
  {
    name: 'content_store_state',
    kind: 'gauge',
    help: 'What is so of the object store: 1, all other states 0.',
    labels: { state: storeStates },
  },
  {
    name: 'content_store_requests_total',
    kind: 'counter',
    help: 'Requests to the object store: done, of what is not there, refused for a reason of ours, or failed.',
    labels: {
      operation: ['get', 'head', 'put', 'list', 'remove'],
      outcome: ['done', 'absent', 'refused', 'failed'],
    },
  },
  {
    name: 'content_store_request_seconds',
    kind: 'histogram',
    help: 'Until the head of an answer of the object store.',
    labels: { operation: ['get', 'head', 'put', 'list', 'remove'] },
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  },
  {
    name: 'content_store_bytes_total',
    kind: 'counter',
    help: 'Bytes of objects that were read and written.',
    labels: { direction: ['in', 'out'] },
  },
  {
    name: 'content_store_reads_total',
    kind: 'counter',
    help: 'Content looked for in the object store: found in a pack, as an object, absent, forged, or not to be had.',
    labels: { outcome: ['packed', 'object', 'absent', 'forged', 'failed'] },
  },
  {
    name: 'content_store_puts_total',
    kind: 'counter',
    help: 'Content put into the object store: as an object, in a pack; there already; not to be put; failed.',
    labels: { outcome: ['object', 'packed', 'present', 'unsuited', 'failed'] },
  },
  { name: 'content_store_waiting', kind: 'gauge', help: 'Verified contents that have yet to be put.' },
  {
    name: 'upload_stored_items_total',
    kind: 'counter',
    help: 'Uploads that the object store has before their receipts leave, and those that it did not take.',
    labels: { outcome: ['put', 'failed'] },
  },
  {
    name: 'upload_taken_over_items_total',
    kind: 'counter',
    help: 'Accepted uploads that this machine has taken over from machines that are gone.',
  },
  {
    name: 'upload_stored_objects_total',
    kind: 'counter',
    help: 'Objects with uploads that were put, and that were not.',
    labels: { outcome: ['put', 'failed'] },
  },
  {
    name: 'neighbour_uploads_reads_total',
    kind: 'counter',
    help: 'Content looked for among the uploads that other machines keep in the object store.',
    labels: { outcome: ['packed', 'object', 'absent', 'forged', 'failed'] },
  },
  {
    name: 'neighbour_uploads_known',
    kind: 'gauge',
    help: 'Uploads of other machines that are known to be there.',
  },
  { name: 'content_store_known', kind: 'gauge', help: 'Contents that this gateway knows to be there.' },
]
