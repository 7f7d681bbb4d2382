import type { CacheRules } from './cache-control.js'
import type { LocalOnly } from './local-only.js'

/** What the operator chose for answers with content. */
export interface GatewayOptions {
  readonly cache: CacheRules
  readonly tagHeaders: boolean
  readonly tagsMax: number
  readonly tagBytesMax: number
  /** Routes for operators are answered over TLS, too. */
  readonly operatorsOverTls: boolean
  /** Blocks behind the tip after which content is final. */
  readonly forkDepth: number
  /** Lower-case host names of this gateway: where a request's via list has one of them, the request went in a loop. */
  readonly ownHosts: readonly string[]
  /** Release that is sent to other gateways as that of the origin. */
  readonly release: string
  /** Hops after which no request goes to other gateways. */
  readonly hopsMax: number
  /** Requests that are answered without asking other gateways. */
  readonly localOnly: Pick<LocalOnly, 'has'>
  /**
   * Blobs up to this size are checked before they are first served; larger ones are served unverified until they are checked.
   */
  readonly checkWaitBytes: number
  /** Memory that the prepared answers of a thread may take: 2 to 10 KiB each. */
  readonly entriesMaxBytes: number
  /** Larger manifests are not resolved. */
  readonly manifestMaxBytes: number
  /** Packed manifests that a thread keeps open: a descriptor each. */
  readonly manifestsOpenMax: number
  /** Manifests that a thread requests from the fetcher at once, an eighth of them for one client. */
  readonly manifestQuestionsMax: number
}
