import type { Clock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import type { Address } from '../actor/mailbox-address.js'
import type { Tip } from '../actor/shared.js'
import type { Attributes } from '../catalog/attributes.js'
import type { CatalogReply, CatalogRequest } from '../catalog/catalog-messages.js'
import type { LmdbCatalog } from '../catalog/reader.js'
import type { Id } from '../format/id.js'
import type { RootHeights } from '../source/roots/root-heights.js'
import type { Evidence } from './evidence.js'
import type { ProofAgenda } from './proof-agenda.js'
import type { ProofBudget } from './proof-budget.js'

/** What proves cached content, and who hears of it. */
export interface VerifierParts {
  readonly catalog: LmdbCatalog
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly heights: Pick<RootHeights, 'of'>
  readonly evidence: Evidence
  /** Drops the bytes that proved wrong, forgets what came with them, and brings proven ones. */
  readonly replace: (known: Attributes, digest: Uint8Array) => Promise<void>
  readonly agenda: ProofAgenda
  readonly budget: ProofBudget
  /** Hears of contents that were proven, after the catalog has it. */
  readonly onProven?: (ids: readonly Id[]) => void
  /** Moves with each block that the program hears of. */
  readonly tip: Pick<Tip, 'growths'>
  readonly meters: VerifierMeters
  readonly clock: Clock
  readonly log: Log
  /** From 0 up to, not including, 1; for pauses. */
  readonly random: () => number
}

export interface VerifierMeters {
  waiting(count: number, oldestSeconds: number, lateSeconds: number): void
  judged(outcome: 'proven' | 'wrong' | 'undecided', count: number): void
}
