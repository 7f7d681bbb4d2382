import type { Clock } from '../../actor/clock.js'
import type { Id } from '../../format/id.js'
import type { UnreadableItems } from '../records/unreadable-items.js'
import type { AcceptedItem } from '../records/uploads.js'
import { LooksInARow } from './looks-in-a-row.js'
import type { Damage } from './sending.js'

/** Looks, with none between them that finds all, before anything is for good. */
const looksMin = 4
/** Where the disk gives no bytes for so long they do not come back: a network disk, or a mount, does within minutes. */
const goneMs = 3_600_000

/** Bundles that were posted, so that they are paid for, and of which the disk does not give all items. */
export class DamagedBundles {
  readonly #looks: LooksInARow

  constructor(
    private readonly unreadable: Pick<UnreadableItems, 'find'>,
    clock: Pick<Clock, 'monotonic'>,
  ) {
    this.#looks = new LooksInARow(clock)
  }

  /** It is whole, or nothing is to be done with it any more. */
  remove(bundle: Id): void {
    this.#looks.end(bundle)
  }

  /**
   * Called with each look that finds it damaged: why, and whether that is for good. Looks may be hours apart, where others are
   * sent meanwhile. Other bytes than were accepted are for good sooner than none.
   */
  note(
    bundle: Id,
    items: readonly AcceptedItem[],
    how: Damage,
  ): { readonly reason: string; readonly isForGood: boolean } {
    const lost = items.flatMap(({ id }) => this.unreadable.find(id) ?? [])
    if (how === 'unreadable' && lost.length === 0) {
      this.remove(bundle)
      return { reason: 'its items are read once more', isForGood: false }
    }
    const { looks, passedMs } = this.#looks.add(bundle)
    const areOther = how === 'other' || lost.every(({ isOther }) => isOther)
    return {
      reason:
        how === 'other'
          ? 'its items are not those of its transaction'
          : `${lost.length} of its items cannot be read`,
      isForGood: looks >= looksMin && (areOther || passedMs >= goneMs),
    }
  }
}
