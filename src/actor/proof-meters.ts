import type { MeterRow } from './meter.js'

/** What proving cached content in the background does, and costs. */
export const proofMeters: readonly MeterRow[] = [
  { name: 'proofs_waiting', kind: 'gauge', help: 'Cached contents that wait for a proof.' },
  {
    name: 'proofs_oldest_seconds',
    kind: 'gauge',
    help: 'Since when the oldest content that waits for a proof has waited; found within minutes.',
  },
  {
    name: 'proofs_late_seconds',
    kind: 'gauge',
    help: 'For how long the first root has been due whose contents wait for a proof; 0: proving keeps up.',
  },
  {
    name: 'proofs_total',
    kind: 'counter',
    help: 'Judged contents: proven, wrong and removed, or not decided yet.',
    labels: { outcome: ['proven', 'wrong', 'undecided'] },
  },
  { name: 'proof_node_requests_total', kind: 'counter', help: 'Requests to nodes for proofs.' },
  {
    name: 'proof_processor_seconds_total',
    kind: 'counter',
    help: 'Processor time for proofs: measured, but for requests to nodes, which are counted with what one costs usually.',
  },
]
