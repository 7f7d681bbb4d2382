import { isWithin } from '../../actor/clock.js'
import type { Id } from '../../format/id.js'

/** An accepted item that cannot be packed now. */
export interface UnreadableItem {
  readonly id: Id
  readonly reason: string
  /** Its bytes were read, and are others; no store has it. Else they may come back with their disk. */
  readonly isOther: boolean
  /** When this was found first. */
  readonly sinceMs: number
  /** When it was found last. */
  readonly lookedMs: number
}

/** So long nobody tries to read an item again. */
const restMs = 600_000

/**
 * Accepted items whose bytes cannot be read, or are not those that were accepted. They stay in their line, and others are packed
 * meanwhile. In memory alone: after a restart the next attempt to pack them finds them again.
 */
export class UnreadableItems {
  readonly #items = new Map<Id, UnreadableItem>()

  get count(): number {
    return this.#items.size
  }

  has(id: Id): boolean {
    return this.#items.has(id)
  }

  /** Whether it is left out now. */
  isResting(id: Id, nowMs: number): boolean {
    const item = this.#items.get(id)
    return item !== undefined && isWithin(nowMs, item.lookedMs, restMs)
  }

  find(id: Id): UnreadableItem | undefined {
    return this.#items.get(id)
  }

  /** False: it was known already. */
  note(id: Id, reason: string, nowMs: number, isOther: boolean): boolean {
    const known = this.#items.get(id)
    this.#items.set(id, { id, reason, isOther, sinceMs: known?.sinceMs ?? nowMs, lookedMs: nowMs })
    return known === undefined
  }

  /** Its bytes are right. */
  remove(id: Id): void {
    this.#items.delete(id)
  }

  some(limit: number): UnreadableItem[] {
    const all = this.#items.values()
    return Array.from({ length: Math.min(limit, this.count) }, () => all.next().value).flatMap(
      (one) => one ?? [],
    )
  }
}
