import type { Log } from '../../actor/log.js'
import { availableOf } from '../../ledger/ledger-account.js'
import {
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'
import {
  type Approval,
  approvalAccount,
  approvalKind,
  idOfKey,
  leftChanged,
  oldKinds,
} from './approval-index.js'
import { endingOf } from './approval-orders.js'
import type { Wallets } from './wallets.js'

const pageMax = 200
const pairOf = ({ payer, approved }: Approval): string => `${payer}|${approved}`
/** An approval that is so much older than a revocation of its pair was meant by it: their clocks are one. */
const sureMs = 60_000

interface Revocation {
  readonly atMs: number
  readonly by: string
}

/** What became of the approvals of the old lists. */
export interface Moved {
  /** Can be seen and spent. */
  readonly moved: number
  /** Should have ended when their payer revoked all that he had given: they ended now, and their winc went back. */
  readonly givenBack: number
}

/**
 * Moves approvals of the old lists into the present ones, with their sums. Each moves in one commit with the removal of its old
 * entry, so that a killed start and two concurrent starts do it once. It reads all approvals where there is an old list, and
 * nothing where there is none. Call it before credits are spent.
 */
export async function moveApprovals(
  ledger: MoneyLedger,
  wallets: Wallets,
  log: Pick<Log, 'info'>,
): Promise<Moved> {
  let moved = 0
  let givenBack = 0
  let revoked: ReadonlyMap<string, Revocation> | undefined
  for (let after = ''; ; ) {
    const page = await ledger.records(oldKinds.given, '', after, pageMax)
    const last = page.at(-1)
    if (last === undefined) break
    after = last.key
    revoked ??= await revocations(ledger)
    const known = revoked
    const outcomes = await Promise.all(page.map((entry) => moveOne(ledger, wallets, entry, known)))
    moved += outcomes.filter((one) => one === 'moved').length
    givenBack += outcomes.filter((one) => one === 'given back').length
  }
  await removeAll(ledger, oldKinds.received)
  await removeAll(ledger, oldKinds.due)
  if (revoked !== undefined) log.info({ moved, givenBack }, 'the lists of shared credits were written anew')
  return { moved, givenBack }
}

/** The last revocation of each pair. */
async function revocations(ledger: MoneyLedger): Promise<ReadonlyMap<string, Revocation>> {
  const found = new Map<string, Revocation>()
  for (let after = ''; ; ) {
    const page = await ledger.records(approvalKind, '', after, pageMax)
    for (const { value } of page) {
      const approval = JSON.parse(value) as Approval
      const { why, atMs = 0, by = '' } = approval.ended ?? {}
      const pair = pairOf(approval)
      if (why === 'revoked' && atMs > (found.get(pair)?.atMs ?? 0)) found.set(pair, { atMs, by })
    }
    const last = page.at(-1)
    if (last === undefined) return found
    after = last.key
  }
}

/** `over`: nothing is left of it, or another process has moved it. */
async function moveOne(
  ledger: MoneyLedger,
  wallets: Wallets,
  entry: LedgerRecord,
  revoked: ReadonlyMap<string, Revocation>,
): Promise<'over' | 'moved' | 'given back'> {
  const { kind, key, version } = entry
  const gone: RecordChange = { kind, key, value: undefined, expected: version }
  const id = idOfKey(key)
  const stored = await ledger.record(approvalKind, id)
  const approval = stored === undefined ? undefined : (JSON.parse(stored.value) as Approval)
  if (stored === undefined || approval === undefined || approval.ended !== undefined) {
    await ledger.commit({ transfers: [], records: [gone] })
    return 'over'
  }
  const account = await ledger.account(approvalAccount(id))
  const left = account === undefined ? 0n : availableOf(account)
  const records = [gone, ...leftChanged(approval, left)]
  const meant = left === 0n ? undefined : revoked.get(pairOf(approval))
  if (meant === undefined || approval.createdMs + sureMs >= meant.atMs) {
    const outcome = await ledger.commit({ transfers: [], records })
    return isRejected(outcome) || left === 0n ? 'over' : 'moved'
  }
  const wallet = await wallets.resolve(approval.payer)
  const { order } = endingOf(stored, { why: 'revoked', ...meant, left, wallet, attempt: 0 })
  const outcome = await ledger.commit({ ...order, records: [...records, ...(order.records ?? [])] })
  // Another process that moves it at the same time makes the same transfer.
  return isRejected(outcome) || outcome.existed ? 'over' : 'given back'
}

async function removeAll(ledger: MoneyLedger, kind: string): Promise<void> {
  for (;;) {
    const page = await ledger.records(kind, '', '', pageMax)
    if (page.length === 0) return
    const records = page.map(({ key }) => ({ kind, key, value: undefined }))
    await ledger.commit({ transfers: [], records })
  }
}
