import type { Clock } from '../../actor/clock.js'
import type { Id } from '../../format/id.js'
import type { UnreadableItems } from '../records/unreadable-items.js'
import type { AcceptedItem } from '../records/uploads.js'

/** Looks in a row, some 15 seconds, at which the disk gives other bytes than were accepted. */
const otherTimes = 4
/** Where the disk gives none for so long they do not come back: a network disk, or a mount, does within minutes. */
const goneMs = 3_600_000
/** Looks that are so far from each other are two failures of the disk, and not one that lasts. */
const apartMs = 3_600_000

/** Bundles that were posted, so that they are paid for, and of which the disk does not give all items. */
export class DamagedBundles {
  readonly #found = new Map<
    Id,
    { readonly sinceMs: number; readonly lastMs: number; readonly times: number }
  >()

  constructor(
    private readonly unreadable: Pick<UnreadableItems, 'find'>,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {}

  /** It is whole, or nothing is to be done with it any more. */
  remove(bundle: Id): void {
    this.#found.delete(bundle)
  }

  /** Called with each look that finds items which cannot be read: how many, and whether that is for good. */
  note(bundle: Id, items: readonly AcceptedItem[]): { readonly lost: number; readonly isForGood: boolean } {
    const lost = items.flatMap(({ id }) => this.unreadable.find(id) ?? [])
    const nowMs = this.clock.monotonic()
    const before = this.#found.get(bundle)
    const known = before !== undefined && nowMs - before.lastMs < apartMs ? before : undefined
    const found = { sinceMs: known?.sinceMs ?? nowMs, lastMs: nowMs, times: (known?.times ?? 0) + 1 }
    if (lost.length === 0) this.remove(bundle)
    else this.#found.set(bundle, found)
    const areOther = lost.every(({ isOther }) => isOther) && found.times >= otherTimes
    return { lost: lost.length, isForGood: lost.length > 0 && (areOther || nowMs - found.sinceMs >= goneMs) }
  }
}
