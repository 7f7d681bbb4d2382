import type { SecurePlace, ServeOptions } from '../../http/listen.js'
import type { SharedMemory } from '../shared-memory.js'
import type { SettingsOf } from '../thread-settings.js'
import type { CdpKey } from './cashier-options.js'

/** What the thread says when it is up. */
export interface PaymentReady {
  readonly port: number
}

/**
 * What the thread of the payment service is started with; it answers `CreditsRequest` with `CreditsReply` on every port that
 * comes. Plain: it is cloned.
 */
export interface PaymentGiven {
  readonly settings: SettingsOf<'payment'>
  readonly memory: SharedMemory
  readonly serve: Pick<ServeOptions, 'host' | 'port' | 'lines'>
  /** Where it listens for HTTPS; absent: nowhere. `hidesOperators`: the routes for operators are not answered there. */
  readonly tls?: SecurePlace & { readonly hidesOperators: boolean }
  /** Base URLs of the nodes of the chain. */
  readonly nodes: readonly string[]
  /** Opens its orders for the operator. */
  readonly adminKey: string
  /** Host or URL of the gateway; '': there is none. */
  readonly gateway: string
  /** What the services of one operator have in common. */
  readonly privateSecret: string
  /** The upload service of this program counts what is free; else one elsewhere, or nothing is free. */
  readonly isUploadHere: boolean
  /** The key of the provider of the facilitator; absent: no request is signed. */
  readonly cdp?: CdpKey
}
