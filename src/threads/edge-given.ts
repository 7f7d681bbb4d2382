import type { MessagePort } from 'node:worker_threads'
import type { Secret } from '../admission/bucket-key.js'
import type { BucketPlace } from '../admission/open-buckets.js'
import type { SecurePlace, ServeOptions } from '../http/listen.js'
import type { SharedMemory } from './shared-memory.js'
import type { SettingsOf } from './thread-settings.js'

/** What an edge thread is started with; it says `{port}` when it listens. Plain: cloned, and the ports move. */
export interface EdgeGiven {
  readonly settings: SettingsOf<'edge'>
  readonly memory: SharedMemory
  /** Row of this thread in the meter table, from 1. */
  readonly row: number
  readonly serve: Pick<ServeOptions, 'host' | 'port' | 'lines'>
  /** Where this thread serves HTTPS; absent: it does not. `group`: shared memory of answers that came over TLS. */
  readonly tls?: SecurePlace & { readonly group: SharedArrayBuffer }
  /** Where this thread redirects to HTTPS; absent: it does not. `challenges`: folder of the answers of ACME challenges. */
  readonly redirect?: Pick<ServeOptions, 'host' | 'port'> & {
    readonly httpsPort: number
    readonly challenges: string
  }
  /** Where this thread serves the console, by plain HTTP and by HTTPS; absent: it does not. */
  readonly console?: Pick<ServeOptions, 'host' | 'port'> & { readonly tls?: SecurePlace }
  /** Base URLs of the nodes of the chain. */
  readonly nodes: readonly string[]
  readonly startedMs: number
  /** Opens the admin routes. */
  readonly adminKey: string
  /** Addresses of services of this program, whose orders the same key opens. */
  readonly services: {
    readonly upload?: string
    readonly payment?: string
    /** Where all visitors reach the payment service. */
    readonly publicPayment?: string
    /** Gateways that lie, on a devnet with its site. */
    readonly liars?: string
  }
  readonly ports: EdgePorts
  /** Indexed by the line to a query thread: memory of the table of clients that left. */
  readonly queryLeft: readonly SharedArrayBuffer[]
  /** Where the buckets are; absent: nobody is limited. */
  readonly limits?: {
    readonly place: BucketPlace
    /** Reported by the keeper of buckets when it is up. */
    readonly secret: Secret
  }
  /** Made once for all edge threads; absent: nothing is sold. */
  readonly sales?: EdgeSales
}

/** What comes with a line to a query thread that took the place of another one. */
export interface QueryLineNews {
  /** Which of the query threads, from 0. */
  readonly query: number
  /** Same as in `EdgeGiven.queryLeft`. */
  readonly left: SharedArrayBuffer
}

/** Lines to the threads that an edge thread asks. */
export interface EdgePorts {
  /** To the writer of the catalog, the fetcher, the writer of the block list, and what grows the index. */
  readonly catalog: MessagePort
  readonly source: MessagePort
  readonly moderation: MessagePort
  readonly ingest: MessagePort
  /** To each query thread. */
  readonly queries: readonly MessagePort[]
  /** To what this machine knows of its cluster; absent: it is in none. */
  readonly cluster?: MessagePort
  /** To the tracker of our bands; absent: nothing is seeded or fetched. */
  readonly swarm?: MessagePort
  /** To the keeper of buckets; absent: nobody is limited. */
  readonly admission?: MessagePort
  /** To the cashier; absent: nothing is sold. */
  readonly cashier?: MessagePort
}

/** What edge threads that sell have in common. */
export interface EdgeSales {
  /** Memory of the `Kinds` table. */
  readonly kinds: SharedArrayBuffer
  /** New at each start. Pages of an earlier run then show the lowest price, and must be loaded again. */
  readonly sealKey: Uint8Array
}
