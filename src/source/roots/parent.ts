import { type AnySignal, signalOf } from '../../actor/lazy-signal.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Found, Source, Wanted } from '../source.js'
import type { BlobRoots } from './blob-roots.js'
import type { LocationLimits } from './item-location.js'
import { Items } from './items.js'

/** Data items out of bundles that are on disk: out of their root, or out of the bundle that holds them directly. */
export class Parent implements Source {
  readonly name = 'parent'
  readonly #items: Items

  constructor(roots: Pick<BlobRoots, 'open'>, limits: LocationLimits) {
    this.#items = new Items(this.name, (id) => roots.open(id), limits)
  }

  mayHave(wanted: Wanted): boolean {
    return this.#items.mayHave(wanted)
  }

  async open(wanted: Wanted, ending: AnySignal): Promise<Found | Refusal> {
    const signal = signalOf(ending)
    const found = await this.#items.open(wanted, signal)
    const { attributes } = wanted
    const place = attributes?.place
    if (!isRefusal(found) || attributes === undefined || place === undefined) return found
    if (found.refused !== 'unknown' || place.parentId === place.rootId) return found
    const { parentId, parentItemOffset } = place
    const inParent = { ...place, rootId: parentId, rootItemOffset: parentItemOffset, path: [parentId] }
    const nearer = await this.#items.open(
      { ...wanted, attributes: { ...attributes, place: inParent } },
      signal,
    )
    // The place in the parent served to read; what is reported stays the place in the root.
    return isRefusal(nearer) ? nearer : { ...nearer, learned: { ...nearer.learned, place } }
  }
}
