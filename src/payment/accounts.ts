import { availableOf } from '../ledger/account.js'
import { type CommitOutcome, isRejected, type MoneyLedger, type RecordChange } from '../ledger/port.js'
import type { Transfer } from '../ledger/transfer.js'
import type { Approvals, OpenApproval } from './approvals.js'
import type { ApprovalView } from './port.js'
import { accountOf, type Wallets } from './wallets.js'

/** What a wallet has, as clients read it. */
export interface BalanceView {
  readonly winc: string
  /** The same: older clients read it. */
  readonly balance: string
  /** With what is left of approvals that it has given. */
  readonly controlledWinc: string
  /** With what is left of approvals that it has received. */
  readonly effectiveBalance: string
  readonly givenApprovals: readonly ApprovalView[]
  readonly receivedApprovals: readonly ApprovalView[]
}

const historyKind = 'payment-of'
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
    const wallet = await this.wallets.find(address)
    const [given, received] = [
      await this.approvals.open('given', wallet),
      await this.approvals.open('received', wallet),
    ]
    const account = await this.ledger.account(accountOf(wallet))
    if (account === undefined && received.length === 0) return undefined
    const winc = account === undefined ? 0n : availableOf(account)
    const left = (list: readonly OpenApproval[]): bigint => list.reduce((sum, one) => sum + one.left, 0n)
    return {
      winc: String(winc),
      balance: String(winc),
      controlledWinc: String(winc + left(given)),
      effectiveBalance: String(winc + left(received)),
      givenApprovals: await this.#views(given),
      receivedApprovals: await this.#views(received),
    }
  }

  /** Approvals of one wallet on both sides; empty lists where there are none. */
  async approvalsOf(address: string): Promise<Pick<BalanceView, 'givenApprovals' | 'receivedApprovals'>> {
    const wallet = await this.wallets.find(address)
    return {
      givenApprovals: await this.#views(await this.approvals.open('given', wallet)),
      receivedApprovals: await this.#views(await this.approvals.open('received', wallet)),
    }
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
    for (let tries = 1; ; tries += 1) {
      const { wallet, unchanged } = await this.wallets.place(address)
      const facts = { debit: source, credit: accountOf(wallet), amount: winc, reason, reference, about }
      const outcome = await this.ledger.commit({
        transfers: [{ id, kind: 'posted', ...facts }],
        // A list of its own, so that a page of payments does not depend on how many uploads lie in between.
        records: [historyRecord(wallet, this.now(), id), ...unchanged],
      })
      // An alias is taken over once, so the second reading is the last word.
      if (!isRejected(outcome) || outcome.rejected !== 'conflict' || tries === 3) return outcome
    }
  }

  /** Payments into a wallet, youngest first, and where the next page begins; undefined: this was the last. */
  async payments(
    address: string,
    after: HistoryPlace | undefined,
    limit: number,
  ): Promise<{ readonly page: readonly Transfer[]; readonly next: HistoryPlace | undefined }> {
    const wallet = await this.wallets.find(address)
    const keys: string[] = []
    for (const name of await this.wallets.names(wallet)) {
      const from = after === undefined ? '' : historyKey(name, after)
      const found = await this.ledger.records(historyKind, `${name}|`, from, limit + 1)
      keys.push(...found.map(({ key }) => key.slice(name.length + 1)))
    }
    keys.sort((one, two) => (one < two ? -1 : 1))
    const places = keys.slice(0, limit).map(placeOf)
    const page = await Promise.all(places.map(({ id }) => this.ledger.transfer(id)))
    return {
      page: page.filter((one) => one !== undefined),
      next: keys.length > limit ? places.at(-1) : undefined,
    }
  }

  #views(list: readonly OpenApproval[]): Promise<ApprovalView[]> {
    return Promise.all(list.map(({ approval }) => this.approvals.view(approval)))
  }
}

/** The transfer of a credit, whether it happened now or before. Throws on anything else: it can only be a bug. */
export function creditedBy(outcome: CommitOutcome): Transfer {
  if (isRejected(outcome)) throw new Error(`a credit was refused: ${outcome.rejected} at ${outcome.at}`)
  const [transfer] = outcome.transfers
  if (transfer === undefined) throw new Error('a credit without a transfer')
  return transfer
}

/** What is written with a payment, so that it is found in the history of its wallet. */
export function historyRecord(wallet: string, atMs: number, transferId: string): RecordChange {
  return { kind: historyKind, key: historyKey(wallet, { atMs, id: transferId }), value: '1' }
}

function historyKey(wallet: string, { atMs, id }: HistoryPlace): string {
  return `${wallet}|${String(timeEnd - atMs).padStart(15, '0')}|${id}`
}

/** Of what stands behind the wallet in a key. */
function placeOf(text: string): HistoryPlace {
  const [time = '0', ...id] = text.split('|')
  return { atMs: timeEnd - Number(time), id: id.join('|') }
}
