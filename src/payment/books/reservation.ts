import { type Refusal, refuse } from '../../format/refusal.js'
import type { RecordChange } from '../../ledger/ledger-port.js'
import type { EndOrder, MoveOrder } from '../../ledger/transfer.js'
import { acceptingMs, isBeyond, type UsdcFinished } from '../credits-port.js'

/** Accounts of payments for one item alone; behind it the name of the payment. */
export const paidPrefix = 'x402:'

/** The ledger's account that spent credits go to. */
export const revenue = 'revenue'

/** What was reserved for an item. */
export interface Reservation {
  /** From 0; one more after each refund, so that an item that comes again is charged again. */
  readonly attempt: number
  readonly address: string
  readonly bytes: number
  /** In the order in which they were taken. */
  readonly parts: readonly { readonly account: string; readonly winc: string }[]
  readonly refunded?: true
  /** How it ended where a payment of its own was held (`Reservations.finish`). */
  readonly finished?: UsdcFinished
  /** What the reservation pays for; absent: an upload. */
  readonly purpose?: Purpose
  /** Name of the order that reserved it. */
  readonly ticket?: string
  /**
   * The upload service that reserved or spent it, and since when (milliseconds since 1970). One that is accepting the item has
   * `acceptingMs` more.
   */
  readonly service?: string
  readonly heldMs?: number
  /** Names of other orders that were answered with this reservation, such as those of another service. */
  readonly joined?: readonly string[]
  /** Names of orders that were withdrawn, the youngest last: one that comes now reserves nothing. */
  readonly withdrawn?: readonly string[]
}

/** Who orders a reservation, and when (milliseconds since 1970). */
export interface Orderer {
  readonly ticket?: string | undefined
  readonly service?: string | undefined
  readonly atMs?: number | undefined
  /** The service accepts the item now. */
  readonly isAccepting?: boolean | undefined
}

/** How long a service may take to accept an item: so long, and a millisecond for so many bytes. Then it is gone. */
const [silentMs, bytesPerMs] = [60_000, 10_000]

/** Since when a service has what it orders. */
export function heldSince({ atMs = 0, isAccepting = false }: Orderer): number {
  return isAccepting ? atMs + acceptingMs : atMs
}

/** Which upload service has it, as the record says. `before`: what it stated earlier, which counts on. */
export function serviceOf(
  orderer: Orderer,
  before?: Pick<Reservation, 'service' | 'heldMs'>,
): Pick<Reservation, 'service' | 'heldMs'> {
  const { service } = orderer
  if (service === undefined) return {}
  const earlierMs = before?.service === service ? (before.heldMs ?? 0) : 0
  return { service, heldMs: Math.max(heldSince(orderer), earlierMs) }
}

/**
 * Whether another upload service has accepted the item, or is about to. One that reserved it long ago is gone: then who asks
 * takes its place. A payment for the item alone is nobody's until a service counts on it.
 */
export function elsewhere(
  held: Reservation,
  { service, atMs = 0 }: Orderer,
  isSpent: boolean,
): 'spent' | 'held' | undefined {
  if (held.service === undefined || service === undefined || held.service === service) return undefined
  if (isSpent) return 'spent'
  return isLeft(held, atMs) || !isCountedOn(held) ? undefined : 'held'
}

/** Whether the service that reserved it is gone: it has neither accepted the item for so long, nor stated that it will. */
export function isLeft(held: Reservation, atMs: number): boolean {
  return atMs - (held.heldMs ?? 0) > silentMs + held.bytes / bytesPerMs
}

/** Whether the service that a record names may still accept the item by it. */
function isCountedOn(held: Reservation): boolean {
  return isOfPayment(held) || ticketsOf(held).length > 0
}

/** Which upload service has what takes the place of `before`: the one that has that, unless it is gone; else the orderer. */
export function serviceAfter(
  before: Reservation | undefined,
  orderer: Orderer,
): Pick<Reservation, 'service' | 'heldMs'> {
  if (!isReserved(before) || !isCountedOn(before)) return serviceOf(orderer)
  const isKept = orderer.service === undefined || elsewhere(before, orderer, false) !== undefined
  return isKept ? serviceOf({ service: before.service, atMs: before.heldMs }) : serviceOf(orderer, before)
}

/** Stands for an item that only withdrawn orders are known of. */
export const nothingReserved: Reservation = { attempt: -1, address: '', bytes: 0, parts: [], refunded: true }
/** Orders of one item that are known to be withdrawn: the next one is given only when the one before is over. */
const withdrawnMax = 16

/** Orders of one item that are under way: each upload service has one. */
export const ticketsMax = 64

/** Whether something is reserved, or spent, for the item. */
export function isReserved(reservation: Reservation | undefined): reservation is Reservation {
  return reservation !== undefined && reservation.refunded !== true
}

/**
 * Whether a payment for this item alone is reserved. Nobody withdraws a payment: its item can be uploaded at any time, and so it
 * stays, whatever becomes of other orders that count on it.
 */
