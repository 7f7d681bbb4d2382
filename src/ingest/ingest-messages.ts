import type { Id } from '../format/id.js'
import type { PruneOrder } from './prune.js'

/** Orders of an operator to the thread that makes the index grow. */
export type IngestRequest =
  /** Open this bundle, without regard to the filter. On the agenda, and so on disk, when the reply comes. */
  | { readonly kind: 'queue-bundle'; readonly id: Id }
  /** Ask nodes for the header of this transaction now, and open it where it is a bundle that the filter wants. */
  | { readonly kind: 'queue-transaction'; readonly id: Id }
  /** Take data items out of the index. Answered when it is done. */
  | ({ readonly kind: 'prune' } & PruneOrder)
  /** Does this bundle wait to be opened? */
  | { readonly kind: 'waiting'; readonly id: Id }

/** Refusals: `busy`, where there is no room. */
export type IngestReply =
  | { readonly kind: 'queued' }
  | { readonly kind: 'pruned'; readonly items: number }
  | {
      readonly kind: 'waiting'
      readonly waits: boolean
      /** Times that it failed. */
      readonly attempts: number
      readonly dueMs?: number
    }
