/** An account: four sums that only grow, but for what is pending. */
export interface LedgerAccount {
  readonly name: string
  readonly debitsPosted: bigint
  readonly creditsPosted: bigint
  /** Held back by pending transfers. */
  readonly debitsPending: bigint
  readonly creditsPending: bigint
  /** Its first transfer. */
  readonly openedMs: number
}

/** What an account has, without what is held back. */
export function availableOf({ creditsPosted, debitsPosted, debitsPending }: LedgerAccount): bigint {
  return creditsPosted - debitsPosted - debitsPending
}

/** What an account has, with what is held back. */
export function balanceOf({ creditsPosted, debitsPosted }: LedgerAccount): bigint {
  return creditsPosted - debitsPosted
}

/**
 * Accounts whose names begin so belong to somebody: they never go below zero. All others are ours (sources of money, revenue,
 * promotions), and show what came from where as debits.
 */
const owned = ['wallet:', 'approval:', 'gift:', 'x402:']

/** True where the account may not go below zero. */
export function isOwned(name: string): boolean {
  return owned.some((start) => name.startsWith(start))
}

/** An account without any transfer. */
export function newAccount(name: string, openedMs: number): LedgerAccount {
  return { name, debitsPosted: 0n, creditsPosted: 0n, debitsPending: 0n, creditsPending: 0n, openedMs }
}

/** The account behind a transfer from it: `posted` for good, `held` as pending (below zero: not any more). */
export function debited(account: LedgerAccount, posted: bigint, held: bigint): LedgerAccount {
  const { name, debitsPosted, creditsPosted, debitsPending, creditsPending, openedMs } = account
  return {
    name,
    debitsPosted: debitsPosted + posted,
    creditsPosted,
    debitsPending: debitsPending + held,
    creditsPending,
    openedMs,
  }
}

/** The account behind a transfer to it. */
export function credited(account: LedgerAccount, posted: bigint, held: bigint): LedgerAccount {
  const { name, debitsPosted, creditsPosted, debitsPending, creditsPending, openedMs } = account
  return {
    name,
    debitsPosted,
    creditsPosted: creditsPosted + posted,
    debitsPending,
    creditsPending: creditsPending + held,
    openedMs,
  }
}

/** The account as it lies on disk: sums as decimal text, because they may be of any length. */
export function encodeAccount(account: LedgerAccount): string {
  const { debitsPosted, creditsPosted, debitsPending, creditsPending, openedMs } = account
  return `${debitsPosted} ${creditsPosted} ${debitsPending} ${creditsPending} ${openedMs}`
}

/** Reads what `encodeAccount` wrote. Throws on anything else: the store is broken. */
export function decodeAccount(name: string, text: string): LedgerAccount {
  const [debitsPosted = '', creditsPosted = '', debitsPending = '', creditsPending = '', openedMs = ''] =
    text.split(' ')
  if (openedMs === '') throw new Error(`the account ${name} cannot be read`)
  return {
    name,
    debitsPosted: BigInt(debitsPosted),
    creditsPosted: BigInt(creditsPosted),
    debitsPending: BigInt(debitsPending),
    creditsPending: BigInt(creditsPending),
    openedMs: Number(openedMs),
  }
}
