import type { MessagePort } from 'node:worker_threads'
import type { ClientOptions } from '../admission/clients.js'
import type { EdgePayments } from '../admission/payments-wiring.js'
import type { Limits } from '../admission/wiring.js'
import type { KeyPlaces } from '../attest/keys.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import type { BandsReading } from '../bands/wiring.js'
import type { BroadcastOptions } from '../chain/broadcast.js'
import type { ChunkFinderOptions } from '../chain/chunk-finder.js'
import type { ChainOptions } from '../chain/options.js'
import type { ServeOptions } from '../http/listen.js'
import type { NamesThread } from '../names/wiring.js'
import type { QueryAsking } from '../query/wiring.js'
import type { MappedOptions } from '../store/mapped.js'
import type { SharedSegments } from '../store/segments/marks.js'
import type { GatewayOptions } from './options.js'
import type { HostOptions } from './parts.js'

/** What `workers/edge.ts` is started with. Says `{port}` when it listens. */
export interface EdgeThread extends QueryAsking {
  /** Row of this thread in the meter table. */
  readonly row: number
  readonly serve: Omit<ServeOptions, 'onThrow'>
  /** Where this thread serves the console; absent: it does not. */
  readonly console?: Pick<ServeOptions, 'host' | 'port'>
  /** Running answers may take so long after a stop was asked for. */
  readonly drainMs: number
  /** Line to the keeper of the catalog. */
  readonly catalogPort: MessagePort
  /** Line to the fetcher. */
  readonly sourcePort: MessagePort
  /** Line to the thread that grows the index. */
  readonly ingestPort: MessagePort
  /** Bytes of content that may lie on disk. */
  readonly cacheMaxBytes: number
  /** Line to the keeper of the block list. */
  readonly moderationPort: MessagePort
  /** Line to the tracker of our bands; absent: there is none. */
  readonly swarmPort?: MessagePort
  /** Folder of the block list and memory of its `Sieve`. */
  readonly moderation: {
    readonly path: string
    readonly sieve: SharedArrayBuffer
  }
  /** Opens the admin routes. */
  readonly adminKey: string
  /** Addresses of services of this program, whose orders the same key opens. */
  readonly services: {
    readonly upload?: string
    readonly payment?: string
    /** Gateways that lie, on a devnet with its site. */
    readonly liars?: string
  }
  /** Messages under way to either at most: above the flows of a thread, so that flows are the bound that is met. */
  readonly mailboxMax: number
  readonly catalogPath: string
  readonly bands: BandsReading
  readonly blobsPath: string
  /** Absent: every payload has a file of its own. */
  readonly segments?: SharedSegments
  readonly mapped: MappedOptions
  /** Memory for answers that the server repeats by itself; 0: it repeats none. */
  readonly repeatedMaxBytes: number
  /** Small blobs that this thread keeps open. */
  readonly heldFilesMax: number
  readonly generations: SharedArrayBuffer
  /** Memory of the `SoundFiles`. */
  readonly sound: SharedArrayBuffer
  readonly progress: SharedArrayBuffer
  readonly meters: SharedArrayBuffer
  readonly tip: SharedArrayBuffer
  /** Memory of the `Following` table. */
  readonly following: SharedArrayBuffer
  /** Memory of the `Readiness` table. */
  readonly readiness: SharedArrayBuffer
  readonly gateway: Omit<GatewayOptions, 'localOnlyClient'>
  /** Clients for whom no other gateway is asked. Absent: nobody. */
  readonly localOnly?: ClientOptions
  /**
   * Nodes, asked by this thread itself for chunks and whatever clients of nodes ask: the fetcher's thread keeps content, and
   * a chunk is sent and then dropped, so that the way through that thread would only cost time.
   */
  readonly chain: ChainOptions
  readonly chunks: {
    readonly finder: ChunkFinderOptions
    readonly broadcast: BroadcastOptions
    /** Posted data is checked, but not passed on to nodes. */
    readonly dryRun: boolean
    /** Bytes for which tokens are taken before a chunk in JSON is found. */
    readonly pricedBytes: number
    /** Larger transactions are not transferred to learn their digest for a chunk. */
    readonly learnMaxBytes: number
  }
  /** Absent: nobody is limited. */
  readonly limits?: Limits
  /** Line to the keeper of buckets, where there are limits. */
  readonly admissionPort?: MessagePort
  /** Absent: nothing is sold. */
  readonly payments?: EdgePayments
  /** Line to the cashier, where payments are taken. */
  readonly paymentsPort?: MessagePort
  readonly vocabulary: Vocabulary['name']
  readonly names: NamesThread
  /** Absent: hosts mean nothing. */
  readonly hosts?: HostOptions
  /** Name that the seeded site of a devnet gets, once it is there. Absent: nothing is seeded. */
  readonly prepares?: string
  /** Absent: answers are not signed. */
  readonly signing?: KeyPlaces & { readonly bindRequest: boolean; readonly reuseSeconds: number }
  readonly about: {
    readonly startedMs: number
    readonly release: string
    readonly network: string
    /** As operators write them. */
    readonly filters: Readonly<Record<'ans104UnbundleFilter' | 'ans104IndexFilter', object>>
    readonly wallet?: string
    readonly bundlers?: readonly string[]
    readonly itemsSilentMs?: number
  }
  /** Transactions that no node told of may be announced. */
  readonly optimistic: boolean
  /** Memory of the `SampleRings`: what was asked for, and which clients were refused. */
  readonly resources: SharedArrayBuffer
  readonly limited: SharedArrayBuffer
  /** Gateways of the network, and memory of their `PeerWeights`. */
  readonly peers: { readonly urls: readonly string[]; readonly weights: SharedArrayBuffer }
  readonly logLevel: string
}
