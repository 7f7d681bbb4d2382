import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { type CommitOrder, commitTriesMax, isRejected, type RecordChange } from '../../ledger/ledger-port.js'
import type { MoveOrder } from '../../ledger/transfer.js'
import { isBeyond, type UsdcFinished, usdcShare } from '../credits-port.js'
import { type FoundReservation, findReservation, isSpent, paidFor, takenElsewhere } from './paid-items.js'
import { type RefundParts, refundTransfers } from './refund-transfers.js'
import { refundFound, refundLeft } from './refunds.js'
import {
  brokenReservation,
  covers,
  elsewhere,
  finishTransfers,
  grownTo,
  isOfPayment,
  isReserved,
  nothingReserved,
  type Orderer,
  type Purpose,
  type Reservation,
  reservationChange,
  reserveTransfers,
  serviceAfter,
  serviceOf,
  settleTransfers,
  ticketsMax,
  ticketsOf,
  totalOf,
  withdrawnOf,
  withoutTicket,
  withTickets,
  withWithdrawn,
} from './reservation.js'
import { accountOf } from './wallets.js'

/** The payers of an item with their amounts, and the changes of their approvals. */
export interface PayersPlan {
  readonly parts: Reservation['parts']
  readonly records: readonly RecordChange[]
}

/** An order to reserve credits. */
export interface ReserveCredits extends Orderer {
  readonly itemId: string
  readonly bytes: number
  readonly purpose: Purpose
  /** Written in the same commit, where something is reserved anew. */
  readonly records: readonly RecordChange[] | undefined
  /** What the item costs. */
  readonly winc: () => Promise<bigint | Refusal>
  /** Who orders the reservation. */
  readonly wallet: () => Promise<string>
  /** The accounts that pay, and how much each; undefined: those who may pay do not have it. */
  readonly plan: (wallet: string, winc: bigint) => Promise<PayersPlan | undefined>
}

/** Money that comes in for one item alone. */
export interface ReservePayment extends Orderer {
  readonly itemId: string
  readonly bytes: number
  /** Wallet that gets what is not used. */
  readonly address: string
  /** The transfer by which it comes in, to an account of its own. */
  readonly incoming: MoveOrder
  /** The part that is reserved; the rest goes to the wallet at once. */
  readonly reserved: bigint
}

export interface ReservationsParts extends RefundParts {
  /** An item was accepted, and nothing is reserved for it. */
  readonly onMissing?: (itemId: string) => void
}

/** `paid`: it is reserved, or was spent. Else it was not; `winc` is what it costs. */
interface ReserveOutcome {
  readonly paid: boolean
  readonly winc: bigint
  readonly wallet: string
  readonly elsewhere?: 'spent' | 'held'
}

/** Why a commit is refused where others have changed the same item since it was read. */
const othersActed: ReadonlySet<string> = new Set(['conflict', 'differs', 'ended'])

/**
 * What is reserved for items: the one writer of these records, whatever pays. The rules:
 *
 * - An item has one reservation. An order counts on it only where it covers the bytes of the order. Otherwise the order reserves
 *   what it needs, in one commit with the refund of what was too little.
 * - Credits are reserved until the last order that counts on them is withdrawn.
 * - A payment for the item is reserved until it is spent: no order withdraws it. It takes the place of credits.
 * - What is spent has paid for an accepted item. It stays.
 */
export class Reservations {
  /** The last order of each item that is in flight here. */
  readonly #working = new Map<string, Promise<unknown>>()

  constructor(private readonly parts: ReservationsParts) {}

  find(itemId: string): Promise<FoundReservation | undefined> {
    return findReservation(this.parts.ledger, itemId)
  }

  /** As `takenElsewhere`. */
  takenElsewhere(itemId: string, orderer: Orderer): ReturnType<typeof takenElsewhere> {
    return takenElsewhere(this.parts.ledger, itemId, orderer)
  }

  /** As `paidFor`. */
  paidFor(itemId: string, bytes: number, orderer: Orderer = {}): ReturnType<typeof paidFor> {
    return this.#inTurn(itemId, () => paidFor(this.parts.ledger, itemId, bytes, orderer))
  }

  /** `settle` or `refund` of the same name must follow. A repeated order gets the first reservation. */
  reserve(order: ReserveCredits): Promise<ReserveOutcome | Refusal> {
    return this.#inTurn(order.itemId, () => this.#reserve(order))
  }

