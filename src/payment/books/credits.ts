import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { availableOf } from '../../ledger/ledger-account.js'
import {
  type CommitOrder,
  isRejected,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'
import type { EndOrder, MoveOrder, TransferOrder } from '../../ledger/transfer.js'
import {
  type Checked,
  type CheckOrder,
  type CreditsPort,
  isBeyond,
  type Payer,
  type Reserved,
  type ReserveOrder,
  type Unpaid,
  type WithdrawOrder,
} from '../credits-port.js'
import { approvalAccount, leftChanged } from './approval-index.js'
import type { Approvals, OpenApproval } from './approvals.js'
import {
  carriedOver,
  heldBy,
  holdersMax,
  holdersOf,
  holds,
  reservationKind as kind,
  nothingHeld,
  type Purpose,
  paidPrefix,
  partId,
  type Reservation,
  revenue,
  totalOf,
  withdrawnBy,
} from './reservation.js'
import { accountOf, type Wallets } from './wallets.js'

/** An order to reserve credits under a name, for any purpose. */
export interface HoldOrder extends Payer {
  readonly itemId: string
  readonly bytes: number
  readonly purpose: Purpose
  readonly winc: () => Promise<bigint | Refusal>
  readonly ticket?: string
  /** Written in the same commit. */
  readonly records?: readonly RecordChange[]
}

/** How often a commit is repeated after a conflict. */
const attemptsMax = 100
/** Approvals that may pay for one item. Time to plan and write grows with their number, and other orders wait. */
const partsMax = 100
/** Wallets whose approvals are read. */
const payersMax = 64

export interface CreditsParts {
  readonly ledger: MoneyLedger
  readonly wallets: Wallets
  readonly approvals: Approvals
  /** Winc for so many bytes. */
  readonly price: (bytes: number) => Promise<bigint | Refusal>
}

/** The payers of an item with their amounts, and the changes of their approvals. */
interface Plan {
  readonly parts: Reservation['parts']
  readonly records: readonly RecordChange[]
}

/** Spends credits for items: reserves them, then settles or refunds. Only this class decides who pays. */
export class LedgerCredits implements CreditsPort {
  readonly #ledger: MoneyLedger
  readonly #wallets: Wallets
  readonly #approvals: Approvals
  readonly #price: CreditsParts['price']
  /** The last order of each item that is in flight here. */
  readonly #working = new Map<string, Promise<unknown>>()

  constructor({ ledger, wallets, approvals, price }: CreditsParts) {
    this.#ledger = ledger
    this.#wallets = wallets
    this.#approvals = approvals
    this.#price = price
  }

  async price(bytes: number): Promise<{ readonly winc: string } | Refusal> {
    const winc = await this.#price(bytes)
    return isRefusal(winc) ? winc : { winc: String(winc) }
  }

  async check({ bytes, itemId, ...payer }: CheckOrder): Promise<Checked | Refusal> {
    const winc = await this.#price(bytes)
    if (isRefusal(winc)) return winc
    const held = itemId === undefined ? undefined : (await this.#reservation(itemId))?.reservation
    if (held !== undefined && held.refunded !== true && covers(held, bytes, winc))
      return { isEnough: true, isUnknownWallet: false, winc: String(winc), balance: totalOf(held) }
    const signer = await this.#signer(payer)
    const shared = totalLeft(await this.#sharedWith(payer, signer, winc))
    const account = await this.#ledger.account(accountOf(signer))
    const own = account === undefined || payer.directive === 'list-only' ? 0n : availableOf(account)
    const balance = shared + (own > 0n ? own : 0n)
    const isUnknownWallet = account === undefined && shared === 0n
    return { isEnough: balance >= winc, isUnknownWallet, winc: String(winc), balance: String(balance) }
  }

  reserve(order: ReserveOrder): Promise<Reserved | Unpaid | Refusal> {
    return this.hold({ ...order, purpose: 'upload', winc: () => this.#price(order.bytes) })
  }

  /** Reserves credits: `settle` or `refund` of the same name must follow. A repeated order gets the first reservation. */
  hold(order: HoldOrder): Promise<Reserved | Unpaid | Refusal> {
    return this.#inTurn(order.itemId, () => this.#hold(order))
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

  async #hold(order: HoldOrder): Promise<Reserved | Unpaid | Refusal> {
    const { itemId, bytes, purpose, ticket } = order
    const signer = await this.#signer(order)
    for (let tries = 0; tries < attemptsMax; tries += 1) {
      const stored = await this.#ledger.record(kind, itemId)
      const before = stored === undefined ? undefined : (JSON.parse(stored.value) as Reservation)
      if (ticket !== undefined && before?.withdrawn?.includes(ticket) === true)
        return refuse('late', 'client', `item ${itemId}: this order was withdrawn`)
      const isHeld = before !== undefined && before.refunded !== true
      const isSame = isHeld && !isBeyond(before.bytes, bytes)
      const winc = isSame ? 0n : await order.winc()
      if (isRefusal(winc)) return winc
      if (isHeld && (isSame || covers(before, bytes, winc))) {
        const joined = await this.#join(before, { itemId, ticket, version: stored?.version ?? 0 })
        if (joined === 'changed') continue
        return joined
      }
      if (isHeld) {
        // Anybody may pay for any item, of any stated size: a sum that is too small becomes credits, and the item is paid anew.
        if (before.finished !== undefined) return this.#unpaid(signer, winc)
        const back = await this.#refund(itemId)
        if (isRefusal(back)) return back
        continue
      }
      if (winc === 0n) return { paid: true, winc: '0' }
      const plan = await this.#plan(order, signer, winc)
      if (plan === undefined) return this.#unpaid(signer, winc)
      const attempt = before === undefined ? 0 : before.attempt + 1
      const named = ticket === undefined ? {} : { ticket }
      const facts = { attempt, address: signer, bytes, parts: plan.parts, ...named, ...carriedOver(before) }
      const reservation: Reservation = purpose === 'upload' ? facts : { ...facts, purpose }
      const value = JSON.stringify(reservation)
      const record = { kind, key: itemId, value, expected: stored?.version ?? 0 }
      const records = [record, ...plan.records, ...(order.records ?? [])]
      const outcome = await this.#ledger.commit({ transfers: holds(itemId, reservation), records })
      if (!isRejected(outcome)) return { paid: true, winc: String(winc) }
      if (outcome.rejected === 'insufficient' && outcome.account === accountOf(signer))
        return this.#unpaid(signer, winc)
    }
    return refuse(
      'busy',
      'self',
      `item ${itemId}: the same credits are being spent by other requests, try again`,
    )
  }

  /**
   * Writes down that this order counts on what is held back, so that the order that has it held back does not take it away. What
   * was spent stays anyway.
   */
  async #join(
    held: Reservation,
    { itemId, ticket, version }: { itemId: string; ticket: string | undefined; version: number },
  ): Promise<Reserved | Refusal | 'changed'> {
    const paid = { paid: true, winc: totalOf(held) } as const
    const holders = holdersOf(held)
    if (ticket === undefined || holders.includes(ticket)) return paid
    if (await this.#isSpent(itemId, held)) return paid
    if (holders.length >= holdersMax) return refuse('busy', 'self', `item ${itemId}: too many orders at once`)
    const value = JSON.stringify(heldBy(held, [...holders, ticket]))
    const records = [{ kind, key: itemId, value, expected: version }]
    return isRejected(await this.#ledger.commit({ transfers: [], records })) ? 'changed' : paid
  }

  /** The wallet that has reserved for an item; undefined where none has. */
  async ownerOf(itemId: string): Promise<string | undefined> {
    const found = await this.#reservation(itemId)
    return found && this.#wallets.find(found.reservation.address)
  }

  async settle(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    const found = await this.#reservation(itemId)
    if (found === undefined || found.reservation.refunded === true) return { winc: '0' }
    const { reservation } = found
    const { attempt, parts, purpose = 'upload' } = reservation
    const transfers = parts.map((_, part): EndOrder => {
      const pending = partId('reserve', itemId, attempt, part)
      return {
        id: partId('settle', itemId, attempt, part),
        kind: 'post',
        pending,
        reason: purpose,
        reference: itemId,
      }
    })
    const outcome = await this.#ledger.commit({ transfers })
    // It was refunded meanwhile.
    if (isRejected(outcome))
      return outcome.rejected === 'ended' ? { winc: '0' } : brokenReservation(itemId, outcome.rejected)
    return { winc: totalOf(reservation) }
  }

  refund(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    return this.#inTurn(itemId, () => this.#refund(itemId))
  }

  async #refund(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    for (let tries = 0; tries < attemptsMax; tries += 1) {
      const found = await this.#reservation(itemId)
      if (found === undefined) return { winc: '0' }
      if (found.reservation.refunded === true) return { winc: totalOf(found.reservation) }
      const outcome = await this.#ledger.commit(await this.#refunding(itemId, found))
      if (!isRejected(outcome)) return { winc: totalOf(found.reservation) }
    }
    return refuse('busy', 'self', `item ${itemId} could not be refunded`)
  }

  withdraw({ itemId, ticket }: WithdrawOrder): Promise<{ readonly winc: string } | Refusal> {
    return this.#inTurn(itemId, () => this.#withdraw(itemId, ticket))
  }

  /** By the same record as the reservation: whichever is written first, by any process, the other one sees it. */
  async #withdraw(itemId: string, ticket: string): Promise<{ readonly winc: string } | Refusal> {
    for (let tries = 0; tries < attemptsMax; tries += 1) {
      const found = await this.#reservation(itemId)
      const { reservation: before = nothingHeld, version = 0 } = found ?? {}
      if (before.withdrawn?.includes(ticket) === true)
        return { winc: before.refunded === true && before.ticket === ticket ? totalOf(before) : '0' }
      const others = holdersOf(before).filter((one) => one !== ticket)
      const isOver = before.refunded === true || (await this.#isSpent(itemId, before))
      const isBack = !isOver && others.length === 0
      const reservation = withdrawnBy(isOver || isBack ? before : heldBy(before, others), ticket)
      const value = JSON.stringify(reservation)
      const order = isBack
        ? await this.#refunding(itemId, { reservation, version })
        : { transfers: [], records: [{ kind, key: itemId, value, expected: version }] }
      const outcome = await this.#ledger.commit(order)
      if (!isRejected(outcome)) return { winc: isBack ? totalOf(before) : '0' }
    }
    return refuse('busy', 'self', `item ${itemId} could not be withdrawn`)
  }

  /** A service has the item then. */
  async #isSpent(itemId: string, { attempt, parts }: Reservation): Promise<boolean> {
    const pending = parts.map((_, part) => partId('reserve', itemId, attempt, part))
    const ends = await Promise.all(pending.map((one) => this.#ledger.ending(one)))
    return ends.some((end) => end?.kind === 'post')
  }

  approve = (order: Parameters<CreditsPort['approve']>[0]): ReturnType<CreditsPort['approve']> =>
    this.#approvals.create(order)

  revoke = (order: Parameters<CreditsPort['revoke']>[0]): ReturnType<CreditsPort['revoke']> =>
    this.#approvals.revoke(order)

  async #signer({ address, alias }: Payer): Promise<string> {
    if (alias !== undefined) await this.#wallets.learn(address, alias)
    return this.#wallets.find(address)
  }

  /**
   * Approvals that may pay so much, in the order in which they do. Of each wallet that is named a share of `partsMax`; where
   * those that come first are not enough, its largest ones.
   */
  async #sharedWith({ paidBy }: Payer, signer: string, winc: bigint): Promise<OpenApproval[]> {
    const payers = new Set<string>()
    for (const address of paidBy.slice(0, payersMax)) payers.add(await this.#wallets.find(address))
    payers.delete(signer)
    const found: OpenApproval[] = []
    let missing = winc
    let others = payers.size
    for (const payer of payers) {
      const limit = Math.floor((partsMax - found.length) / others)
      others -= 1
      const { open, next } = await this.#approvals.pair(payer, signer, '', limit)
      const isEnough = next === undefined || totalLeft(open) >= missing
      const chosen = isEnough ? open : await this.#approvals.largest(payer, signer, limit)
      missing -= totalLeft(chosen)
      found.push(...chosen)
    }
    return found
  }

  /** Who gives how much; undefined where the approvals alone must be enough and are not. */
  async #plan(payer: Payer, signer: string, winc: bigint): Promise<Plan | undefined> {
    const parts: { account: string; winc: string }[] = []
    const records: RecordChange[] = []
    let missing = winc
    for (const { approval, left } of await this.#sharedWith(payer, signer, winc)) {
      const part = lesser(left, missing)
      if (part === 0n) break
      parts.push({ account: approvalAccount(approval.id), winc: String(part) })
      records.push(...leftChanged(approval, -part))
      missing -= part
    }
    if (missing === 0n) return { parts, records }
    if (payer.directive === 'list-only') return undefined
    return { parts: [...parts, { account: accountOf(signer), winc: String(missing) }], records }
  }

  async #unpaid(signer: string, winc: bigint): Promise<Unpaid> {
    const account = await this.#ledger.account(accountOf(signer))
    return { paid: false, winc: String(winc), isUnknownWallet: account === undefined }
  }

  async #reservation(itemId: string): Promise<{ reservation: Reservation; version: number } | undefined> {
    const stored = await this.#ledger.record(kind, itemId)
    if (stored === undefined) return undefined
    return { reservation: JSON.parse(stored.value) as Reservation, version: stored.version }
  }

  /** Gives back in the opposite order. What came from an approval that is over goes on to the wallet that gave it. */
  async #refunding(
    itemId: string,
    { reservation, version }: { reservation: Reservation; version: number },
  ): Promise<CommitOrder> {
    const { attempt, parts } = reservation
    const transfers: TransferOrder[] = []
    const value = JSON.stringify({ ...reservation, refunded: true } satisfies Reservation)
    const records: RecordChange[] = [{ kind, key: itemId, value, expected: version }]
    const facts = { reason: `refunded_${reservation.purpose ?? 'upload'}`, reference: itemId }
    for (const [part, { account, winc }] of [...parts.entries()].reverse()) {
      const id = partId('refund', itemId, attempt, part)
      const pending = partId('reserve', itemId, attempt, part)
      const amount = BigInt(winc)
      const isSpent = (await this.#ledger.ending(pending))?.kind === 'post'
      transfers.push(
        isSpent
          ? ({ id, kind: 'posted', debit: revenue, credit: account, amount, ...facts } satisfies MoveOrder)
          : ({ id, kind: 'void', pending, ...facts } satisfies EndOrder),
      )
      if (account.startsWith(paidPrefix)) {
        const wallet = accountOf(await this.#wallets.find(reservation.address))
        transfers.push({ id: `${id}:back`, kind: 'posted', debit: account, credit: wallet, amount, ...facts })
      }
      if (!account.startsWith('approval:')) continue
      const stored = await this.#approvals.stored(account.slice('approval:'.length))
      if (stored === undefined) continue
      records.push(stored.unchanged)
      const { ended, payer } = stored.approval
      if (ended === undefined) {
        records.push(...leftChanged(stored.approval, amount))
        continue
      }
      transfers.push({
        id: `${id}:back`,
        kind: 'posted',
        debit: account,
        credit: accountOf(await this.#wallets.find(payer)),
        amount,
        ...facts,
      })
    }
    return { transfers, records }
  }
}

/** Whether what is held back is for so many bytes, or as much as they cost. */
function covers(held: Reservation, bytes: number, winc: bigint): boolean {
  return !isBeyond(held.bytes, bytes) || BigInt(totalOf(held)) >= winc
}

export function lesser(one: bigint, other: bigint): bigint {
  if (one < other) return one
  return other
}

function totalLeft(list: readonly OpenApproval[]): bigint {
  return list.reduce((sum, { left }) => sum + left, 0n)
}

function brokenReservation(itemId: string, why: string): Refusal {
  return refuse('defect', 'self', `item ${itemId} could not be settled: ${why}`)
}
