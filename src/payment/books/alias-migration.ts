import type { Log } from '../../actor/log.js'
import type { LedgerRecord, MoneyLedger } from '../../ledger/ledger-port.js'
import { historyKind } from './accounts.js'
import { sumKeys, sumKind } from './approval-index.js'
import { accountOf, aliasKind, oldNameKind, type Wallets } from './wallets.js'

const pageMax = 200

/** An alias under which something is indexed, and how much is shared with it. */
interface Used {
  readonly alias: string
  readonly received: bigint
}

/**
 * Finds again what earlier versions have lost: they kept one alias of each wallet, and the next one in its place. Every alias
 * that has anything is recorded with its wallet: those with the most shared credits first, because strangers could add some. It
 * reads all aliases where the list of an earlier version is there, and nothing where it is not. That list is removed last, so a
 * killed start does it again, and two concurrent starts do no harm. Call it behind `moveApprovals`, and before credits are spent.
 * Resolves with how many aliases were recorded. Takes memory by their number.
 */
export async function moveAliases(
  ledger: MoneyLedger,
  wallets: Wallets,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<number> {
  if ((await ledger.records(oldNameKind, '', '', 1)).length === 0) return 0
  const used = new Map<string, Used[]>()
  for await (const page of pagesOf(ledger, aliasKind))
    for (const { wallet, ...one } of await usedOf(ledger, page))
      used.set(wallet, [...(used.get(wallet) ?? []), one])
  let count = 0
  for (const [wallet, aliases] of used) {
    aliases.sort((one, other) => (one.received < other.received ? 1 : -1))
    await wallets.recordAliases(
      wallet,
      aliases.map(({ alias }) => alias),
    )
    const names = new Set(await wallets.addressesOf(wallet))
    const left = aliases.filter(({ alias }) => !names.has(alias)).length
    count += aliases.length - left
    if (left > 0) log.warn({ wallet, left }, 'a wallet has more aliases than are looked under')
  }
  for await (const page of pagesOf(ledger, oldNameKind)) {
    const records = page.map(({ kind, key }) => ({ kind, key, value: undefined }))
    await ledger.commit({ transfers: [], records })
  }
  log.info({ aliases: count }, 'the aliases of wallets were written anew')
  return count
}

/** Those aliases of a page under which anything is indexed, or was paid. */
async function usedOf(
  ledger: MoneyLedger,
  page: readonly LedgerRecord[],
): Promise<(Used & { readonly wallet: string })[]> {
  const aliases = page.map(({ key }) => key)
  const accounts = new Set((await ledger.accountsNamed(aliases.map(accountOf))).map(({ name }) => name))
  const sumsOf = aliases.flatMap((alias) => [sumKeys.received(alias), sumKeys.given(alias)])
  const sums = new Map((await ledger.recordsNamed(sumKind, sumsOf)).map(({ key, value }) => [key, value]))
  const spans = aliases.map((alias) => ({ start: `${alias}|`, after: '' }))
  const paid = await ledger.recordSpans(historyKind, spans, 1)
  return page.flatMap(({ key: alias, value }, at) => {
    const received = sums.get(sumKeys.received(alias))
    const isUsed = received !== undefined || sums.has(sumKeys.given(alias))
    if (!isUsed && !accounts.has(accountOf(alias)) && paid[at]?.length === 0) return []
    return [{ wallet: JSON.parse(value) as string, alias, received: BigInt(received ?? 0) }]
  })
}

async function* pagesOf(ledger: MoneyLedger, kind: string): AsyncIterable<readonly LedgerRecord[]> {
  for (let after = ''; ; ) {
    const page = await ledger.records(kind, '', after, pageMax)
    const last = page.at(-1)
    if (last === undefined) return
    yield page
    after = last.key
  }
}
