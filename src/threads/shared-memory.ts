import type { SharedSegments } from '../store/segments/segment-marks.js'
import type { Descriptors, DiskShares } from './resources.js'

/**
 * Memory that all threads share, and how disk and descriptors are divided: allocated once by the main thread, cloned into every
 * other one. Each table is written by one thread, or one row by each.
 */
export interface SharedMemory {
  /** Memory of `Generations`. */
  readonly generations: SharedArrayBuffer
  /** Memory of `SoundFiles`: which blobs were hashed. */
  readonly sound: SharedArrayBuffer
  /** Memory of the `ProgressTable`; its slots bound the readers of all edge threads together. */
  readonly progress: SharedArrayBuffer
  readonly meters: SharedArrayBuffer
  /** Rows of the meter table. */
  readonly rows: {
    readonly source: number
    readonly ingest: number
    readonly swarm: number
    readonly payment: number
    readonly upload: number
    readonly cluster: number
    readonly push: number
    readonly queries: number
  }
  /** Memory of `Tip`, `Following` and `Readiness`. */
  readonly tip: SharedArrayBuffer
  readonly following: SharedArrayBuffer
  readonly readiness: SharedArrayBuffer
  /** Memory of the `BlockFilter` in front of the block list. */
  readonly filter: SharedArrayBuffer
  /** Memory of `SampleRings`: recent requests, and clients that were refused. */
  readonly resources: SharedArrayBuffer
  readonly limited: SharedArrayBuffer
  /** Memory of `PendingMarks`: uploads that the tables may not show yet. */
  readonly pendingItems: SharedArrayBuffer
  /** Memory of the `PeerWeights` of the gateways of the network. */
  readonly peerWeights: SharedArrayBuffer
  /** How the disk of DATA_PATH is shared out. */
  readonly disk: DiskShares
  /** Absent: every payload has a file of its own. */
  readonly segments?: SharedSegments
  /** Absent where the system sets no bound. */
  readonly descriptors?: Descriptors
}
