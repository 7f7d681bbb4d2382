import type { Clock } from '../../actor/clock.js'
import type { Id } from '../../format/id.js'

/** Looks at bundles that have shown the same, with no other one between. */
export class LooksInARow {
  readonly #found = new Map<Id, { readonly sinceMs: number; readonly looks: number }>()

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /** One more. Returns how many there are now, and the time since the first of them, ms. */
  add(bundle: Id): { readonly looks: number; readonly passedMs: number } {
    const nowMs = this.clock.monotonic()
    const { sinceMs, looks } = this.#found.get(bundle) ?? { sinceMs: nowMs, looks: 0 }
    this.#found.set(bundle, { sinceMs, looks: looks + 1 })
    return { looks: looks + 1, passedMs: nowMs - sinceMs }
  }

  /** A look showed otherwise, or nothing is to be decided any more. */
  end(bundle: Id): void {
    this.#found.delete(bundle)
  }
}
