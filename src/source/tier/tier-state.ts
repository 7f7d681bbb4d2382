import type { StoreFault } from '../objects/object-store.js'
import type { PutLimit } from './put-budget.js'

/** Why a store is not used although it answers. */
export type TierMismatch = 'other network' | 'newer format' | 'no conditional writes'

/** A way over all content. Counts begin anew with each. */
export interface TierWalk {
  readonly kind: 'push' | 'pull'
  /** `over`: all was seen; of a push, all that it found is in the store besides. */
  readonly state: 'running' | 'over' | 'stopped' | 'failed'
  /** Contents that were looked at. */
  readonly seen: number
  /** Push: contents that were to be put. Pull: contents that were brought. */
  readonly moved: number
  /** Contents that are there already, and such as have no place in the store. */
  readonly skipped: number
  /** Pull: contents that could not be brought. */
  readonly failed: number
  /** Why it failed or stopped. */
  readonly reason?: string
}

/** What an operator sees of the store. */
export interface TierState {
  /** `opening`: nothing was heard of it yet. `well`, or what is wrong. */
  readonly state: 'opening' | 'well' | 'read only' | TierMismatch | StoreFault | PutLimit
  /** Contents that have yet to be put. */
  readonly waiting: number
  /** Contents in packs, of all machines. */
  readonly packed: number
  /** Objects that this machine put, or found there. */
  readonly objects: number
  readonly walk?: TierWalk
}
