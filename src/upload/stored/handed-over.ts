import type { Id } from '../../format/id.js'
import type { DurableLog } from '../../store/segments/durable-log.js'
import type { Uploads } from '../records/uploads.js'
import { decodeGroupName } from './stored-keys.js'

/**
 * Leaves the uploads under names that another machine has taken over to that machine. What waits for a bundle is forgotten here:
 * the other machine has accepted it, too, because a paid item is accepted only while its group is held (`StoredUploads.holds`).
 * What is in a bundle of this machine stays: its transaction may be in a block already. It is marked, so that a bundle that no
 * node has is not posted, and leaves its items to that machine. Returns ids of these, which no group of this machine has.
 * Nothing may be packed meanwhile. Throws where the disk refuses.
 */
export function handOver(
  uploads: Uploads,
  itemLog: Pick<DurableLog, 'release'>,
  isTakenOver: (name: string) => boolean,
): { readonly stay: readonly Id[]; readonly left: number } {
  const isLost = (group: string): boolean => isTakenOver(decodeGroupName(group)?.node ?? '')
  const stay: Id[] = []
  let left = 0
  for (const group of uploads.stored.groups()) {
    if (!isLost(group)) continue
    const items = [...uploads.stored.ids(group)].flatMap((id) => {
      const item = uploads.find(id)
      return item === undefined || item.released === true || item.stored !== group ? [] : [item]
    })
    const waiting = items.filter(({ bundle }) => bundle === undefined)
    const packed = items.filter(({ bundle }) => bundle !== undefined)
    uploads.environment.write(() => {
      uploads.stored.forget(group)
      for (const { stored: _, ...item } of packed) uploads.put({ ...item, isTakenOver: true })
      // The group is not this machine's to be ended.
      for (const { stored: _, ...item } of waiting) uploads.leave(item)
    })
    for (const { place } of waiting) itemLog.release(place)
    stay.push(...packed.map(({ id }) => id))
    left += waiting.length
  }
  endNoMore(uploads, isLost)
  return { stay, left }
}

/** Groups that were to be removed are left to the machine that has the name now. */
function endNoMore(uploads: Uploads, isLost: (group: string) => boolean): void {
  const ended = uploads.stored.ended(Number.MAX_SAFE_INTEGER).filter(isLost)
  if (ended.length === 0) return
  uploads.environment.write(() => {
    for (const group of ended) uploads.stored.removed(group)
  })
}