  /**
   * A payment came in, once for each `incoming.id`. It is reserved for the item. All of it becomes credits of the wallet where
   * something pays for the item already: a payment, spent credits, or credits reserved for more bytes.
   */
  reservePayment(order: ReservePayment): Promise<'credited' | 'known'> {
    return this.#inTurn(order.itemId, () => this.#reservePayment(order))
  }

  refund(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    return this.#inTurn(itemId, () => this.#refund(itemId))
  }

  /** As `refundLeft` of refunds.ts. */
  refundLeft(itemId: string, atMs: number): Promise<boolean> {
    return this.#inTurn(itemId, () => refundLeft(this.parts, itemId, atMs))
  }

  withdraw(itemId: string, ticket: string): Promise<{ readonly winc: string } | Refusal> {
    return this.#inTurn(itemId, () => this.#withdraw(itemId, ticket))
  }

  /**
   * Runs the orders of one item one after the other. A refund during a reservation (which waits for a price) must find the
   * credits, or they would stay reserved.
   */
  #inTurn<T>(itemId: string, act: () => Promise<T>): Promise<T> {
    const before = this.#working.get(itemId)
    const mine = before === undefined ? act() : before.then(act, act)
    this.#working.set(itemId, mine)
    const over = (): void => {
      if (this.#working.get(itemId) === mine) this.#working.delete(itemId)
    }
    mine.then(over, over)
    return mine
  }

