import type { Id } from '../format/id.js'
import { isRefusal, type Refusal } from '../format/refusal.js'
import type { OpenedContent } from '../source/reading/transfer-client.js'
import { weightier } from '../source/refusals.js'
import type { Hints, Window } from '../source/source-messages.js'
import type { Finder, Transfers } from './gateway-parts.js'

/**
 * Opens `id` at the place of the client's hints or of a band. Hints with an offset are tried first, else the band, and then the
 * other one. The bytes are proven against the id in both cases. Where both fail, the more serious refusal is returned. `client`:
 * its address. `isOver`: it has left.
 */
export async function openGuided(
  id: Id,
  hints: Hints,
  finder: Finder | undefined,
  client: string,
  open: (hints: Hints) => Promise<OpenedContent | Refusal>,
  isOver: () => boolean,
): Promise<OpenedContent | Refusal> {
  const isExact = hints.itemOffset !== undefined
  const first = isExact ? hints : ((await finder?.find(id, client)) ?? hints)
  const opened = await open(first)
  if (!isRefusal(opened) || !mayLieElsewhere(opened) || isOver()) return opened
  const next = isExact ? await finder?.find(id, client) : first === hints ? undefined : hints
  const other = next?.rootId !== undefined ? next : elsewhere(opened, hints)
  if (other === undefined || isSame(other, first) || isOver()) return opened
  const again = await open(other)
  return isRefusal(again) ? weightier(opened, again) : again
}

/**
 * Opens a window of a payload. Where its size was not known before, and the source could not open it there, the whole is opened:
 * only that shows how large it is.
 */
export async function openWindow(
  transfers: Pick<Transfers, 'open'>,
  wanted: Parameters<Transfers['open']>[0],
  window: Window,
): Promise<OpenedContent | Refusal> {
  const opened = await transfers.open({ ...wanted, window })
  if (!isRefusal(opened) || window.mayEndEarlier !== true) return opened
  return opened.refused === 'unsatisfiable' || opened.refused === 'upstream' ? transfers.open(wanted) : opened
}

/** That what a client names as the place is blocked says nothing about an item that may lie elsewhere, too. */
function elsewhere({ refused }: Refusal, { rootId }: Hints): Hints | undefined {
  return refused === 'blocked' && rootId !== undefined ? {} : undefined
}

/** False where the network is slow or this gateway busy: a second try would add to the load. */
function mayLieElsewhere({ refused }: Refusal): boolean {
  return refused === 'unknown' || refused === 'upstream' || refused === 'forged' || refused === 'blocked'
}

function isSame(one: Hints, other: Hints): boolean {
  return one.rootId === other.rootId && one.itemOffset === other.itemOffset
}
