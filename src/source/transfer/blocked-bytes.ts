import type { Attributes } from '../../catalog/attributes.js'
import type { Id } from '../../format/id.js'
import { blocksCopy } from '../blocked-places.js'
import type { Found } from '../source.js'
import type { Forbidden } from './transfer-parts.js'

/** Whether a copy was read out of what is blocked now. `forbidden` absent: nothing is. */
export function isBlockedCopy(
  forbidden: Forbidden | undefined,
  copy: Pick<Attributes, 'place'> | undefined,
): boolean {
  return copy !== undefined && forbidden?.mayBlockContent === true && blocksCopy(forbidden, copy)
}

/**
 * What one fetch may give of an item, as the block list says. The rules stand at `Guard`: bytes that are read out of blocked data
 * are not served. Where the copy on record was, it is left alone with its place, and only bytes count of which the source knows
 * what they are read out of.
 */
export class BlockedBytes {
  #needsPlace = false

  /** `forbidden` absent: nothing is. */
  constructor(
    private readonly id: Id,
    private readonly forbidden: Forbidden | undefined,
  ) {}

  /** The copy on record was read out of what is blocked. */
  get needsPlace(): boolean {
    return this.#needsPlace
  }

  /** Whether a copy may not be used; from then on places are needed. */
  drops(copy: Pick<Attributes, 'place'> | undefined): boolean {
    const isDropped = isBlockedCopy(this.forbidden, copy)
    this.#needsPlace ||= isDropped
    return isDropped
  }

  /** What is known, without the place of a copy that may not be used. */
  without(known: Attributes | undefined): Attributes | undefined {
    if (known === undefined || !this.drops(known)) return known
    const { place: _place, ...rest } = known
    return rest
  }

  /** Whether what the bytes are read out of must not be served, as far as the source knows or states it. */
  has({ around, hints }: Found): boolean {
    const { forbidden } = this
    if (forbidden?.mayBlockContent !== true) return false
    if (this.#needsPlace && around === undefined) return true
    const stated = hints.rootId === undefined ? [] : [hints.rootId]
    return forbidden.blocksId(this.id, [...(around ?? []), ...stated, ...(hints.path ?? [])])
  }
}
