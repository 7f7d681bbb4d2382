import type { Id } from '../../format/id.js'
import type { BundleRecord } from './bundle-records.js'
import type { BundlerParts } from './bundler-parts.js'
import { LooksInARow } from './looks-in-a-row.js'

/** Nodes forget an anchor after so many blocks. */
const anchorBlocks = 50
/** A chain does not grow by so many blocks, a week, between two looks at its height. */
const impossibleBlocks = 5040
/** So many looks, over so many usual pauses, say that a transaction is lost: it may be paid for. */
const [looksMin, pausesMin] = [3, 5] as const

/** What decides that a transaction will never be in a block: only then its items may go into another one. */
export class LostBundles {
  readonly #looks: LooksInARow
  /** Records whose anchor has a height that no chain has: the height at the first look stands for it. */
  readonly #bounded = new Map<Id, number>()

  constructor(private readonly parts: Pick<BundlerParts, 'clock' | 'height' | 'rules'>) {
    this.#looks = new LooksInARow(parts.clock)
  }

  /** How many blocks ago its anchor has ended; below 1: it holds. */
  blocksOver({ id, anchorHeight }: Pick<BundleRecord, 'id' | 'anchorHeight'>): number {
    const height = this.parts.height()
    if (height !== undefined && anchorHeight > height + impossibleBlocks && !this.#bounded.has(id))
      this.#bounded.set(id, height)
    return (height ?? 0) - (this.#bounded.get(id) ?? anchorHeight) - anchorBlocks
  }

  /** Called with each look that shows so. True: there were several, over so many usual pauses, and no other one between. */
  note(id: Id, pauses: number = pausesMin): boolean {
    const { looks, passedMs } = this.#looks.add(id)
    return looks >= looksMin && passedMs >= pauses * this.parts.rules.lookMs
  }

  /** A look shows otherwise, or nothing is to be decided any more. */
  forget(id: Id): void {
    this.#looks.end(id)
  }
}
