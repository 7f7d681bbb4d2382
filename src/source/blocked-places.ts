import type { Attributes } from '../catalog/attributes.js'
import type { Id } from '../format/id.js'

/** What decides whether an id, or one of others, is blocked. */
export interface BlockedIds {
  blocksId(id: Id, around?: readonly Id[]): boolean
}

/** Whether something that an item lies in, as far as its place is known, is blocked. */
export function blocksPlace(list: BlockedIds, { place }: Pick<Attributes, 'place'>): boolean {
  return place !== undefined && list.blocksId(place.rootId, [place.parentId, ...place.path])
}

/**
 * The same where the place is only that of a copy: one that a reader or another gateway named, and not the index. Bytes that are
 * read there must not be served. The item may lie elsewhere, too.
 */
export function blocksCopy(list: BlockedIds, { place }: Pick<Attributes, 'place'>): boolean {
  return place?.isIndexed !== true && blocksPlace(list, { ...(place === undefined ? {} : { place }) })
}
