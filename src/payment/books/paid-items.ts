import { commitTriesMax, isRejected, type MoneyLedger } from '../../ledger/ledger-port.js'
import { isBeyond } from '../credits-port.js'
import {
  elsewhere,
  heldSince,
  isOfPayment,
  isReserved,
  type Orderer,
  partId,
  type Reservation,
  reservationChange,
  reservationKind,
  serviceOf,
  totalOf,
} from './reservation.js'

/** What is reserved for an item, as it is written down. */
export interface FoundReservation {
  readonly reservation: Reservation
  readonly version: number
}

/** A service that waits states so often that it still counts on a payment. */
const renewMs = 10_000

/** What is reserved for an item, with the version of its record; undefined: nothing is. */
export async function findReservation(
  ledger: Pick<MoneyLedger, 'record'>,
  itemId: string,
): Promise<FoundReservation | undefined> {
  const stored = await ledger.record(reservationKind, itemId)
  if (stored === undefined) return undefined
  return { reservation: JSON.parse(stored.value) as Reservation, version: stored.version }
}

/** Whether it has paid for an accepted item. */
export async function isSpent(
  ledger: Pick<MoneyLedger, 'endingsOf'>,
  itemId: string,
  { attempt, parts }: Reservation,
): Promise<boolean> {
  const pending = parts.map((_, part) => partId('reserve', itemId, attempt, part))
  return (await ledger.endingsOf(pending)).some((end) => end.kind === 'post')
}

/** Whether another upload service than the orderer has accepted the item, or is about to. Writes nothing. */
export async function takenElsewhere(
  ledger: MoneyLedger,
  itemId: string,
  orderer: Orderer,
): Promise<'spent' | 'held' | undefined> {
  if (orderer.service === undefined) return undefined
  const reservation = (await findReservation(ledger, itemId))?.reservation
  if (!isReserved(reservation) || elsewhere(reservation, orderer, true) === undefined) return undefined
  return elsewhere(reservation, orderer, await isSpent(ledger, itemId, reservation))
}

/**
 * Winc that a payment, or spent credits, have paid for an item of so many bytes; undefined: it is not paid. The service of the
 * orderer has what is reserved from now on: any other one learns that it is paid there (`spent`), or is about to be (`held`).
 */
export async function paidFor(
  ledger: MoneyLedger,
  itemId: string,
  bytes: number,
  orderer: Orderer,
): Promise<bigint | 'spent' | 'held' | undefined> {
  for (let tries = 0; tries < commitTriesMax; tries += 1) {
    const found = await findReservation(ledger, itemId)
    const held = found?.reservation
    if (!isReserved(held)) return undefined
    const isOver = await isSpent(ledger, itemId, held)
    const other = elsewhere(held, orderer, isOver)
    if (other !== undefined) return other
    if (isBeyond(held.bytes, bytes) || !(isOver || isOfPayment(held))) return undefined
    const winc = BigInt(totalOf(held))
    if (isOver || isNoted(held, orderer)) return winc
    const records = [reservationChange(itemId, { ...held, ...serviceOf(orderer, held) }, found?.version)]
    if (!isRejected(await ledger.commit({ transfers: [], records }))) return winc
  }
  return 'held'
}

/** Whether the record states already that the orderer's service counts on it. */
function isNoted(held: Reservation, orderer: Orderer): boolean {
  if (orderer.service === undefined) return true
  return held.service === orderer.service && heldSince(orderer) - (held.heldMs ?? 0) < renewMs
}
