import type { Refusal } from '../format/refusal.js'
import { refuse } from '../format/refusal.js'
import type { Subscription } from './subscription.js'

/** Who may sign for a followed publisher. */
export interface AllowedSigners {
  /** Base58 of Ed25519 keys. */
  readonly keyIds: readonly string[]
  /** Base58 address that the document must name; undefined: the keys alone identify the publisher. */
  readonly publisher?: string
}

/** A source of the keys of publishers. */
export interface PublisherKeys {
  /**
   * Keys that may sign now. Never rejects. Refusals: `unknown` (nobody of this name is known), `upstream`, `late`, `malformed`,
   * `too-large` (no valid answer of the registry): nothing is followed then, and what is here stays.
   */
  of(subscription: Subscription, end: AbortSignal): Promise<AllowedSigners | Refusal>
}

/** The keys from the operator's setting: ADDRESS#KEY. */
export class PinnedKeys implements PublisherKeys {
  async of(subscription: Subscription): Promise<AllowedSigners | Refusal> {
    if ('keyId' in subscription) return { keyIds: [subscription.keyId] }
    return refuse('unknown', 'self', `no registry knows the keys of ${subscription.publisher}`)
  }
}
