import { availableOf } from '../ledger/account.js'
import {
  type CommitOrder,
  isRejected,
  type LedgerRecord,
  type MoneyLedger,
  type RecordChange,
} from '../ledger/port.js'
import type { MoveOrder } from '../ledger/transfer.js'
import type { ApprovalView, ApproveOrder, Denied, RevokeOrder } from './port.js'
import { accountOf, addressKind, spelled, type Wallets } from './wallets.js'

/** What is kept of an approval. How much of it was used is said by its account. */
export interface Approval {
  readonly id: string
  readonly payer: string
  readonly approved: string
  readonly winc: string
  readonly createdMs: number
  /** 0: never. */
  readonly expiresMs: number
  readonly ended?: {
    readonly why: 'expired' | 'revoked'
    readonly atMs: number
    /** So much was spent, or held back, by then. */
    readonly used: string
    /** The item that revoked it. */
    readonly by?: string
  }
}

/** An approval with what is left of it. */
export interface OpenApproval {
  readonly approval: Approval
  readonly left: bigint
}

const kind = 'approval'
const byPayer = 'approval-given'
const byApproved = 'approval-received'
const byTime = 'approval-due'

/** Approvals of one wallet that are looked at; more may exist, but nobody can have use of them. */
const listMax = 1000
/** The last moment that a date can say (ECMA-262): a later one would break every answer that shows it. */
const lastMs = 8.64e15

/** The ledger's account of an approval. */
export function approvalAccount(id: string): string {
  return `approval:${id}`
}

function dueKey({ expiresMs, id }: Approval): string {
  return `${String(expiresMs).padStart(16, '0')}|${id}`
}

function pairKeys({ payer, approved, id }: Approval): { readonly given: string; readonly received: string } {
  return { given: `${payer}|${approved}|${id}`, received: `${approved}|${payer}|${id}` }
}

function denied(status: Denied['status'], text: string): Denied {
  return { denied: true, status, text }
}

/** Shared credits: an approval takes winc out of the payer's wallet at once, into an account of its own. */
export class Approvals {
  constructor(
    private readonly ledger: MoneyLedger,
    private readonly wallets: Wallets,
    private readonly now: () => number,
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
    const payer = await this.wallets.find(payingAddress)
    const approved = await this.wallets.find(approvedAddress)
    if (payer === approved) return denied(400, 'Invalid approved address')
    const before = await this.find(itemId)
    if (before !== undefined) return this.view(before)
    const approval: Approval = { id: itemId, payer, approved, winc, createdMs, expiresMs }
    const outcome = await this.ledger.commit(openingOf(approval))
    if (!isRejected(outcome)) return this.view(approval)
    if (outcome.rejected === 'insufficient') return denied(402, `Insufficient balance for '${payer}'`)
    const other = await this.find(itemId)
    if (other !== undefined) return this.view(other)
    throw new Error(`approval ${itemId}: ${outcome.rejected} at ${outcome.at}`)
  }

  async revoke({
    itemId,
    payingAddress,
    approvedAddress,
  }: RevokeOrder): Promise<readonly ApprovalView[] | Denied> {
    const payer = await this.wallets.find(payingAddress)
    const approved = await this.wallets.find(approvedAddress)
    const ended: Approval[] = []
    for (const { approval } of await this.open('given', payer, approved)) {
      const one = await this.end(approval, 'revoked', itemId)
      if (one !== undefined) ended.push(one)
    }
    // The same item again: what it has ended already is the answer.
    const before = ended.length > 0 ? ended : await this.#revokedBy(itemId)
    if (before.length > 0) return Promise.all(before.map((one) => this.view(one)))
    const pair = `approved address '${spelled(approvedAddress)}' and paying address '${spelled(payingAddress)}'`
    return denied(400, `No valid approvals found for ${pair}`)
  }

  async find(id: string): Promise<Approval | undefined> {
    return (await this.stored(id))?.approval
  }

  /** An approval with what a commit says that must find it unchanged: whoever gives something back to its account. */
  async stored(
    id: string,
  ): Promise<{ readonly approval: Approval; readonly unchanged: RecordChange } | undefined> {
    const found = await this.ledger.record(kind, id)
    if (found === undefined) return undefined
    const { key, value, version } = found
    return { approval: read(found), unchanged: { kind, key, value, expected: version } }
  }

  /**
   * Approvals that can still pay: those that a wallet has given, or received, from or to one other wallet or all. Earliest expiry
   * first, those without one last, then the oldest first.
   */
  async open(side: 'given' | 'received', wallet: string, other?: string): Promise<OpenApproval[]> {
    const entries: LedgerRecord[] = []
    for (const start of await this.#starts(wallet, other))
      entries.push(
        ...(await this.ledger.records(side === 'given' ? byPayer : byApproved, start, '', listMax)),
      )
    const found: OpenApproval[] = []
    for (const { key } of entries) {
      const approval = await this.find(key.slice(key.lastIndexOf('|') + 1))
      if (approval === undefined || approval.ended !== undefined) continue
      if (this.#isOver(approval)) {
        await this.end(approval, 'expired')
        continue
      }
      const left = await this.left(approval)
      if (left > 0n) found.push({ approval, left })
    }
    return found.sort((one, two) => order(one.approval, two.approval))
  }

  /** How the keys begin that name these wallets, by any of their addresses. */
  async #starts(wallet: string, other: string | undefined): Promise<string[]> {
    const ours = await this.wallets.names(wallet)
    if (other === undefined) return ours.map((one) => `${one}|`)
    const theirs = await this.wallets.names(other)
    return ours.flatMap((one) => theirs.map((two) => `${one}|${two}|`))
  }