  async #reserve(order: ReserveCredits): Promise<ReserveOutcome | Refusal> {
    const { itemId, bytes, purpose, ticket } = order
    const wallet = await order.wallet()
    for (let tries = 0; tries < commitTriesMax; tries += 1) {
      const found = await this.find(itemId)
      const before = found?.reservation
      if (ticket !== undefined && before?.withdrawn?.includes(ticket) === true)
        return refuse('late', 'client', `item ${itemId}: this order was withdrawn`)
      const isSame = isReserved(before) && !isBeyond(before.bytes, bytes)
      const winc = isSame ? 0n : await order.winc()
      if (isRefusal(winc)) return winc
      if (found !== undefined && isReserved(before)) {
        const joined = await this.#join(found, order, winc)
        if (joined === 'changed') continue
        return isRefusal(joined) ? joined : { ...joined, wallet }
      }
      if (winc === 0n) return { paid: true, winc, wallet }
      const plan = await order.plan(wallet, winc)
      if (plan === undefined) return { paid: false, winc, wallet }
      const attempt = before === undefined ? 0 : before.attempt + 1
      const named = { ...(ticket === undefined ? {} : { ticket }), ...serviceOf(order) }
      const facts = { attempt, address: wallet, bytes, parts: plan.parts, ...named, ...withdrawnOf(before) }
      const reservation: Reservation = purpose === 'upload' ? facts : { ...facts, purpose }
      const records = [
        reservationChange(itemId, reservation, found?.version),
        ...plan.records,
        ...(order.records ?? []),
      ]
      const outcome = await this.parts.ledger.commit({
        transfers: reserveTransfers(itemId, reservation),
        records,
      })
      // It was carried out before: for this order, or for that of another service.
      if (!isRejected(outcome) && outcome.existed) continue
      if (!isRejected(outcome)) return { paid: true, winc, wallet }
      if (outcome.rejected === 'insufficient' && outcome.account === accountOf(wallet))
        return { paid: false, winc, wallet }
    }
    return refuse(
      'busy',
      'self',
      `item ${itemId}: the same credits are being spent by other requests, try again`,
    )
  }

  /**
   * Records that this order counts on what is reserved, so that the order that reserved it does not take it away. What was
   * spent stays anyway. What is too little is refunded.
   */
  async #join(
    found: FoundReservation,
    order: ReserveCredits,
    winc: bigint,
  ): Promise<Omit<ReserveOutcome, 'wallet'> | Refusal | 'changed'> {
    const { itemId, bytes, ticket } = order
    const { reservation, version } = found
    const tickets = ticketsOf(reservation)
    const isSpent = await this.#isSpent(itemId, reservation)
    const other = elsewhere(reservation, order, isSpent)
    if (other !== undefined) return { paid: false, winc, elsewhere: other }
    if (!covers(reservation, bytes, winc)) {
      if (isSpent) return { paid: false, winc }
      // An item has one size: this happens only where two services state it differently.
      if (tickets.some((one) => one !== ticket))
        return refuse('busy', 'self', `item ${itemId}: another order for it is under way`)
      // Anybody may pay for any item, of any stated size: a sum that is too small becomes credits, and the item is paid anew.
      await refundFound(this.parts, itemId, found)
      return 'changed'
    }
    const paid = { paid: true, winc: BigInt(totalOf(reservation)) } as const
    const counted = grownTo(reservation, bytes)
    const isNew = ticket !== undefined && !tickets.includes(ticket)
    if (isSpent || (!isNew && counted === reservation)) return paid
    if (isNew && tickets.length >= ticketsMax)
      return refuse('busy', 'self', `item ${itemId}: too many orders at once`)
    const joined = {
      ...withTickets(counted, isNew ? [...tickets, ticket] : tickets),
      ...serviceOf(order, counted),
    }
    const records = [reservationChange(itemId, joined, version)]
    return isRejected(await this.parts.ledger.commit({ transfers: [], records })) ? 'changed' : paid
  }

  async #reservePayment(order: ReservePayment): Promise<'credited' | 'known'> {
    const { incoming } = order
    const { ledger } = this.parts
    for (let tries = 0; tries < commitTriesMax; tries += 1) {
      const outcome = await ledger.commit(await this.#paymentCommit(order))
      if (!isRejected(outcome)) return outcome.existed ? 'known' : 'credited'
      if ((await ledger.transfer(incoming.id)) !== undefined) return 'known'
      if (!othersActed.has(outcome.rejected))
        throw new Error(`payment ${incoming.id}: ${outcome.rejected} at ${outcome.at}`)
    }
    throw new Error(`payment ${incoming.id}: others change the same item`)
  }

  async #paymentCommit(order: ReservePayment): Promise<CommitOrder> {
    const { itemId, bytes, address, incoming, reserved } = order
    const { credit: account, amount } = incoming
    const found = await this.find(itemId)
    const before = found?.reservation
    const isWanted = await this.#isWanted(itemId, before, bytes, reserved)
    const { wallet, conditions } = await this.parts.wallets.resolveGuarded(address)
    const rest: MoveOrder = {
      id: `${incoming.id}:rest`,
      kind: 'posted',
      debit: account,
      credit: accountOf(wallet),
      amount: isWanted ? amount - reserved : amount,
      reason: 'x402_rest',
      reference: itemId,
    }
    const resting = rest.amount > 0n ? [rest] : []
    if (!isWanted && before !== undefined) {
      const isCounted = isOfPayment(before) && !(await this.#isSpent(itemId, before))
      const kept = isCounted ? grownTo(before, bytes) : before
      return {
        transfers: [incoming, ...resting],
        records: [reservationChange(itemId, kept, found?.version), ...conditions],
      }
    }
    const isInPlace = found !== undefined && isReserved(before)
    const back = isInPlace
      ? await refundTransfers(this.parts, itemId, found.reservation)
      : { transfers: [], records: [] }
    const facts: Reservation = {
      attempt: before === undefined ? 0 : before.attempt + 1,
      address: wallet,
      bytes: isInPlace ? Math.max(bytes, found.reservation.bytes) : bytes,
      parts: [{ account, winc: String(reserved) }],
      ...serviceAfter(before, order),
      ...withdrawnOf(before),
    }
    const reservation = withTickets(facts, isInPlace ? ticketsOf(found.reservation) : [])
    return {
      transfers: [...back.transfers, incoming, ...reserveTransfers(itemId, reservation), ...resting],
      records: [
        reservationChange(itemId, reservation, found?.version),
        ...back.records,
        ...(resting.length === 0 ? [] : conditions),
      ],
    }
  }

  /** Whether a payment for so many bytes is to be reserved in place of what is there. */
  async #isWanted(
    itemId: string,
    before: Reservation | undefined,
    bytes: number,
    reserved: bigint,
  ): Promise<boolean> {
    if (!isReserved(before)) return true
    if (await this.#isSpent(itemId, before)) return false
    if (isOfPayment(before)) return !covers(before, bytes, reserved)
    return bytes >= before.bytes || reserved >= BigInt(totalOf(before))
  }

  /** The item was accepted. */
  async settle(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    let why = ''
    for (let tries = 0; tries < commitTriesMax; tries += 1) {
      const reservation = (await this.find(itemId))?.reservation
      if (!isReserved(reservation)) {
        this.parts.onMissing?.(itemId)
        return { winc: '0' }
      }
      if (reservation.finished !== undefined) return { winc: reservation.finished.winc }
      const outcome = await this.parts.ledger.commit({ transfers: settleTransfers(itemId, reservation) })
      if (!isRejected(outcome)) return { winc: totalOf(reservation) }
      why = outcome.rejected
      // Else a payment took its place, or it was refunded or finished meanwhile.
      if (!othersActed.has(why)) break
    }
    return brokenReservation(itemId, why)
  }

  /** The item is here, with so many bytes. The same answer each time. */
  async finish(itemId: string, actual: number): Promise<UsdcFinished | Refusal> {
    for (let tries = 0; tries < commitTriesMax; tries += 1) {
      const found = await this.find(itemId)
      const reservation = found?.reservation
      if (found === undefined || !isReserved(reservation)) {
        this.parts.onMissing?.(itemId)
        return refuse('unknown', 'client', 'no credits are reserved for this item')
      }
      if (reservation.finished !== undefined) return reservation.finished
      const [part] = reservation.parts
      if (part === undefined || !isOfPayment(reservation)) {
        const settled = await this.settle(itemId)
        return isRefusal(settled) ? settled : { status: 'confirmed', winc: settled.winc, refundWinc: '0' }
      }
      const finished = usdcShare(BigInt(part.winc), reservation.bytes, actual)
      const ended: Reservation = { ...reservation, parts: [{ ...part, winc: finished.winc }], finished }
      const { wallet, conditions } = await this.parts.wallets.resolveGuarded(reservation.address)
      const transfers = finishTransfers(itemId, reservation, accountOf(wallet), finished)
      const records = [reservationChange(itemId, ended, found.version), ...conditions]
      if (!isRejected(await this.parts.ledger.commit({ transfers, records }))) return finished
      // It was settled as it is, by an order that knows nothing of sizes.
      if (await this.#isSpent(itemId, reservation)) {
        const now = (await this.find(itemId))?.reservation
        return now?.finished ?? { status: 'confirmed', winc: part.winc, refundWinc: '0' }
      }
    }
    return refuse('busy', 'self', `item ${itemId} could not be settled: try again`)
  }

  async #refund(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    for (let tries = 0; tries < commitTriesMax; tries += 1) {
      const found = await this.find(itemId)
      if (found === undefined) return { winc: '0' }
      const winc = totalOf(found.reservation)
      const isBack = found.reservation.refunded === true || (await refundFound(this.parts, itemId, found))
      if (isBack) return { winc }
    }
    return refuse('busy', 'self', `item ${itemId} could not be refunded`)
  }

  /** By the same record as the reservation: whichever is written first, by any process, the other one sees it. */
  async #withdraw(itemId: string, ticket: string): Promise<{ readonly winc: string } | Refusal> {
    for (let tries = 0; tries < commitTriesMax; tries += 1) {
      const { reservation: before, version } = (await this.find(itemId)) ?? {
        reservation: nothingReserved,
        version: 0,
      }
      if (before.withdrawn?.includes(ticket) === true)
        return { winc: before.refunded === true && before.ticket === ticket ? totalOf(before) : '0' }
      const others = ticketsOf(before).filter((one) => one !== ticket)
      const isOver = before.refunded === true || (await this.#isSpent(itemId, before))
      const isBack = !isOver && others.length === 0 && !isOfPayment(before)
      const reservation = withWithdrawn(isOver || isBack ? before : withoutTicket(before, ticket), ticket)
      if (isBack) {
        if (await refundFound(this.parts, itemId, { reservation, version })) return { winc: totalOf(before) }
        continue
      }
      const records = [reservationChange(itemId, reservation, version)]
      if (!isRejected(await this.parts.ledger.commit({ transfers: [], records }))) return { winc: '0' }
    }
    return refuse('busy', 'self', `item ${itemId} could not be withdrawn`)
  }

  /** A service has the item then. */
  #isSpent(itemId: string, reservation: Reservation): Promise<boolean> {
    return isSpent(this.parts.ledger, itemId, reservation)
  }
}
