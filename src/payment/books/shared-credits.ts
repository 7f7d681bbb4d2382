import { balanceOf } from '../../ledger/ledger-account.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import { idOfKey, indexKinds, sumKeys, sumKind } from './approval-index.js'
import { type Approvals, type OpenApproval, pairNames } from './approvals.js'
import { type NamesPage, namesPages } from './pages.js'
import { accountOf, type Wallets } from './wallets.js'

/** Approvals that may pay for one item. Time to plan and write grows with their number, and other orders wait. */
const partsMax = 100
/** Wallets whose approvals are read. */
const payersMax = 64
/** Places in lists of approvals that are read for one item, of all wallets together. */
const placesMax = 2000

/** A wallet that has something left for the signer, by how the keys of both begin. */
type Pair = readonly string[]

/** The approvals of one pair of wallets that may pay. */
interface Share {
  readonly pair: Pair
  /** At most this many approvals of the pair. */
  readonly limit: number
  readonly ids: readonly string[]
  /** True: the pair has no more approvals than these. */
  readonly isAll: boolean
}

/**
 * The approvals of other wallets that pay for an item. Whoever sends a request names the wallets, and may name many: however many
 * they are, the questions to the ledger are as many, about ten, and three where nobody has shared anything with the signer.
 */
export class SharedCredits {
  constructor(
    private readonly ledger: Pick<MoneyLedger, 'accountsNamed' | 'recordsNamed' | 'recordSpans'>,
    private readonly wallets: Pick<Wallets, 'resolveAll' | 'addressesOf' | 'addressesOfAll'>,
    private readonly approvals: Pick<Approvals, 'open' | 'unexpired'>,
  ) {}

  /**
   * Approvals of the named wallets that may pay so much, in the order in which they do. Of each wallet a share of `partsMax`;
   * where those that come first are not enough, its largest ones. `signer`: its wallet. `aliases`: addresses of its key that
   * the wallet has not taken over.
   */
  async chosen(
    named: readonly string[],
    signer: string,
    winc: bigint,
    aliases: readonly string[] = [],
  ): Promise<readonly OpenApproval[]> {
    const pairs = await this.#pairs(named.slice(0, payersMax), signer, aliases)
    if (pairs.length === 0) return []
    const limit = Math.min(partsMax, Math.max(1, Math.floor(placesMax / pairs.flat().length)))
    const pages = await namesPages(this.ledger, indexKinds.pair, pairs, this.approvals.unexpired, limit)
    const shares = sharesOf(pairs, pages)
    const first = await this.#open(shares)
    const largest = await this.#largest(shares, first, winc)
    let missing = winc
    return shares.flatMap(({ isAll }, at) => {
      const open = first[at] ?? []
      const isEnough = isAll || totalLeft(open) >= missing
      const list = isEnough ? open : (largest.get(at) ?? open)
      missing -= totalLeft(list)
      return list
    })
  }

  /** The pairs of the named wallets with this one that have something left, each once, in the order of the names. */
  async #pairs(named: readonly string[], signer: string, aliases: readonly string[]): Promise<Pair[]> {
    if (named.length === 0) return []
    const own = [...new Set([...(await this.wallets.addressesOf(signer)), ...aliases])]
    // Most have received nothing, and then no name is looked at.
    const received = await this.ledger.recordsNamed(sumKind, own.map(sumKeys.received))
    if (received.length === 0) return []
    const payers = new Set(await this.wallets.resolveAll(named))
    payers.delete(signer)
    for (const indebted of await this.#indebted([...payers])) payers.delete(indebted)
    const names = await this.wallets.addressesOfAll([...payers])
    const pairs = names.map((payer) => pairNames(payer, own))
    const sums = await this.ledger.recordsNamed(sumKind, pairs.flat().map(sumKeys.pairOf))
    const having = new Set(sums.map(({ key }) => key))
    return pairs
      .map((pair) => pair.filter((one) => having.has(sumKeys.pairOf(one))))
      .filter((pair) => pair.length > 0)
  }

  /** Those of the wallets that owe: a payment was taken back after they had shared what it brought, so that is not spent. */
  async #indebted(wallets: readonly string[]): Promise<string[]> {
    const accounts = await this.ledger.accountsNamed(wallets.map(accountOf))
    const names = new Set(accounts.filter((one) => balanceOf(one) < 0n).map(({ name }) => name))
    return wallets.filter((wallet) => names.has(accountOf(wallet)))
  }

  /** The approvals of each share that can pay, in its order. */
  async #open(shares: readonly Share[]): Promise<OpenApproval[][]> {
    const open = await this.approvals.open(shares.flatMap(({ ids }) => ids))
    return shares.map(({ ids }) => ids.flatMap((id) => open.get(id) ?? []))
  }

  /** The largest approvals of those shares whose first ones may not be enough, by the place of the share. */
  async #largest(
    shares: readonly Share[],
    first: readonly (readonly OpenApproval[])[],
    winc: bigint,
  ): Promise<ReadonlyMap<number, readonly OpenApproval[]>> {
    let missing = winc
    const wanted = [...shares.entries()].filter(([at, { isAll }]) => {
      const sum = totalLeft(first[at] ?? [])
      const isShort = !isAll && sum < missing
      missing -= sum
      return isShort
    })
    if (wanted.length === 0) return new Map()
    const most = Math.max(...wanted.map(([, { limit }]) => limit))
    const pairs = wanted.map(([, { pair }]) => pair)
    const pages = await namesPages(this.ledger, indexKinds.pairByAmount, pairs, '', most)
    const largest = wanted.map(([, share], at) => {
      return { ...share, ids: (pages[at]?.places ?? []).slice(0, share.limit).map(idOfKey) }
    })
    const open = await this.#open(largest)
    return new Map(wanted.map(([at], place) => [at, open[place] ?? []]))
  }
}

/** The share of each pair in `partsMax`: what one does not need is there for those behind it. */
function sharesOf(pairs: readonly Pair[], pages: readonly NamesPage[]): Share[] {
  let free = partsMax
  return pairs.map((pair, at) => {
    const { places, next } = pages[at] ?? { places: [], next: undefined }
    const limit = Math.floor(free / (pairs.length - at))
    const ids = places.slice(0, limit).map(idOfKey)
    free -= ids.length
    return { pair, limit, ids, isAll: next === undefined && ids.length === places.length }
  })
}

/** The sum of what is left of approvals. */
export function totalLeft(list: readonly OpenApproval[]): bigint {
  return list.reduce((sum, { left }) => sum + left, 0n)
}
