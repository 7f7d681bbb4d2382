import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { type CommitOrder, isRejected, type MoneyLedger } from '../../ledger/ledger-port.js'
import type { EndOrder, MoveOrder } from '../../ledger/transfer.js'
import { type CreditsPort, type UsdcFinished, usdcShare } from '../credits-port.js'
import {
  carriedOver,
  holds,
  reservationKind as kind,
  paidPrefix,
  partId,
  type Reservation,
} from './reservation.js'
import { accountOf, type Wallets } from './wallets.js'

/** Money that comes in for one item alone. */
export interface PaidItem {
  readonly itemId: string
  readonly bytes: number
  /** Wallet that gets what is not used. */
  readonly address: string
  /** The transfer by which it comes in, to an account of its own. */
  readonly coming: MoveOrder
  /** So much of it is held back; the rest goes to the wallet at once. */
  readonly hold: bigint
}

const attemptsMax = 100

/**
 * Items with a payment of their own. The commit that credits the payment also reserves it for the item, by the same record as
 * other credits, so that it is settled or refunded alike.
 */
export class PaidItems {
  constructor(
    private readonly ledger: MoneyLedger,
    private readonly wallets: Wallets,
    private readonly credits: Pick<CreditsPort, 'settle'>,
  ) {}

  /** Once for each `coming.id`. Where something is held back for the item already, all of it becomes credits of the wallet. */
  async hold(item: PaidItem): Promise<'credited' | 'known'> {
    for (let tries = 0; tries < attemptsMax; tries += 1) {
      const outcome = await this.ledger.commit(await this.#holding(item))
      if (!isRejected(outcome)) return outcome.existed ? 'known' : 'credited'
      if ((await this.ledger.transfer(item.coming.id)) !== undefined) return 'known'
      if (outcome.rejected !== 'conflict')
        throw new Error(`payment ${item.coming.id}: ${outcome.rejected} at ${outcome.at}`)
    }
    throw new Error(`payment ${item.coming.id}: others change the same item`)
  }

  async #holding({ itemId, bytes, address, coming, hold }: PaidItem): Promise<CommitOrder> {
    const { credit: account, amount } = coming
    const stored = await this.ledger.record(kind, itemId)
    const before = stored === undefined ? undefined : (JSON.parse(stored.value) as Reservation)
    const isTaken = before !== undefined && before.refunded !== true
    const held = isTaken ? 0n : hold
    const { wallet, unchanged } = await this.wallets.place(address)
    const rest: MoveOrder = {
      id: `${coming.id}:rest`,
      kind: 'posted',
      debit: account,
      credit: accountOf(wallet),
      amount: amount - held,
      reason: 'x402_rest',
      reference: itemId,
    }
    const resting = rest.amount > 0n ? [rest] : []
    if (isTaken) return { transfers: [coming, ...resting], records: unchanged }
    const reservation: Reservation = {
      attempt: before === undefined ? 0 : before.attempt + 1,
      address: wallet,
      bytes,
      parts: [{ account, winc: String(held) }],
      ...carriedOver(before),
    }
    const record = { kind, key: itemId, value: JSON.stringify(reservation), expected: stored?.version ?? 0 }
    const transfers = [coming, ...holds(itemId, reservation), ...resting]
    return { transfers, records: [record, ...(resting.length === 0 ? [] : unchanged)] }
  }

  /** The item is here, with so many bytes. The same answer each time. */
  async finish(itemId: string, actual: number): Promise<UsdcFinished | Refusal> {
    for (let tries = 0; tries < attemptsMax; tries += 1) {
      const stored = await this.ledger.record(kind, itemId)
      const reservation = stored === undefined ? undefined : (JSON.parse(stored.value) as Reservation)
      if (stored === undefined || reservation === undefined || reservation.refunded === true)
        return refuse('unknown', 'client', 'no credits are reserved for this item')
      if (reservation.finished !== undefined) return reservation.finished
      const [part, ...more] = reservation.parts
      if (part === undefined || more.length > 0 || !part.account.startsWith(paidPrefix)) {
        const settled = await this.credits.settle(itemId)
        return isRefusal(settled) ? settled : { status: 'confirmed', winc: settled.winc, refundWinc: '0' }
      }
      const finished = usdcShare(BigInt(part.winc), reservation.bytes, actual)
      const ended: Reservation = { ...reservation, parts: [{ ...part, winc: finished.winc }], finished }
      const { wallet, unchanged } = await this.wallets.place(reservation.address)
      const transfers = endings(itemId, reservation, part.account, accountOf(wallet), finished)
      const record = { kind, key: itemId, value: JSON.stringify(ended), expected: stored.version }
      const outcome = await this.ledger.commit({ transfers, records: [record, ...unchanged] })
      if (!isRejected(outcome)) return finished
      // It was settled as it is, by an order that knows nothing of sizes.
      if (outcome.rejected === 'differs' || outcome.rejected === 'ended')
        return { status: 'confirmed', winc: part.winc, refundWinc: '0' }
    }
    return refuse('busy', 'self', `item ${itemId} could not be settled: try again`)
  }
}

function endings(
  itemId: string,
  { attempt }: Reservation,
  account: string,
  wallet: string,
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
    debit: account,
    credit: wallet,
    amount: BigInt(refundWinc),
    reason: 'refunded_upload',
    reference,
  }
  return [spending, back]
}
