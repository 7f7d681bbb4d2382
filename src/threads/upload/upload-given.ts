import type { MessagePort } from 'node:worker_threads'
import type { SecurePlace, ServeOptions } from '../../http/listen.js'
import type { WebhookOptions } from '../../ingest/webhooks.js'
import type { SharedMemory } from '../shared-memory.js'
import type { SettingsOf } from '../thread-settings.js'

/** What the thread says when it is up. */
export interface UploadReady {
  readonly port: number
}

/** What the thread of the upload service is started with. Plain: cloned, and the ports move. */
export interface UploadGiven {
  readonly settings: SettingsOf<'upload'>
  readonly memory: SharedMemory
  readonly serve: Pick<ServeOptions, 'host' | 'port' | 'lines'>
  /** Where it listens for HTTPS; absent: nowhere. `hidesOperators`: the routes for operators are not answered there. */
  readonly tls?: SecurePlace & { readonly hidesOperators: boolean }
  /** Base URLs of the nodes of the chain. */
  readonly nodes: readonly string[]
  /** Base URLs of the network's gateways, which state what was posted before. Empty on a chain of its own. */
  readonly networkGateways: readonly string[]
  /** Opens its orders for the operator. */
  readonly adminKey: string
  /** Host or URL of the gateway that serves what was accepted; '': there is none. */
  readonly gateway: string
  readonly ports: {
    /** Lines to the keeper of the catalog, and to what grows the index; absent: the gateway is elsewhere. */
    readonly catalog?: MessagePort
    readonly ingest?: MessagePort
    /** A line to the payment service of this program. */
    readonly payment?: MessagePort
  }
  /** The payment service elsewhere. Where there is neither, only what is free is taken. */
  readonly paymentService?: { readonly url: string; readonly secret: string }
  /** The payment services of other machines have the same ledger. */
  readonly isLedgerShared: boolean
  /** Where browsers reach a payment service; absent: pages show no dollars, and link no credits. */
  readonly publicPaymentUrl?: string
  /** Receivers of news about uploads; absent: none. */
  readonly webhooks?: WebhookOptions
  /** Fills the wallet on a chain of its own: address of its node. */
  readonly mintAt?: string
}
