import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'
import { weightier } from '../source/refusals.js'
import type { Hints } from '../source/source-messages.js'
import type { Finder } from './gateway-parts.js'

/**
 * Opens `id` at the place of the client's hints or of a band. Hints with an offset are tried first, else the band, and then the
 * other one. The bytes are proven against the id in both cases. Where both fail, the more serious refusal is returned. `isOver`:
 * the client has left.
 */
export async function openGuided(
  id: Id,
  hints: Hints,
  finder: Finder | undefined,
  open: (hints: Hints) => Promise<OpenedContent | Refusal>,
  isOver: () => boolean,
): Promise<OpenedContent | Refusal> {
  const isExact = hints.itemOffset !== undefined
  const first = isExact ? hints : ((await finder?.find(id)) ?? hints)
  const opened = await open(first)
  if (!isRefusal(opened) || !mayLieElsewhere(opened) || isOver()) return opened
  const other = isExact ? await finder?.find(id) : hints
  if (other?.rootId === undefined || isSame(other, first) || isOver()) return opened
  const again = await open(other)
  return isRefusal(again) ? weightier(opened, again) : again
}

/** False where the network is slow or this gateway busy: a second try would add to the load. */
function mayLieElsewhere({ refused }: Refusal): boolean {
  return refused === 'unknown' || refused === 'upstream' || refused === 'forged'
}

function isSame(one: Hints, other: Hints): boolean {
  return one.rootId === other.rootId && one.itemOffset === other.itemOffset
}