  async left({ id }: Approval): Promise<bigint> {
    const account = await this.ledger.account(approvalAccount(id))
    return account === undefined ? 0n : availableOf(account)
  }

  /** Ends an approval and gives the rest back; undefined where it was ended before. */
  async end(approval: Approval, why: 'expired' | 'revoked', by?: string): Promise<Approval | undefined> {
    const { id, payer } = approval
    for (let attempt = 0; ; attempt += 1) {
      const stored = await this.ledger.record(kind, id)
      if (stored === undefined || read(stored).ended !== undefined) return undefined
      const left = await this.left(approval)
      const atMs = why === 'expired' ? approval.expiresMs : this.now()
      const used = String(BigInt(approval.winc) - left)
      const ended: Approval = { ...approval, ended: { why, atMs, used, ...(by === undefined ? {} : { by }) } }
      const back: MoveOrder[] =
        left === 0n
          ? []
          : [
              {
                id: `approval-end:${id}:${left}:${attempt}`,
                kind: 'posted',
                debit: approvalAccount(id),
                credit: accountOf(await this.wallets.find(payer)),
                amount: left,
                reference: by ?? id,
                reason: why === 'expired' ? 'delegated_payment_expired' : 'delegated_payment_revoke',
              } as const,
            ]
      const outcome = await this.ledger.commit({ transfers: back, records: closing(ended, stored.version) })
      if (!isRejected(outcome)) return ended
      // Somebody has spent of it, or ended it, between the reading and the writing.
      if (attempt > 100) throw new Error(`approval ${id} could not be ended: ${outcome.rejected}`)
    }
  }

  /** Ends what is over. Resolves with how many. */
  async expire(): Promise<number> {
    let count = 0
    for (const { key } of await this.ledger.records(byTime, '', '', 200)) {
      const [time = '', id = ''] = key.split('|')
      if (Number(time) > this.now()) break
      const approval = await this.find(id)
      if (approval !== undefined && (await this.end(approval, 'expired')) !== undefined) count += 1
    }
    return count
  }

  async view(approval: Approval): Promise<ApprovalView> {
    const { id, payer, approved, winc, createdMs, expiresMs, ended } = approval
    const used = ended === undefined ? BigInt(winc) - (await this.left(approval)) : BigInt(ended.used)
    const isUsed = ended === undefined && used >= BigInt(winc)
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
      usedWincAmount: String(used),
      creationDate: new Date(createdMs).toISOString(),
      ...(expiresMs === 0 ? {} : { expirationDate: new Date(expiresMs).toISOString() }),
      ...inactive,
      ...(ended?.why === 'revoked' && ended.by !== undefined ? { revokeDataItemId: ended.by } : {}),
    }
  }

  #isOver({ expiresMs }: Approval): boolean {
    return expiresMs !== 0 && expiresMs <= this.now()
  }

  async #revokedBy(itemId: string): Promise<Approval[]> {
    const entries = await this.ledger.records('approval-revoked', `${itemId}|`, '', listMax)
    const found = await Promise.all(entries.map(({ key }) => this.find(key.slice(itemId.length + 1))))
    return found.filter((one) => one !== undefined)
  }
}

function order(one: Approval, two: Approval): number {
  const time = (at: Approval): number => (at.expiresMs === 0 ? Number.POSITIVE_INFINITY : at.expiresMs)
  if (time(one) !== time(two)) return time(one) - time(two)
  return one.createdMs - two.createdMs || (one.id < two.id ? -1 : 1)
}

function read(record: LedgerRecord): Approval {
  return JSON.parse(record.value) as Approval
}

function openingOf(approval: Approval): CommitOrder {
  const { id, payer, winc } = approval
  const { given, received } = pairKeys(approval)
  const records: RecordChange[] = [
    { kind, key: id, value: JSON.stringify(approval), expected: 0 },
    { kind: byPayer, key: given, value: '1' },
    { kind: byApproved, key: received, value: '1' },
    ...(approval.expiresMs === 0 ? [] : [{ kind: byTime, key: dueKey(approval), value: '1' }]),
  ]
  const facts = { debit: accountOf(payer), credit: approvalAccount(id), amount: BigInt(winc) }
  const reason = 'delegated_payment_approval'
  return { transfers: [{ id: `approval:${id}`, kind: 'posted', ...facts, reason, reference: id }], records }
}

function closing(approval: Approval, version: number): RecordChange[] {
  const { id, ended, expiresMs } = approval
  const { given, received } = pairKeys(approval)
  return [
    { kind, key: id, value: JSON.stringify(approval), expected: version },
    { kind: byPayer, key: given, value: undefined },
    { kind: byApproved, key: received, value: undefined },
    ...(expiresMs === 0 ? [] : [{ kind: byTime, key: dueKey(approval), value: undefined }]),
    ...(ended?.by === undefined ? [] : [{ kind: 'approval-revoked', key: `${ended.by}|${id}`, value: '1' }]),
  ]
}
