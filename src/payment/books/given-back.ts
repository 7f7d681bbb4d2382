import type { MoneyLedger, RecordChange } from '../../ledger/ledger-port.js'
import type { EndOrder, MoveOrder, TransferOrder } from '../../ledger/transfer.js'
import { leftChanged } from './approval-index.js'
import type { Approvals } from './approvals.js'
import { paidPrefix, partId, type Reservation, revenue } from './reservation.js'
import { accountOf, type Wallets } from './wallets.js'

export interface BackParts {
  readonly ledger: MoneyLedger
  readonly wallets: Pick<Wallets, 'find' | 'place'>
  readonly approvals: Pick<Approvals, 'stored'>
}

/**
 * What is written where something held back, or spent, is given back: in the opposite order of its parts. What came from an
 * approval that is over goes on to the wallet that gave it, and what came as a payment to the wallet that was named with it.
 */
export async function givenBack(
  { approvals, ledger, wallets }: BackParts,
  itemId: string,
  { address, attempt, parts, purpose = 'upload' }: Reservation,
): Promise<{ readonly transfers: readonly TransferOrder[]; readonly records: readonly RecordChange[] }> {
  const transfers: TransferOrder[] = []
  const records: RecordChange[] = []
  const facts = { reason: `refunded_${purpose}`, reference: itemId }
  for (const [part, { account, winc }] of [...parts.entries()].reverse()) {
    const id = partId('refund', itemId, attempt, part)
    const pending = partId('reserve', itemId, attempt, part)
    const amount = BigInt(winc)
    const isSpent = (await ledger.ending(pending))?.kind === 'post'
    transfers.push(
      isSpent
        ? ({ id, kind: 'posted', debit: revenue, credit: account, amount, ...facts } satisfies MoveOrder)
        : ({ id, kind: 'void', pending, ...facts } satisfies EndOrder),
    )
    const on = (wallet: string): MoveOrder => {
      const credit = accountOf(wallet)
      return { id: `${id}:back`, kind: 'posted', debit: account, credit, amount, ...facts }
    }
    if (account.startsWith(paidPrefix)) {
      const { wallet, unchanged } = await wallets.place(address)
      transfers.push(on(wallet))
      records.push(...unchanged)
    }
    if (!account.startsWith('approval:')) continue
    const stored = await approvals.stored(account.slice('approval:'.length))
    if (stored === undefined) continue
    records.push(stored.unchanged)
    const { ended, payer } = stored.approval
    if (ended === undefined) records.push(...leftChanged(stored.approval, amount))
    else transfers.push(on(await wallets.find(payer)))
  }
  return { transfers, records }
}
