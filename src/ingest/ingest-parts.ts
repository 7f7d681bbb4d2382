import type { ItemFilter } from '../../config/item-filter.js'
import type { ChainOptions } from '../chain/remote-chain-options.js'
import type { ChunkOptions } from '../source/roots/chain-sources.js'
import type { LocationLimits } from '../source/roots/item-location.js'
import type { SharedSegments } from '../store/segments/segment-marks.js'
import type { FollowerParts } from './follower.js'
import type { MempoolOptions } from './mempool.js'
import type { FollowRules } from './next-step.js'
import type { UnbundlerOptions } from './unbundler.js'
import type { WebhookOptions } from './webhooks.js'

/** What makes the index grow is built of these. Plain values. */
export interface IngestParts {
  /** Folder of the catalog's environment, which the keeper has opened before. */
  readonly catalogPath: string
  readonly blobsPath: string
  /** Absent: every payload has a file of its own. */
  readonly segments?: SharedSegments
  /** Folder of what is still to be done; only this thread opens it. */
  readonly agendaPath: string
  /** Bundles that are brought; absent: all, while there is room in the store. */
  readonly keepFilter?: ItemFilter
  /** Bytes that the store may take. */
  readonly cacheMaxBytes: number
  /** `generationBytes` bytes. */
  readonly generations: SharedArrayBuffer
  /** Memory of the `Tip`: this thread moves it. */
  readonly tip: SharedArrayBuffer
  /** Memory of the `Following` table: this thread writes it. */
  readonly following: SharedArrayBuffer
  readonly meters: SharedArrayBuffer
  /** Its row in the table of meters. */
  readonly row: number
  readonly chain: ChainOptions
  readonly chunks: ChunkOptions
  readonly location: LocationLimits
  readonly follow: FollowRules
  /** As in `FollowerParts`. */
  readonly blockNews?: FollowerParts['blockNews']
  /** Blocks requested ahead. */
  readonly blocksAhead: number
  /** Headers of transactions on the way at once. */
  readonly headersAtOnce: number
  readonly unbundle: UnbundlerOptions
  /** Threads of the pool that verifies items; 0: on the thread itself. */
  readonly proofThreads: number
  /** Absent: transactions that wait for a block are not requested. */
  readonly mempool?: MempoolOptions
  /** Absent: nobody gets what was indexed. */
  readonly webhooks?: WebhookOptions
  /** Folder of events that wait for receivers. */
  readonly webhooksPath: string
  /** Bundles, and missing transactions, that are remembered at most. */
  readonly tasksMax: number
}

/** Values for everything that is not an operator's decision. */
export const ingestDefaults = {
  keeperMailboxMax: 64,
  headersAtOnce: 32,
  tasksMax: 1_000_000,
  haltedMs: 60_000,
  // 16 failures until the longest pause; orphans are looked for for some four minutes.
  unbundle: {
    depthMax: 10,
    entriesMax: 1_000_000,
    entriesAtOnce: 50_000,
    turnMs: 5000,
    stuckMs: 30_000,
    heldMaxBytes: 96 * 2 ** 20,
    retryMs: 500,
    retryMaxMs: 6 * 3_600_000,
    orphanLooks: 9,
  },
} as const
