import type { MessagePort } from 'node:worker_threads'
import type { TrustedGatewayEntry } from '../../../config/trusted-gateways.js'
import type { WebhookOptions } from '../../ingest/webhooks.js'
import type { SharedMemory } from '../shared-memory.js'
import type { SettingsOf } from '../thread-settings.js'

/**
 * What the thread of the fetcher is started with. It answers `SourceRequest` with `SourceReply` and sends `SourceProgress` events
 * on every port that comes. Plain: cloned, and the port moves.
 */
export interface SourceGiven {
  readonly settings: SettingsOf<'source'>
  readonly memory: SharedMemory
  /** Base URLs of the nodes of the chain. */
  readonly nodes: readonly string[]
  /** Gateways that content is fetched from. */
  readonly gateways: readonly TrustedGatewayEntry[]
  /** A line to the keeper of the catalog. */
  readonly ports: { readonly catalog: MessagePort }
  /** Receivers of newly cached content; absent: none. */
  readonly webhooks?: WebhookOptions
  /** The upload service runs in this program: its items are a source. */
  readonly hasUploads: boolean
}
