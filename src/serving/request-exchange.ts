import type { Refusal } from '../format/refusal.js'
import type { FailureCode } from '../http/error-codes.js'
import type { Reply, Request, Sent } from '../http/exchange.js'
import type { Bounded } from '../names/name-marks.js'
import type { Naming } from './naming.js'
import type { Origin } from './origin.js'

export type Family = 'data' | 'raw' | 'manifest' | 'info' | 'other' | 'upload' | 'payment'

/** One request on its way through the steps. */
export interface Exchange {
  readonly request: Request
  readonly reply: Reply
  /** Read while the handler ran. */
  readonly method: string
  readonly path: string
  readonly requestId: string
  /** CORS and request id: first in every block. */
  readonly lines: string
  readonly startedMs: number
  readonly hops: number
  family: Family
  /** A manifest chose this content for a path that it does not have. */
  fallback: boolean
  /** The requested name, once it is resolved. */
  naming: Naming | undefined
  /** The first token of this exchange was taken, before a request to the network. */
  firstTokenTaken: boolean
  /**
   * Numbers in shared memory that the steps before `locate` depended on (the name, the manifest): the response cache sends the
   * answer again only while they are the same. Undefined: it cannot, because a step depended on something else.
   */
  cacheConditions: readonly Bounded[] | undefined
  /** Whether the content shares its origin with other content: see isolation.ts. */
  origin: Origin
  /** What was opened for this answer, until it is closed or `send` has it: a bug in a step closes it (`closeOpened`). */
  opened: { close(): void } | undefined
  /** Answers in place of the 404 for unknown content: set where a route yields to content (`src/routes/edge-handler.ts`). */
  onUnknown: (() => void) | undefined
  /** The reply was ended, or is being streamed: nobody else may end it. */
  answered: boolean
  /** Counted and logged. */
  finished: boolean
}

/** How an exchange ended, for the log and the meters. */
export interface Ending {
  readonly status: number
  readonly bytes: number
  /** In a few words why this status: `hit`, `miss`, `unchanged`, or the refusal's message. */
  readonly reason: string
  readonly outcome: Sent['outcome']
  /** `self`: the operator has to act. `upstream`: another server failed. */
  readonly fault?: Refusal['fault']
  readonly source?: string
  /** The code of a failure; absent: by the status. */
  readonly code?: FailureCode
}

export const families: readonly Family[] = ['data', 'raw', 'manifest', 'info', 'other', 'upload', 'payment']
