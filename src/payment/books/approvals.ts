import { availableOf } from '../../ledger/ledger-account.js'
import { isRejected, type MoneyLedger, type RecordChange } from '../../ledger/ledger-port.js'
import type { ApprovalView, ApproveOrder, Denied, RevokeOrder } from '../credits-port.js'
import {
  type Approval,
  approvalAccount,
  idOfKey,
  indexKinds,
  approvalKind as kind,
  type Side,
  sumKeys,
  sumKind,
  sumsOf,
  timeKey,
} from './approval-index.js'
import { endingOf, openingOf, readApproval } from './approval-orders.js'
import { namesPage } from './pages.js'
import { addressKind, spelled, type Wallets } from './wallets.js'

/** An approval with what is left of it. */
export interface OpenApproval {
  readonly approval: Approval
  readonly left: bigint
}

/** Approvals of one page. `next`: the next page begins behind it; undefined: this was the last. */
export interface ApprovalsPage {
  readonly open: readonly OpenApproval[]
  readonly next: string | undefined
}

/** An approval with the version that a commit expects: a refund to its account must find it unchanged. */
export interface StoredApproval {
  readonly approval: Approval
  readonly conditions: RecordChange
}

/** Ended approvals that the answer to one item lists. */
const listedMax = 1000
/** Approvals that are ended in one go. */
const endedAtOnce = 200
/** How often a question looks for approvals whose time is over. */
const lookEveryMs = 1000
/** Approvals that are over by a time which is not confirmed: so many of the oldest are left out of the sums. */
const hiddenMax = 1000
/** Approvals that one call ends: the next one ends the rest. */
const expiredMax = 10_000
/** The last moment that a date can represent (ECMA-262): a later one would break every answer that shows it. */
const lastMs = 8.64e15

function denied(status: Denied['status'], text: string): Denied {
  return { denied: true, status, text }
}

/** Shared credits: an approval takes winc out of the payer's wallet at once, into an account of its own. */
export class Approvals {
  /** The work that ends approvals whose time is over, while it runs. */
  #expiring: Promise<readonly OpenApproval[]> | undefined
  /** Nothing is over before, by what was known when it was looked for; others may have shared since. */
  #quietUntilMs = 0

  constructor(
    private readonly ledger: MoneyLedger,
    private readonly wallets: Wallets,
    private readonly now: () => number,
    /** As `ConfirmedTime.now`: what is over by it ends for good. */
    private readonly confirmed: (sinceMs: number) => number,
  ) {}

  async create({
    itemId,
    payingAddress,
    approvedAddress,
    winc,
    expiresInSeconds,
  }: ApproveOrder): Promise<ApprovalView | Denied> {
    if (addressKind(approvedAddress) === undefined) return denied(400, 'Invalid approved address')
    if (!/^[1-9]\d{0,77}$/.test(winc)) return denied(400, 'Invalid winc amount')
    const createdMs = this.now()
    const expiresMs = expiresInSeconds === undefined ? 0 : createdMs + expiresInSeconds * 1000
    const isTime =
      expiresInSeconds === undefined || (Number.isSafeInteger(expiresInSeconds) && expiresInSeconds > 0)
    if (!isTime || expiresMs > lastMs) return denied(400, 'Invalid expiration')
    const payer = await this.wallets.resolve(payingAddress)
    const approved = await this.wallets.resolve(approvedAddress)
    if (payer === approved) return denied(400, 'Invalid approved address')
    const before = await this.find(itemId)
    if (before !== undefined) return this.view(before)
    const approval: Approval = { id: itemId, payer, approved, winc, createdMs, expiresMs }
    const outcome = await this.ledger.commit(openingOf(approval))
    if (expiresMs !== 0) this.#quietUntilMs = Math.min(this.#quietUntilMs, expiresMs)
    if (!isRejected(outcome)) return this.view(approval)
    if (outcome.rejected === 'insufficient') return denied(402, `Insufficient balance for '${payer}'`)
    const other = await this.find(itemId)
    if (other !== undefined) return this.view(other)
    throw new Error(`approval ${itemId}: ${outcome.rejected} at ${outcome.at}`)
  }

