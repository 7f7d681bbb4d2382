import { availableOf } from '../../ledger/ledger-account.js'
import type { LedgerReading } from '../../ledger/ledger-port.js'
import {
  type Approval,
  approvalAccount,
  approvalKind,
  entriesOf,
  indexKinds,
  oldKinds,
  sumKeys,
  sumKind,
  sumsOf,
} from './approval-index.js'
import { aliasKind, namesKind, oldNameKind } from './wallets.js'

const pageMax = 1000
/** Faults that are listed. */
const faultsMax = 100

/** All records of a kind, page by page. */
async function* recordsOf(
  reading: LedgerReading,
  kind: string,
): AsyncIterable<{ readonly key: string; readonly value: string }> {
  for (let after = ''; ; ) {
    const page = await reading.records(kind, '', after, pageMax)
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < pageMax) return
    after = last.key
  }
}

/**
 * Compares the lists and sums of approvals with their accounts. Exactly the approvals with credits left must be in every list,
 * and what is shared with an alias must be found by its wallet. The sums of wallets and pairs must be those of the accounts. For
 * `check` of the ledger. Takes memory by the number of wallets that share credits.
 */
export async function approvalFaults(reading: LedgerReading): Promise<readonly string[]> {
  // The next start of the service writes the lists and sums.
  if ((await reading.records(oldKinds.given, '', '', 1)).length > 0) return []
  const faults: string[] = []
  const fault = (text: string): void => {
    if (faults.length < faultsMax) faults.push(text)
  }
  const sums = new Map<string, bigint>()
  const open = new Map<string, number>(Object.values(indexKinds).map((kind) => [kind, 0]))
  for await (const { value } of recordsOf(reading, approvalKind)) {
    const approval = JSON.parse(value) as Approval
    const account = await reading.account(approvalAccount(approval.id))
    const left = account === undefined ? 0n : availableOf(account)
    if (left === 0n) continue
    if (approval.ended !== undefined) {
      fault(`the approval ${approval.id} has ended, and has ${left} winc`)
      continue
    }
    for (const key of sumsOf(approval)) sums.set(key, (sums.get(key) ?? 0n) + left)
    for (const { kind, key } of entriesOf(approval)) {
      if ((await reading.record(kind, key)) === undefined)
        fault(`the approval ${approval.id} has ${left} winc, and is not found by ${kind}`)
      else open.set(kind, (open.get(kind) ?? 0) + 1)
    }
  }
  for (const alias of await lostAliases(reading, sums)) fault(`what is shared with ${alias} is not found`)
  for await (const { key, value } of recordsOf(reading, sumKind)) {
    const sum = sums.get(key) ?? 0n
    sums.delete(key)
    if (value !== String(sum))
      fault(`the sum ${key} of shared credits says ${value}, and its approvals have ${sum}`)
  }
  for (const [key, sum] of sums)
    fault(`the sum ${key} of shared credits is missing: its approvals have ${sum}`)
  for (const [kind, count] of open) {
    let entries = 0
    for await (const _ of recordsOf(reading, kind)) entries += 1
    if (entries !== count)
      fault(`${kind} has ${entries} entries, and leads to ${count} approvals that have something left`)
  }
  return faults
}

/** Aliases under which something is shared, and which the list of their wallet leaves out. */
async function lostAliases(
  reading: LedgerReading,
  sums: ReadonlyMap<string, bigint>,
): Promise<readonly string[]> {
  // The next start of the service writes the lists.
  if ((await reading.records(oldNameKind, '', '', 1)).length > 0) return []
  const lost: string[] = []
  for await (const { key: alias, value } of recordsOf(reading, aliasKind)) {
    if (!sums.has(sumKeys.received(alias)) && !sums.has(sumKeys.given(alias))) continue
    const list = await reading.record(namesKind, JSON.parse(value) as string)
    const names = list === undefined ? [] : (JSON.parse(list.value) as readonly string[])
    if (!names.includes(alias) && lost.length < faultsMax) lost.push(alias)
  }
  return lost
}
