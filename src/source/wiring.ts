import type { MessagePort } from 'node:worker_threads'
import type { ChainOptions } from '../chain/options.js'
import type { SharedSegments } from '../store/segments/marks.js'
import type { AbsenceOptions } from './absences.js'
import type { ChunkOptions } from './chain-sources.js'
import type { EvictionOptions } from './evictor.js'
import type { FetchOptions } from './fetch-parts.js'
import type { LocationLimits } from './locate.js'
import type { ManifestOptions } from './manifest-shelf.js'
import type { PeerOptions } from './network-peers.js'
import type { RootLookupOptions } from './root-lookup.js'
import type { TrustedGatewaysOptions } from './trusted-gateways.js'

/** How content is proven after it was kept. */
export interface VerifierOptions {
  /** Payloads waiting to be proven; the catalog remembers the rest. */
  readonly waitingMax: number
  /** Between two looks into the catalog for what is left to prove. */
  readonly everyMs: number
  /** Until the second look at one id; doubles with each further one, up to an hour. */
  readonly retryMs: number
  /** Looks at one id before it is left alone. */
  readonly attemptsMax: number
}

/**
 * What `workers/source.ts` is started with (plain, cloned; `keeper` transferred). It answers `SourceRequest` with
 * `SourceReply` and sends `SourceProgress` events on every port that `{connect: port}` brings.
 */
export interface SourceThread {
  /** Folder of the blobs. */
  readonly blobsPath: string
  /** Absent: every payload has a file of its own. */
  readonly segments?: SharedSegments
  /** Folder of what must stay on disk; absent: nothing can be pinned. */
  readonly pinsPath?: string
  /** Folder of the packed manifests. */
  readonly manifestsPath: string
  readonly manifests: ManifestOptions
  /** Folder of the catalog's environment, which the keeper has opened before. */
  readonly catalogPath: string
  /** A line to the keeper of the catalog. */
  readonly keeper: MessagePort
  /** Messages to the keeper under way at most. */
  readonly keeperMailboxMax: number
  /** `generationBytes` bytes. */
  readonly generations: SharedArrayBuffer
  /** `soundBytes()` bytes: which blobs were hashed. */
  readonly sound: SharedArrayBuffer
  readonly meters: SharedArrayBuffer
  /** Its row in the table of meters. */
  readonly row: number
  /** `progressBytes(slots)` bytes: slots bound the readers of all edge threads together. */
  readonly progress: SharedArrayBuffer
  /** Names of sources in order; those that are not built are skipped. */
  readonly order: readonly string[]
  readonly gateways: TrustedGatewaysOptions
  /** Absent: no peers are known. */
  readonly peers?: PeerOptions & {
    /** Memory of their `PeerWeights`. */
    readonly weights: SharedArrayBuffer
  }
  /** Undefined: no node is asked, nothing is proven. */
  readonly chain?: ChainOptions
  readonly chunks: ChunkOptions
  readonly location: LocationLimits
  /** Absent: nobody else is asked where an item lies. */
  readonly roots?: RootLookupOptions
  readonly fetch: FetchOptions
  /** Transfers under way at once. */
  readonly fetchesMax: number
  /** Absent: what nobody knows is asked for each time. */
  readonly absence?: AbsenceOptions
  readonly joinBytes: number
  readonly wholeForWindowMaxBytes: number
  readonly eviction: EvictionOptions
  /** Folder of the block list, and memory of the sieve in front of it. */
  readonly moderation: { readonly path: string; readonly sieve: SharedArrayBuffer }
  /** Absent: what is cached is not proven. */
  readonly verifier?: VerifierOptions
  /** Asked for proven bytes where cached ones proved wrong; names in order. */
  readonly backgroundOrder: readonly string[]
  /** Threads of the pool that hashes and verifies files; 0: hashes on the fetcher's own thread. */
  readonly proofThreads: number
  readonly logLevel: string
}

/** Values for everything that is not an operator's decision. */
export const sourceDefaults = {
  keeperMailboxMax: 1024,
  chunks: { aheadMax: 10, concurrencyMax: 50 },
  location: { depthMax: 10, headersMax: 1000, headerMaxBytes: 67_108_864 },
  fetch: { wholeFirstMaxBytes: 2_097_152, finishBytes: 8_388_608, finishShare: 0.75 },
  fetchesMax: 512,
  joinBytes: 2_097_152,
  wholeForWindowMaxBytes: 268_435_456,
  eviction: { everyMs: 15_000, graceMs: 60_000, orphanMs: 3_600_000 },
  // 14 looks: one block time after two seconds, and nearly five hours in all for what is pending.
  verifier: { waitingMax: 10_000, everyMs: 60_000, retryMs: 2000, attemptsMax: 14 },
  backgroundOrder: ['chunks-offset-aware', 'tx-data'],
} as const
