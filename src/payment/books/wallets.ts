import { decodeBase58 } from '../../format/base58.js'
import { decodeBase64url } from '../../format/base64url.js'
import {
  type CommitOrder,
  type CommitOutcome,
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../../ledger/ledger-port.js'
import { checksumAddress } from '../../proof/ethereum.js'
import { sumKeys, sumKind } from './approval-index.js'

/** `0X` is no spelling of Ethereum's own tools, but of programs that write all in capitals. */
const hexShape = /^0x[0-9a-f]{40}$/i
/** 32 bytes as base64url. */
const hashShape = /^[\w-]{43}$/
/** Letters of base64url whose last two bits are 0. */
const plainEnd = /[AEIMQUYcgkosw048]$/

/** The kind of an address by its shape; undefined where it has none of a wallet. */
export function addressKind(address: string): 'arweave' | 'ethereum' | 'solana' | 'kyve' | undefined {
  if (hexShape.test(address)) return 'ethereum'
  if (/^kyve1[02-9ac-hj-np-z]{38}$/.test(address)) return 'kyve'
  if (address.length === 43 && decodeBase64url(address)?.length === 32) return 'arweave'
  if (isSolana(address)) return 'solana'
  return hashShape.test(address) ? 'arweave' : undefined
}

/**
 * The canonical form of an address: EIP-55 for Ethereum's. The last of 43 letters of base64url has two unused bits, which are
 * cleared where an invented address has them set. Other addresses have one form only.
 */
export function spelled(address: string): string {
  if (hexShape.test(address)) return checksumAddress(Buffer.from(address.slice(2), 'hex'))
  const hasSpareBits = hashShape.test(address) && !plainEnd.test(address) && !isSolana(address)
  return hasSpareBits ? Buffer.from(address, 'base64url').toString('base64url') : address
}

function isSolana(address: string): boolean {
  return /^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(address) && decodeBase58(address)?.length === 32
}

/** The wallet that has taken over an alias, by the alias. */
export const aliasKind = 'alias'
/** The other way round: the aliases of a wallet, by its address. */
export const namesKind = 'wallet-aliases'
/**
 * The same in earlier versions, which kept only the last alias of a wallet. What was indexed by an earlier alias was not found
 * then.
 */
export const oldNameKind = 'alias-of'

/** The wallet of an address as it was read, and the conditions by which a commit fails where it is another one by then. */
export interface GuardedWallet {
  readonly wallet: string
  readonly conditions: readonly RecordChange[]
}

/** Aliases of one wallet: every question about it looks under each. A key has few (`aliasOf`). */
const aliasesMax = 16
/** Tries of a commit to the aliases of one wallet, which others may change at the same time. */
const triesMax = 20

/**
 * The wallets of the ledger. One key has one wallet, named by the address in the key's own network. Its other addresses are
 * aliases: base64url SHA-256 of the owner field of its items. Credits at an alias are moved when a signature of the key is seen.
 */
export class Wallets {
  /** Aliases that are known to be there already. */
  readonly #known = new Map<string, string>()

  constructor(private readonly ledger: MoneyLedger) {}

  /** The address that a wallet has its credits under. */
  async resolve(address: string): Promise<string> {
    const own = spelled(address)
    // Only an address of this shape can be the other name of a key.
    if (own.length !== 43) return own
    const found = await this.ledger.record(aliasKind, own)
    return found === undefined ? own : (JSON.parse(found.value) as string)
  }

  /** The same for many addresses, in their order, in one question to the ledger. */
  async resolveAll(addresses: readonly string[]): Promise<string[]> {
    const own = addresses.map(spelled)
    const possible = own.filter(({ length }) => length === 43)
    const found = await this.ledger.recordsNamed(aliasKind, possible)
    const wallets = new Map(found.map(({ key, value }) => [key, JSON.parse(value) as string]))
    return own.map((address) => wallets.get(address) ?? address)
  }

  /**
   * As `resolve`, for a commit that changes credits of the wallet: with the conditions that this commit must contain. A key may
   * take over its alias between this read and the commit. Credits at the alias would then be lost, and a debt there would be
   * nobody's. The conditions make such a commit a conflict.
   */
  async resolveGuarded(address: string): Promise<GuardedWallet> {
    return guardedWallet(address, await this.resolve(address))
  }

  /** The same for many addresses, in their order, in one question to the ledger. */
  async resolveAllGuarded(addresses: readonly string[]): Promise<GuardedWallet[]> {
    const wallets = await this.resolveAll(addresses)
    return wallets.map((wallet, at) => guardedWallet(addresses[at] ?? wallet, wallet))
  }

  /**
   * Commits an order that puts credits into the wallet of an address or takes some. `orderOf`: the order for a wallet. Resolves
   * with that wallet and what became of the order. Where a key has taken over the address since it was read, `orderOf` is called
   * again with the wallet of the key. Every other rejection is the caller's.
   */
  async commitToWalletOf(
    address: string,
    orderOf: (wallet: string) => CommitOrder,
  ): Promise<{ readonly wallet: string; readonly outcome: CommitOutcome }> {
    for (let tries = 1; ; tries += 1) {
      const { wallet, conditions } = await this.resolveGuarded(address)
      const { transfers, records = [] } = orderOf(wallet)
      const outcome = await this.ledger.commit({ transfers, records: [...records, ...conditions] })
      const isTakenOver = isRejected(outcome) && conditions.some(({ key }) => key === outcome.at)
      // An alias is taken over once, and the wallet of a key has no such condition: the second order is the last.
      if (!isTakenOver || tries === 3) return { wallet, outcome }
    }
  }

  /** All addresses that records may name a wallet by: its own, and its aliases from before its key was seen. */
  async addressesOf(wallet: string): Promise<readonly string[]> {
    const [names = [wallet]] = await this.addressesOfAll([wallet])
    return names
  }

  /** The same for many wallets, in their order, in one question to the ledger. */
  async addressesOfAll(wallets: readonly string[]): Promise<(readonly string[])[]> {
    const found = await this.ledger.recordsNamed(namesKind, wallets)
    const aliases = new Map(found.map((record) => [record.key, aliasesIn(record)]))
    return wallets.map((wallet) => [wallet, ...(aliases.get(wallet) ?? [])])
  }

  /**
   * Moves the credits of an alias to the wallet, because a signature of the key of both addresses was seen. Call it for nothing
   * less: it writes. Nothing is written for a key without credits at either address, because anybody can make keys at no cost.
   * Such a key is recorded when it is seen again.
   */
  async takeOverAlias(address: string, alias: string): Promise<void> {
    const own = spelled(address)
    if (own === alias || this.#known.get(alias) === own) return
    const before = await this.ledger.record(aliasKind, alias)
    if (before === undefined && !(await this.#haveAnything([own, alias]))) return
    const [taken] = await this.recordAliases(own, [alias])
    if (taken === undefined || !(await this.#empty(alias, own))) return
    if (this.#known.size > 10_000) this.#known.clear()
    this.#known.set(alias, own)
  }

  /**
   * Records that a wallet has these aliases, together with those that it has. Resolves with those that lead to the wallet then.
   * An alias of another wallet stays with that wallet, and a wallet that has too many aliases takes no more.
   */
  async recordAliases(wallet: string, aliases: readonly string[]): Promise<readonly string[]> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const found = await this.ledger.recordsNamed(aliasKind, aliases)
      const leads = new Map(found.map(({ key, value }) => [key, JSON.parse(value) as string]))
      const own = aliases.filter((alias) => (leads.get(alias) ?? wallet) === wallet)
      const before = await this.ledger.record(namesKind, wallet)
      const had = before === undefined ? [] : aliasesIn(before)
      const all = [...new Set([...had, ...own])].slice(0, Math.max(aliasesMax, had.length))
      const taken = own.filter((alias) => leads.has(alias) || all.includes(alias))
      const records: RecordChange[] = taken
        .filter((alias) => !leads.has(alias))
        .map((alias) => ({ kind: aliasKind, key: alias, value: JSON.stringify(wallet), expected: 0 }))
      if (all.length > had.length) {
        const list = { kind: namesKind, key: wallet, value: JSON.stringify(all) }
        records.push({ ...list, expected: before?.version ?? 0 })
      }
      if (records.length === 0 || !isRejected(await this.ledger.commit({ transfers: [], records })))
        return taken
    }
    throw new Error(`the aliases of ${wallet} could not be recorded`)
  }

  /** Moves what an alias has to its wallet. False: it changed meanwhile, and is looked at again when the key is. */
  async #empty(alias: string, own: string): Promise<boolean> {
    const held = await this.ledger.account(accountOf(alias))
    const rest = held === undefined ? 0n : held.creditsPosted - held.debitsPosted - held.debitsPending
    if (held === undefined || rest <= 0n) return true
    const facts = { debit: accountOf(alias), credit: accountOf(own), amount: rest }
    // One name for one state of the account: a second thread that sees the same moves nothing more.
    const id = `alias:${alias}:${held.debitsPosted}:${held.creditsPosted}`
    const moved = { id, kind: 'posted', ...facts, reason: 'alias', reference: own } as const
    return !isRejected(await this.ledger.commit({ transfers: [moved] }))
  }

  /** Credits were put to one of these addresses, or are shared with it. */
  async #haveAnything(addresses: readonly string[]): Promise<boolean> {
    if ((await this.ledger.accountsNamed(addresses.map(accountOf))).length > 0) return true
    return (await this.ledger.recordsNamed(sumKind, addresses.map(sumKeys.received))).length > 0
  }
}

function guardedWallet(address: string, wallet: string): GuardedWallet {
  const isOpen = wallet.length === 43 && wallet === spelled(address)
  const absent = { kind: aliasKind, key: wallet, value: undefined, expected: 0 }
  return { wallet, conditions: isOpen ? [absent] : [] }
}

function aliasesIn({ value }: LedgerRecord): readonly string[] {
  return JSON.parse(value) as readonly string[]
}

/** The ledger's account of a wallet. */
export function accountOf(address: string): string {
  return `wallet:${address}`
}
