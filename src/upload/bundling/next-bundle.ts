import { type Clock, isWithin } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Id } from '../../format/id.js'
import type { AcceptedItem, Uploads } from '../records/uploads.js'
import { type ChoiceRules, chooseItems } from './choice.js'

export interface NextRules extends ChoiceRules {
  /** No item waits longer for others. */
  readonly waitMs: number
}

/** Which items go into the next bundle, and when. */
export class NextBundle {
  /** Bytes of items that waited at the last look at all of them, unknown before it; and `enteredBytes` of then. */
  #waitingBytes = Number.POSITIVE_INFINITY
  #enteredBytes = 0
  /** The last choice had no room for free items. */
  #isFreeOwed = false

  constructor(
    private readonly uploads: Uploads,
    private readonly rules: NextRules,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly logger: Pick<Log, 'error'>,
  ) {}

  /** None where they may still wait for others. */
  items(): readonly AcceptedItem[] {
    const { uploads, rules, clock } = this
    if (!this.#mayBeFull()) return []
    // One more than fit shows whether others still wait.
    const limit = rules.itemsMax + 1 + uploads.unreadable.count
    const lines = {
      paid: this.#found(uploads.oldestPaid(limit)),
      free: this.#found(uploads.freeByTurns(limit)),
    }
    const { items, sizeBytes, isFull, isFreeOwed } = chooseItems(lines, rules, this.#isFreeOwed)
    // What is left over by a bundle is looked at anew.
    this.#waitingBytes = isFull ? Number.POSITIVE_INFINITY : sizeBytes
    this.#enteredBytes = uploads.enteredBytes
    const isDue = items.some(({ receivedMs }) => !isWithin(clock.now(), receivedMs, rules.waitMs))
    if (!isDue && !isFull) return []
    this.#isFreeOwed = isFreeOwed
    return items
  }

  /** Whether all that wait are to be looked at: ten thousand take a tenth of a second, and rounds come several times a second. */
  #mayBeFull(): boolean {
    const { uploads, rules, clock } = this
    const oldest = uploads
      .oldest(1 + uploads.unreadable.count)
      .find((id) => !uploads.unreadable.isResting(id, clock.now()))
    const first = oldest === undefined ? undefined : this.#row(oldest)
    if (oldest === undefined) return false
    if (first === undefined || !isWithin(clock.now(), first.receivedMs, rules.waitMs)) return true
    const newBytes = uploads.enteredBytes - this.#enteredBytes
    return uploads.waiting >= rules.itemsMax || this.#waitingBytes + newBytes >= rules.bytesMax
  }

  *#found(ids: Iterable<Id>): Generator<AcceptedItem> {
    for (const id of ids) {
      const isLeftOut = this.uploads.unreadable.isResting(id, this.clock.now())
      const item = isLeftOut ? undefined : this.#row(id)
      if (item !== undefined) yield item
    }
  }

  /** Undefined: its row cannot be read. It is left out as one whose bytes cannot be. */
  #row(id: Id): AcceptedItem | undefined {
    const { uploads, clock, logger } = this
    try {
      return uploads.find(id)
    } catch (error) {
      const reason = String(error)
      if (uploads.unreadable.note(id, reason, clock.now(), false))
        logger.error({ id, reason }, 'the record of an accepted upload cannot be read: it is set aside')
      return undefined
    }
  }
}
