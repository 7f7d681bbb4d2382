import type { MessagePort } from 'node:worker_threads'
import type { ClientOptions } from '../admission/clients.js'
import type { BroadcastOptions } from '../chain/broadcast.js'
import type { ChainOptions } from '../chain/options.js'
import type { ServeOptions } from '../http/listen.js'
import type { WebhookOptions } from '../ingest/webhooks.js'
import type { BundlingRules } from './bundler.js'
import type { FreeRules } from './free-pools.js'

/** What the thread says when it is up. */
export interface UploadThreadSaid {
  readonly port: number
}

/** What `workers/upload.ts` is started with (plain, cloned; ports transferred). */
export interface UploadThread {
  /** Opens its orders for the operator. */
  readonly adminKey: string
  /** Its row of the meter table. */
  readonly row: number
  readonly meters: SharedArrayBuffer
  readonly serve: Omit<ServeOptions, 'onThrow'>
  readonly drainMs: number
  /** Folder of the tables. */
  readonly tablesPath: string
  /** Folder of the log of accepted items. */
  readonly logFolder: string
  /** Memory of `PendingMarks`; absent: the gateway is elsewhere. */
  readonly pendingItems?: SharedArrayBuffer
  /** JSON Web Key of the wallet that signs receipts and bundles. */
  readonly keyFile: string
  /** The key that signs items of bytes that nobody has signed; made where it is missing. */
  readonly itemKeyFile: string
  /** Makes the wallet's key where there is none. */
  readonly mayMakeKey: boolean
  /** A line to the keeper of the catalog; absent: the gateway is elsewhere. */
  readonly catalogPort?: MessagePort
  /** A line to the thread that grows the index; absent: the gateway is elsewhere. */
  readonly ingestPort?: MessagePort
  /** A line to the payment service of this program. */
  readonly creditsPort?: MessagePort
  /** Or the one elsewhere. Where neither is there only what is free is taken. */
  readonly credits?: { readonly url: string; readonly secret: string }
  /** Messages under way to either at most. */
  readonly mailboxMax: number
  readonly chain: ChainOptions
  /** Between two questions for the chain's height. */
  readonly heightEveryMs: number
  readonly clients: ClientOptions
  readonly itemMaxBytes: number
  /** Folder of parts of items that are not whole yet, and how many bytes may lie there. */
  readonly partsFolder: string
  readonly partsMaxBytes: number
  readonly blockedOwners: readonly string[]
  readonly free: FreeRules
  /** In the addresses that offers of payments name. */
  readonly protocol: 'http' | 'https'
  /** A gateway elsewhere that is told of items and bundles: where it takes orders, and its admin key. */
  readonly news?: { readonly url: string; readonly key: string }
  /** Host or URL of the gateway that serves what was accepted. */
  readonly gateway: string
  readonly release: string
  /** Threads of the pool that checks signatures, and of the one that signs. */
  readonly proofThreads: number
  readonly signThreads: number
  /** Bytes of the disk that stay free. */
  readonly diskMinBytes: number
  readonly bundling: BundlingRules
  /** Nothing is posted, and items are kept for so long. */
  readonly sandbox?: { readonly keepMs: number; readonly everyMs: number }
  /** Who is told of uploads; absent: nobody. */
  readonly webhooks?: { readonly path: string; readonly options: WebhookOptions }
  readonly broadcast: BroadcastOptions
  /** Fills the wallet on a chain of its own: address of its node. */
  readonly mintAt?: string
  readonly logLevel: string
}
