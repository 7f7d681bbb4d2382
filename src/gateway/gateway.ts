import type { Address } from '../actor/address.js'
import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Meters } from '../actor/meter.js'
import type { Tip } from '../actor/shared.js'
import type { Signer } from '../attest/signature.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import type { Catalog } from '../catalog/protocol.js'
import type { Refusal } from '../format/refusal.js'
import type { Reply, Request } from '../http/exchange.js'
import type { SourceReply, SourceRequest } from '../source/protocol.js'
import type { Content } from '../store/content.js'
import type { MappedContent } from '../store/mapped.js'

/** A flow that the fetcher opened. */
export type Opened = Extract<SourceReply, { kind: 'opened' }>

/** Where the bytes are, as this edge thread reaches them. */
export interface Contents {
  /** Path of the blob with this SHA-256, whether or not it is there. */
  blobPath(digest: Uint8Array): string
  /** The whole file at a path (store/mapped.ts), or undefined where there is none. */
  open(path: string): MappedContent | undefined
  /** Reader of a growing file (source/growing.ts). Its `close` tells the fetcher `close`, once. */
  grow(opened: Opened): Content
}

/** Asked before any byte is sent; knows exactly how many there will be. */
export interface Admission {
  /** Takes tokens for `bytes` of body. */
  take(request: Request, bytes: number): Refusal | undefined
  /** Gives back what was taken for bytes that were not sent. */
  refund(request: Request, bytes: number): void
}

/** Seconds and bounds of the Cache-Control ladder. */
export interface CacheRules {
  readonly defaultSeconds: number
  readonly stableSeconds: number
  readonly trustedSeconds: number
  readonly unstableSeconds: number
  readonly notFoundSeconds: number
  /** Larger content is private to the client. */
  readonly privateSizeBytes: number
  /** Patterns such as `video/*`; `*` does not cross the slash. */
  readonly privateTypes: readonly string[]
}

export interface GatewayOptions {
  readonly cache: CacheRules
  readonly tagHeaders: boolean
  readonly tagsMax: number
  readonly tagBytesMax: number
  /** Blocks behind the tip after which content is final. */
  readonly forkDepth: number
  /** Lower-case host names of this gateway: seen in a request's via list, the request went in a circle. */
  readonly ownHosts: readonly string[]
  readonly release: string
  /** Prepared entries kept per thread. */
  readonly entriesMax: number
  /** Larger manifests are not resolved. */
  readonly manifestMaxBytes: number
}

/** A route beside content: info, health, metrics, chain passthrough. */
export interface Route {
  readonly family: 'info' | 'other'
  /** Lower case. A path that ends in `/` takes everything below it, any other only itself. */
  readonly path: string
  readonly methods: readonly string[]
  /**
   * Answers. `lines` (request id and CORS) go first into the block of whatever head it sends. Ends the reply exactly once,
   * now or later.
   */
  handle(request: Request, reply: Reply, lines: string): void | Promise<void>
}

export interface GatewayParts {
  readonly catalog: Catalog
  readonly source: Address<SourceRequest, SourceReply>
  readonly contents: Contents
  /** Undefined: answers are not signed. */
  readonly signer?: Signer
  readonly vocabulary: Vocabulary
  readonly tip: Tip
  readonly meters: Meters
  readonly log: Log
  readonly clock: Clock
  readonly admission?: Admission
  readonly routes?: readonly Route[]
  readonly options: GatewayOptions
}

/** The defaults of the options; an operator's settings go over them. */
export const gatewayDefaults: GatewayOptions = {
  cache: {
    defaultSeconds: 30,
    stableSeconds: 2_592_000,
    trustedSeconds: 43_200,
    unstableSeconds: 7200,
    notFoundSeconds: 60,
    privateSizeBytes: 104_857_600,
    privateTypes: [],
  },
  tagHeaders: true,
  tagsMax: 100,
  tagBytesMax: 8192,
  forkDepth: 18,
  ownHosts: [],
  release: 'sluice',
  entriesMax: 4096,
  manifestMaxBytes: 16_777_216,
}

/** What answers requests on one edge thread. `close` gives back every mapping that prepared entries hold. */
export interface Gateway {
  handle(request: Request, reply: Reply): void
  close(): void
}

/** Builds the gateway of one edge thread. */
export function createGateway(_parts: GatewayParts): Gateway {
  throw new Error('not built yet')
}
