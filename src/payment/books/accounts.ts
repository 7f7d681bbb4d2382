import { availableOf } from '../../ledger/ledger-account.js'
import type { CommitOutcome, MoneyLedger, RecordChange } from '../../ledger/ledger-port.js'
import type { Transfer } from '../../ledger/transfer.js'
import type { ApprovalView } from '../credits-port.js'
import type { Side } from './approval-index.js'
import { type Approvals, approvalView } from './approvals.js'
import { namesPage } from './pages.js'
import { accountOf, type Wallets } from './wallets.js'

/** What a wallet has, as clients read it. */
export interface BalanceView {
  readonly winc: string
  /** The same: older clients read it. */
  readonly balance: string
  /** `winc` with what is left of approvals that it has given. */
  readonly controlledWinc: string
  /** `winc` with what is left of approvals that it has received. */
  readonly effectiveBalance: string
  /** The largest ones: all of them are listed in pages. */
  readonly givenApprovals: readonly ApprovalView[]
  readonly receivedApprovals: readonly ApprovalView[]
}

/** A page of the approvals of one wallet, on both sides. */
export interface SharesPage {
  readonly givenApprovals: readonly ApprovalView[]
  readonly receivedApprovals: readonly ApprovalView[]
  /** Undefined: these were the last. */
  readonly next: SharesPlace | undefined
}

/** Where the lists go on; undefined: a list has no more. */
export interface SharesPlace {
  readonly given: string | undefined
  readonly received: string | undefined
}

const fromStart: SharesPlace = { given: '', received: '' }
/** Length of each list in a balance, because anybody may request it, often. */
const balanceApprovals = 20

/** Payments into a wallet: each key begins with its address. */
export const historyKind = 'payment-of'
/** Times count down from here, so that the order of keys is youngest first. */
const timeEnd = 10 ** 15

/** Where a page of a history goes on: behind this payment. */
export interface HistoryPlace {
  readonly atMs: number
  readonly id: string
}

/** Reads of wallets, and payments into them. */
export class Accounts {
  constructor(
    private readonly ledger: MoneyLedger,
    readonly wallets: Wallets,
    readonly approvals: Approvals,
    private readonly now: () => number,
  ) {}

  /** Undefined: nobody has ever put credits there, or shared any with it. */
  async balance(address: string): Promise<BalanceView | undefined> {
    const wallet = await this.wallets.resolve(address)
    const { given, received } = await this.approvals.sums(wallet)
    const account = await this.ledger.account(accountOf(wallet))
    if (account === undefined && received === 0n) return undefined
    const winc = account === undefined ? 0n : availableOf(account)
    const { givenApprovals, receivedApprovals } = await this.approvalsOf(address, fromStart, balanceApprovals)
    return {
      winc: String(winc),
      balance: String(winc),
      controlledWinc: String(winc + given),
      effectiveBalance: String(winc + received),
      givenApprovals,
      receivedApprovals,
    }
  }

  /** Approvals of one wallet on both sides, so many of each at most; empty lists where there are none. */
  async approvalsOf(address: string, from: SharesPlace = fromStart, limit = 100): Promise<SharesPage> {
    const wallet = await this.wallets.resolve(address)
    const list = async (
      side: Side,
    ): Promise<{ readonly views: readonly ApprovalView[]; readonly next: string | undefined }> => {
      const after = from[side]
      if (after === undefined) return { views: [], next: undefined }
      const { open, next } = await this.approvals.page(side, wallet, after, limit)
      return { views: open.map(approvalView), next }
    }
    const [given, received] = [await list('given'), await list('received')]
    const isMore = given.next !== undefined || received.next !== undefined
    const next = isMore ? { given: given.next, received: received.next } : undefined
    return { givenApprovals: given.views, receivedApprovals: received.views, next }
  }

  /**
   * Puts winc into a wallet, once for each `id`. `source`: which account it comes from. `about` is what the history shows.
   */
  async credit(order: {
    readonly id: string
    readonly address: string
    readonly winc: bigint
    readonly source: string
    readonly reason: string
    readonly reference: string
    readonly about: Readonly<Record<string, string>>
  }): Promise<CommitOutcome> {
    const { id, address, winc, source, reason, reference, about } = order
    const { outcome } = await this.wallets.commitToWalletOf(address, (wallet) => {
      const facts = { debit: source, credit: accountOf(wallet), amount: winc, reason, reference, about }
      return {
        transfers: [{ id, kind: 'posted', ...facts }],
        // A list of its own, so that a page of payments does not depend on how many uploads lie in between.
        records: [historyRecord(wallet, this.now(), id)],
      }
    })
    return outcome
  }

  /** Payments into a wallet, youngest first, and where the next page begins; undefined: this was the last. */
  async payments(
    address: string,
    after: HistoryPlace | undefined,
    limit: number,
  ): Promise<{ readonly page: readonly Transfer[]; readonly next: HistoryPlace | undefined }> {
    const wallet = await this.wallets.resolve(address)
    const names = await this.wallets.addressesOf(wallet)
    const from = after === undefined ? '' : placeText(after)
    const { places, next } = await namesPage(this.ledger, historyKind, names, from, limit)
    const ids = places.map((place) => placeOf(place).id)
    const found = new Map((await this.ledger.transfersNamed(ids)).map((transfer) => [transfer.id, transfer]))
    return {
      page: ids.map((id) => found.get(id)).filter((one) => one !== undefined),
      next: next === undefined ? undefined : placeOf(next),
    }
  }
}

/** What is written with a payment, so that it is found in the history of its wallet. */
export function historyRecord(wallet: string, atMs: number, transferId: string): RecordChange {
  return { kind: historyKind, key: historyKey(wallet, { atMs, id: transferId }), value: '1' }
}

function historyKey(wallet: string, place: HistoryPlace): string {
  return `${wallet}|${placeText(place)}`
}

function placeText({ atMs, id }: HistoryPlace): string {
  return `${String(timeEnd - atMs).padStart(15, '0')}|${id}`
}

/** Reads the part of a key behind the wallet. */
function placeOf(text: string): HistoryPlace {
  const [time = '0', ...id] = text.split('|')
  return { atMs: timeEnd - Number(time), id: id.join('|') }
}