export function isOfPayment({ parts }: Reservation): boolean {
  return parts.some(({ account }) => account.startsWith(paidPrefix))
}

/** Whether what is reserved is for so many bytes, or as much as they cost. */
export function covers(held: Reservation, bytes: number, winc: bigint): boolean {
  return !isBeyond(held.bytes, bytes) || BigInt(totalOf(held)) >= winc
}

/** The same for so many bytes, which it covers: it does later, too, whatever they cost then. */
export function grownTo(held: Reservation, bytes: number): Reservation {
  return isBeyond(held.bytes, bytes) ? { ...held, bytes } : held
}

/** Orders that count on what is reserved: it stays until the last one is withdrawn. */
export function ticketsOf({ ticket, joined = [] }: Reservation): readonly string[] {
  return ticket === undefined ? joined : [ticket, ...joined]
}

/** The reservation with the tickets of the orders that count on it. */
export function withTickets(
  { ticket: _, joined: __, ...rest }: Reservation,
  tickets: readonly string[],
): Reservation {
  const [ticket, ...joined] = tickets
  return {
    ...rest,
    ...(ticket === undefined ? {} : { ticket }),
    ...(joined.length === 0 ? {} : { joined }),
  }
}

/** The reservation without an order. A payment stays, and is nobody's again where nobody counts on it any more. */
export function withoutTicket(before: Reservation, ticket: string): Reservation {
  const tickets = ticketsOf(before)
  const others = tickets.filter((one) => one !== ticket)
  const { service: _, heldMs: __, ...free } = before
  const isFree = isOfPayment(before) && others.length === 0 && tickets.length > 0
  return withTickets(isFree ? free : before, others)
}

/** The reservation when an order is withdrawn. */
export function withWithdrawn(before: Reservation, ticket: string): Reservation {
  return { ...before, withdrawn: [...(before.withdrawn ?? []), ticket].slice(-withdrawnMax) }
}

/** What a later reservation of the same item keeps from the one before. */
export function withdrawnOf(before: Reservation | undefined): Pick<Reservation, 'withdrawn'> {
  return before?.withdrawn === undefined ? {} : { withdrawn: before.withdrawn }
}

/** What credits are reserved for. */
export type Purpose = 'upload' | 'arns_purchase'

export const reservationKind = 'reservation'
export const partId = (
  what: 'reserve' | 'settle' | 'refund',
  itemId: string,
  attempt: number,
  part: number,
): string => `${what}:${itemId}:${attempt}:${part}`

/** The transfers that reserve it. */
export function reserveTransfers(
  itemId: string,
  { attempt, parts, purpose = 'upload' }: Reservation,
): MoveOrder[] {
  return parts.map(({ account, winc }, part) => ({
    id: partId('reserve', itemId, attempt, part),
    kind: 'pending',
    debit: account,
    credit: revenue,
    amount: BigInt(winc),
    reason: account.startsWith('approval:') ? `approved_${purpose}` : purpose,
    reference: itemId,
  }))
}

/** Decimal winc. */
export function totalOf({ parts }: Reservation): string {
  return String(parts.reduce((sum, { winc }) => sum + BigInt(winc), 0n))
}

/** The transfers that spend all of it. */
export function settleTransfers(
  itemId: string,
  { attempt, parts, purpose = 'upload' }: Reservation,
): EndOrder[] {
  return parts.map((_, part) => ({
    id: partId('settle', itemId, attempt, part),
    kind: 'post',
    pending: partId('reserve', itemId, attempt, part),
    reason: purpose,
    reference: itemId,
  }))
}

/** The transfers that spend what was used of a payment, and refund the rest to an account. */
export function finishTransfers(
  itemId: string,
  { attempt, parts }: Reservation,
  rest: string,
  { winc, refundWinc }: UsdcFinished,
): (EndOrder | MoveOrder)[] {
  const reference = itemId
  const spending: EndOrder = {
    id: partId('settle', itemId, attempt, 0),
    kind: 'post',
    reason: 'upload',
    reference,
    pending: partId('reserve', itemId, attempt, 0),
    amount: BigInt(winc),
  }
  if (refundWinc === '0') return [spending]
  const back: MoveOrder = {
    id: `${partId('refund', itemId, attempt, 0)}:rest`,
    kind: 'posted',
    debit: parts[0]?.account ?? '',
    credit: rest,
    amount: BigInt(refundWinc),
    reason: 'refunded_upload',
    reference,
  }
  return [spending, back]
}

/** The refusal for an item whose reservation contradicts the ledger. */
export function brokenReservation(itemId: string, why: string): Refusal {
  return refuse('defect', 'self', `item ${itemId} could not be settled: ${why}`)
}

/** The record of an item as it becomes. `before`: its version; absent: there is none. */
export function reservationChange(itemId: string, reservation: Reservation, before = 0): RecordChange {
  return { kind: reservationKind, key: itemId, value: JSON.stringify(reservation), expected: before }
}
