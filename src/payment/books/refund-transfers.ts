import type { MoneyLedger, RecordChange } from '../../ledger/ledger-port.js'
import type { EndOrder, MoveOrder, TransferOrder } from '../../ledger/transfer.js'
import { approvalAccount, leftChanged } from './approval-index.js'
import type { Approvals, StoredApproval } from './approvals.js'
import { paidPrefix, partId, type Reservation, revenue } from './reservation.js'
import { accountOf, type GuardedWallet, type Wallets } from './wallets.js'

export interface RefundParts {
  readonly ledger: MoneyLedger
  readonly wallets: Pick<Wallets, 'resolveGuarded' | 'resolveAllGuarded'>
  readonly approvals: Pick<Approvals, 'storedOf'>
}

/**
 * What is written where something reserved, or spent, is refunded: in the opposite order of its parts. What came from an
 * approval that is over goes on to the wallet that gave it, and what came as a payment to the wallet that was named with it.
 */
export async function refundTransfers(
  { approvals, ledger, wallets }: RefundParts,
  itemId: string,
  { address, attempt, parts, purpose = 'upload' }: Reservation,
): Promise<{ readonly transfers: readonly TransferOrder[]; readonly records: readonly RecordChange[] }> {
  const transfers: TransferOrder[] = []
  const records: RecordChange[] = []
  const facts = { reason: `refunded_${purpose}`, reference: itemId }
  const pendings = parts.map((_, part) => partId('reserve', itemId, attempt, part))
  const spent = new Set(
    (await ledger.endingsOf(pendings)).flatMap((end) => (end.kind === 'post' ? end.pending : [])),
  )
  const stored = await approvals.storedOf(parts.flatMap(({ account }) => approvalOf(account) ?? []))
  const givers = await giversOf(wallets, stored)
  const placed = parts.some(({ account }) => account.startsWith(paidPrefix))
    ? await wallets.resolveGuarded(address)
    : undefined
  for (const [part, { account, winc }] of [...parts.entries()].reverse()) {
    const id = partId('refund', itemId, attempt, part)
    const pending = partId('reserve', itemId, attempt, part)
    const amount = BigInt(winc)
    transfers.push(
      spent.has(pending)
        ? ({ id, kind: 'posted', debit: revenue, credit: account, amount, ...facts } satisfies MoveOrder)
        : ({ id, kind: 'void', pending, ...facts } satisfies EndOrder),
    )
    const on = (wallet: string): MoveOrder => {
      const credit = accountOf(wallet)
      return { id: `${id}:back`, kind: 'posted', debit: account, credit, amount, ...facts }
    }
    if (account.startsWith(paidPrefix) && placed !== undefined) {
      transfers.push(on(placed.wallet))
      records.push(...placed.conditions)
    }
    const found = stored.get(approvalOf(account) ?? '')
    if (found === undefined) continue
    records.push(found.conditions)
    const { ended, payer } = found.approval
    if (ended === undefined) records.push(...leftChanged(found.approval, amount))
    else {
      const giver = givers.get(payer)
      transfers.push(on(giver?.wallet ?? payer))
      records.push(...(giver?.conditions ?? []))
    }
  }
  return { transfers, records }
}

/** Id of the approval that an account is of; undefined: it is another account. */
function approvalOf(account: string): string | undefined {
  const start = approvalAccount('')
  return account.startsWith(start) ? account.slice(start.length) : undefined
}

/** The wallets of those who gave the approvals that are over, by the addresses in these. */
async function giversOf(
  wallets: RefundParts['wallets'],
  stored: ReadonlyMap<string, StoredApproval>,
): Promise<ReadonlyMap<string, GuardedWallet>> {
  const over = [...stored.values()].filter(({ approval }) => approval.ended !== undefined)
  const payers = [...new Set(over.map(({ approval }) => approval.payer))]
  const found = await wallets.resolveAllGuarded(payers)
  return new Map(found.map((one, at) => [payers[at] ?? one.wallet, one]))
}