  /**
   * Ends all approvals of a pair that existed when the item first came. Anybody may post the item again, also to another service
   * with the same ledger, and it must not end younger approvals. Returns a thousand of them at most.
   */
  async revoke({
    itemId,
    payingAddress,
    approvedAddress,
  }: RevokeOrder): Promise<readonly ApprovalView[] | Denied> {
    const payer = await this.wallets.resolve(payingAddress)
    const approved = await this.wallets.resolve(approvedAddress)
    const before = await this.#revokedBy(itemId)
    const cameMs = Math.min(...before.map(({ ended }) => ended?.atMs ?? Number.POSITIVE_INFINITY))
    const ended: Approval[] = []
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page: ApprovalsPage = await this.pair(payer, approved, after, endedAtOnce)
      const older = page.open.filter(({ approval }) => approval.createdMs <= cameMs)
      const ends = older.map(({ approval }) => this.end(approval, 'revoked', itemId))
      for (const one of await Promise.all(ends))
        if (one !== undefined && ended.length < listedMax) ended.push(one)
      after = page.next
    }
    // The same item again: what it has ended already is the answer.
    const revoked = ended.length > 0 ? ended : before
    if (revoked.length > 0) return this.#views(revoked)
    const pair = `approved address '${spelled(approvedAddress)}' and paying address '${spelled(payingAddress)}'`
    return denied(400, `No valid approvals found for ${pair}`)
  }

  async find(id: string): Promise<Approval | undefined> {
    return (await this.storedOf([id])).get(id)?.approval
  }

  /** Approvals by their ids, in one question to the ledger. */
  async storedOf(ids: readonly string[]): Promise<ReadonlyMap<string, StoredApproval>> {
    const found = await this.ledger.recordsNamed(kind, ids)
    return new Map(
      found.map((record) => {
        const { key, value, version } = record
        return [key, { approval: readApproval(record), conditions: { kind, key, value, expected: version } }]
      }),
    )
  }

  /** Approvals of a wallet that can pay: the largest first, of equal ones the earliest to end. `after`: of the page before. */
  async page(side: Side, wallet: string, after: string, limit: number): Promise<ApprovalsPage> {
    const names = await this.wallets.addressesOf(wallet)
    return this.#opened(await namesPage(this.ledger, indexKinds[side], names, after, limit))
  }

  /**
   * Usable approvals of one wallet for another, in the order in which they pay: earliest expiry first, those without one last,
   * then the oldest first. Expired ones are left out. `after`: of the page before.
   */
  async pair(payer: string, approved: string, after: string, limit: number): Promise<ApprovalsPage> {
    const names = await this.#pairNames(payer, approved)
    const from = after === '' ? this.unexpired : after
    return this.#opened(await namesPage(this.ledger, indexKinds.pair, names, from, limit))
  }

  /** The place in the list of a pair behind all approvals that are over. */
  get unexpired(): string {
    return `${timeKey(this.now())}|~`
  }

  /** What is left of all approvals that a wallet has given, and received. What is over at this moment may be ended first. */
  async sums(wallet: string): Promise<Readonly<Record<Side, bigint>>> {
    const over = await this.#expireDue()
    const names = await this.wallets.addressesOf(wallet)
    return {
      given: await this.#sum(names.map(sumKeys.given), over),
      received: await this.#sum(names.map(sumKeys.received), over),
    }
  }

  /** What is left of all approvals of one wallet for another. */
  async pairSum(payer: string, approved: string): Promise<bigint> {
    const over = await this.#expireDue()
    const names = await this.#pairNames(payer, approved)
    return this.#sum(names.map(sumKeys.pairOf), over)
  }

  /** `over`: what still counts in the sums and cannot be spent. */
  async #sum(keys: readonly string[], over: readonly OpenApproval[]): Promise<bigint> {
    const found = await this.ledger.recordsNamed(sumKind, keys)
    const all = found.reduce((sum, { value }) => sum + BigInt(value), 0n)
    const isSummed = ({ approval }: OpenApproval): boolean =>
      sumsOf(approval).some((key) => keys.includes(key))
    const hidden = over.filter(isSummed).reduce((sum, { left }) => sum + left, 0n)
    // One of them may have ended between both reads.
    return hidden > all ? 0n : all - hidden
  }

  async #opened({
    places,
    next,
  }: {
    readonly places: readonly string[]
    readonly next: string | undefined
  }): Promise<ApprovalsPage> {
    const open = await this.open(places.map(idOfKey))
    return { open: places.flatMap((place) => open.get(idOfKey(place)) ?? []), next }
  }

  /** Those of these approvals that can pay, by their ids, in two questions to the ledger. */
  async open(ids: readonly string[]): Promise<ReadonlyMap<string, OpenApproval>> {
    const found = (await this.ledger.recordsNamed(kind, ids)).map(readApproval)
    const usable = found.filter((one) => one.ended === undefined && !this.#isOver(one))
    const left = await this.#leftOf(usable)
    const open = usable.map((approval) => ({ approval, left: left.get(approval.id) ?? 0n }))
    return new Map(open.filter((one) => one.left > 0n).map((one) => [one.approval.id, one]))
  }

  /** What is left of each, by its id. */
  async #leftOf(list: readonly Approval[]): Promise<ReadonlyMap<string, bigint>> {
    const accounts = await this.ledger.accountsNamed(list.map(({ id }) => approvalAccount(id)))
    return new Map(
      accounts.map((account) => [account.name.slice(approvalAccount('').length), availableOf(account)]),
    )
  }

  /** How the keys of a pair begin, by any of the addresses of both. */
  async #pairNames(payer: string, approved: string): Promise<string[]> {
    const [ours = [], theirs = []] = await this.wallets.addressesOfAll([payer, approved])
    return pairNames(ours, theirs)
  }

  async left({ id }: Approval): Promise<bigint> {
    const account = await this.ledger.account(approvalAccount(id))
    return account === undefined ? 0n : availableOf(account)
  }

  /** Ends an approval and gives the rest back; undefined where it was ended before. */
  async end(approval: Approval, why: 'expired' | 'revoked', by?: string): Promise<Approval | undefined> {
    const { id, payer, expiresMs } = approval
    for (let attempt = 0; ; attempt += 1) {
      const stored = await this.ledger.record(kind, id)
      if (stored === undefined || readApproval(stored).ended !== undefined) return undefined
      const left = await this.left(approval)
      const end = { why, atMs: why === 'expired' ? expiresMs : this.now(), by }
      const { wallet, conditions } = await this.wallets.resolveGuarded(payer)
      const { order, ended } = endingOf(stored, { ...end, left, wallet, attempt })
      const records = [...(order.records ?? []), ...conditions]
      const outcome = await this.ledger.commit({ ...order, records })
      if (!isRejected(outcome)) return ended
      // Somebody has spent of it, or ended it, between the reading and the writing.
      if (attempt > 100) throw new Error(`approval ${id} could not be ended: ${outcome.rejected}`)
    }
  }

  /** Ends what is over by a confirmed time. Resolves with how many. */
  async expire(): Promise<number> {
    let count = 0
    for (let rounds = expiredMax / endedAtOnce, after = ''; rounds > 0; rounds -= 1) {
      const round = await this.#expireRound(after)
      count += round.ended
      if (round.next === undefined) break
      after = round.next
    }
    return count
  }

  /**
   * Ends some that are over; resolves with those that are over by a time which is not confirmed yet, a thousand at most. One
   * round for all concurrent callers, where anything is over: a request costs no more than that.
   */
  async #expireDue(): Promise<readonly OpenApproval[]> {
    if (this.now() < this.#quietUntilMs) return []
    const [first] = await this.ledger.records(indexKinds.due, '', '', 1)
    if (first === undefined || first.key > this.unexpired) {
      const [firstMs = ''] = first?.key.split('|') ?? []
      this.#quietUntilMs = Math.min(this.now() + lookEveryMs, Number(firstMs || lastMs))
      return []
    }
    this.#expiring ??= this.#endAndLook().finally(() => {
      this.#expiring = undefined
    })
    return this.#expiring
  }

  async #endAndLook(): Promise<readonly OpenApproval[]> {
    await this.#expireRound('')
    const { over } = await this.#over('', hiddenMax)
    const found = over.filter((approval) => !this.#hasEnded(approval))
    const left = await this.#leftOf(found)
    return found.map((approval) => ({ approval, left: left.get(approval.id) ?? 0n }))
  }

  async #expireRound(after: string): Promise<{ readonly ended: number; readonly next: string | undefined }> {
    const { over, next } = await this.#over(after, endedAtOnce)
    const ends = over
      .filter((approval) => this.#hasEnded(approval))
      .map((approval) => this.end(approval, 'expired'))
    return { ended: (await Promise.all(ends)).filter((one) => one !== undefined).length, next }
  }

  /** A page of those that are over by the plain clock, the first to end first. */
  async #over(
    after: string,
    limit: number,
  ): Promise<{ readonly over: readonly Approval[]; readonly next: string | undefined }> {
    const page = await this.ledger.records(indexKinds.due, '', after, limit)
    const keys = page.map(({ key }) => key).filter((key) => key <= this.unexpired)
    const found = keys.length === 0 ? [] : await this.ledger.recordsNamed(kind, keys.map(idOfKey))
    return { over: found.map(readApproval), next: keys.length === limit ? keys.at(-1) : undefined }
  }

  #hasEnded({ createdMs, expiresMs }: Approval): boolean {
    return expiresMs <= this.confirmed(createdMs)
  }

  async view(approval: Approval): Promise<ApprovalView> {
    const [view] = await this.#views([approval])
    return view as ApprovalView
  }

  async #views(list: readonly Approval[]): Promise<ApprovalView[]> {
    const lefts = await this.#leftOf(list.filter(({ ended }) => ended === undefined))
    return list.map((approval) => {
      const { ended, id, winc } = approval
      const left = ended === undefined ? (lefts.get(id) ?? 0n) : BigInt(winc) - BigInt(ended.used)
      return approvalView({ approval, left })
    })
  }

  #isOver({ expiresMs }: Approval): boolean {
    return expiresMs !== 0 && expiresMs <= this.now()
  }

  async #revokedBy(itemId: string): Promise<Approval[]> {
    const entries = await this.ledger.records('approval-revoked', `${itemId}|`, '', listedMax)
    const ids = entries.map(({ key }) => key.slice(itemId.length + 1))
    const found = (await this.ledger.recordsNamed(kind, ids)).map(readApproval)
    const places = new Map(ids.map((id, place) => [id, place]))
    return found.sort((one, other) => (places.get(one.id) ?? 0) - (places.get(other.id) ?? 0))
  }
}

/** How the keys of a pair begin, by any of the addresses of both. */
export function pairNames(payer: readonly string[], approved: readonly string[]): string[] {
  return payer.flatMap((one) => approved.map((two) => `${one}|${two}`))
}

/** An approval as clients read it. */
export function approvalView({ approval, left }: OpenApproval): ApprovalView {
  const { id, payer, approved, winc, createdMs, expiresMs, ended } = approval
  const isUsed = ended === undefined && left <= 0n
  const inactive =
    ended === undefined
      ? isUsed
        ? { inactiveReason: 'used' as const }
        : {}
      : { inactiveReason: ended.why, inactiveDate: new Date(ended.atMs).toISOString() }
  return {
    approvalDataItemId: id,
    approvedAddress: approved,
    payingAddress: payer,
    approvedWincAmount: winc,
    usedWincAmount: String(BigInt(winc) - left),
    creationDate: new Date(createdMs).toISOString(),
    ...(expiresMs === 0 ? {} : { expirationDate: new Date(expiresMs).toISOString() }),
    ...inactive,
    ...(ended?.why === 'revoked' && ended.by !== undefined ? { revokeDataItemId: ended.by } : {}),
  }
}
