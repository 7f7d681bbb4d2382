import { commitTriesMax, isRejected } from '../../ledger/ledger-port.js'
import { type FoundReservation, findReservation } from './paid-items.js'
import { type RefundParts, refundTransfers } from './refund-transfers.js'
import { isLeft, isOfPayment, reservationChange } from './reservation.js'

/** Refunds what was reserved, or spent. False: it has changed meanwhile. */
export async function refundFound(
  parts: RefundParts,
  itemId: string,
  found: FoundReservation,
): Promise<boolean> {
  return refundBy(parts, itemId, found, await refundTransfers(parts, itemId, found.reservation))
}

/**
 * Refunds a payment that is reserved for an item which only the service that reserved it can accept, where that service is gone
 * (`isLeft`). Resolves with whether it is refunded; false: it is spent, or may still be.
 */
export async function refundLeft(parts: RefundParts, itemId: string, atMs: number): Promise<boolean> {
  for (let tries = 0; tries < commitTriesMax; tries += 1) {
    const found = await findReservation(parts.ledger, itemId)
    if (found === undefined) return false
    const { reservation } = found
    if (reservation.refunded === true) return true
    // The record of a service without a name states no time.
    const isGone = reservation.service !== undefined && isOfPayment(reservation) && isLeft(reservation, atMs)
    if (!isGone) return false
    const back = await refundTransfers(parts, itemId, reservation)
    if (back.transfers.every(({ kind }) => kind !== 'void')) return false
    // It fails where the item was accepted meanwhile, because nothing is pending any more.
    if (await refundBy(parts, itemId, found, back)) return true
  }
  return false
}

async function refundBy(
  { ledger }: RefundParts,
  itemId: string,
  { reservation, version }: FoundReservation,
  { transfers, records }: Awaited<ReturnType<typeof refundTransfers>>,
): Promise<boolean> {
  const given = reservationChange(itemId, { ...reservation, refunded: true }, version)
  return !isRejected(await ledger.commit({ transfers, records: [given, ...records] }))
}
