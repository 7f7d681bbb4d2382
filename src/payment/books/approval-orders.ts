import type { CommitOrder, LedgerRecord, RecordChange } from '../../ledger/ledger-port.js'
import type { MoveOrder } from '../../ledger/transfer.js'
import {
  type Approval,
  approvalAccount,
  indexEnded,
  approvalKind as kind,
  leftChanged,
} from './approval-index.js'
import { accountOf } from './wallets.js'

/** An approval as the ledger keeps it (JSON). */
export function readApproval(record: LedgerRecord): Approval {
  return JSON.parse(record.value) as Approval
}

/** What opens an approval: its winc leave the wallet of the payer. */
export function openingOf(approval: Approval): CommitOrder {
  const { id, payer, winc } = approval
  const amount = BigInt(winc)
  const records: RecordChange[] = [
    { kind, key: id, value: JSON.stringify(approval), expected: 0 },
    ...leftChanged(approval, amount),
  ]
  const facts = { debit: accountOf(payer), credit: approvalAccount(id), amount }
  const reason = 'delegated_payment_approval'
  return { transfers: [{ id: `approval:${id}`, kind: 'posted', ...facts, reason, reference: id }], records }
}

/** What ends an approval, as it is stored, that has so much left. `wallet`: of its payer. */
export function endingOf(
  stored: LedgerRecord,
  end: {
    readonly why: 'expired' | 'revoked'
    readonly atMs: number
    readonly by: string | undefined
    readonly left: bigint
    readonly wallet: string
    readonly attempt: number
  },
): { readonly order: CommitOrder; readonly ended: Approval } {
  const { why, atMs, by, left, wallet, attempt } = end
  const approval = readApproval(stored)
  const { id, winc } = approval
  const used = String(BigInt(winc) - left)
  const ended: Approval = { ...approval, ended: { why, atMs, used, ...(by === undefined ? {} : { by }) } }
  const back: MoveOrder = {
    id: `approval-end:${id}:${left}:${attempt}`,
    kind: 'posted',
    debit: approvalAccount(id),
    credit: accountOf(wallet),
    amount: left,
    reference: by ?? id,
    reason: why === 'expired' ? 'delegated_payment_expired' : 'delegated_payment_revoke',
  }
  const records: RecordChange[] = [
    { kind, key: id, value: JSON.stringify(ended), expected: stored.version },
    ...indexEnded(approval, left),
    ...(by === undefined ? [] : [{ kind: 'approval-revoked', key: `${by}|${id}`, value: '1' }]),
  ]
  return { order: { transfers: left === 0n ? [] : [back], records }, ended }
}
