import {
  availableOf,
  balanceOf,
  credited,
  debited,
  isOwned,
  type LedgerAccount,
  newAccount,
} from './ledger-account.js'
import {
  type CommitOrder,
  isKey,
  type LedgerRecord,
  type RecordChange,
  type Rejected,
} from './ledger-port.js'
import {
  type EndOrder,
  effectOf,
  isSameTransfer,
  type MoveOrder,
  noFacts,
  type Transfer,
  type TransferOrder,
} from './transfer.js'

/**
 * The accounts, transfers and records that an order is judged by. All reading from a store comes before, so that the judge
 * decides without waiting. `LmdbBooks` (embedded) and `FetchedView` (PostgreSQL) implement it.
 */
export interface LedgerView {
  account(name: string): LedgerAccount | undefined
  transfer(id: string): Transfer | undefined
  /** True where a pending transfer was posted or is void. */
  isEnded(pendingId: string): boolean
  record(kind: string, key: string): LedgerRecord | undefined
}

/** What a commit writes. */
export interface LedgerEntries {
  readonly transfers: readonly Transfer[]
  readonly accounts: readonly LedgerAccount[]
  readonly records: readonly RecordChange[]
}

export type Judged =
  | Rejected
  | { readonly existed: readonly Transfer[] }
  | { readonly entries: LedgerEntries }

const idMax = 200
const transfersMax = 1000

/**
 * Decides an order: guards in a fixed order, each with a name of its own; behind them it must succeed. Pure: `sequence` is the
 * number of the last transfer, `nowMs` the time of the new ones.
 */
export function judge(order: CommitOrder, view: LedgerView, sequence: number, nowMs: number): Judged {
  const { transfers, records = [] } = order
  const known = existing(transfers, view)
  if (known !== undefined) return known
  for (const { kind, key, expected } of records) {
    if (!isKey(key, kind)) return { rejected: 'invalid', at: key }
    if (expected === undefined) continue
    if ((view.record(kind, key)?.version ?? 0) !== expected) return { rejected: 'conflict', at: key }
  }
  const draft = new Draft(view, sequence, nowMs)
  for (const one of transfers) {
    const wrong = 'pending' in one ? draft.end(one) : draft.move(one)
    if (wrong !== undefined) return wrong
  }
  const poor = draft.poor()
  if (poor !== undefined) return poor
  const has = (account: string): boolean => availableOf(draft.account(account)) > 0n
  return {
    entries: { transfers: draft.made, accounts: draft.changed, records: [...decided(records, view, has)] },
  }
}

/** The records as they will be: sums are added up, and what follows an account is there or gone. What stays is left out. */
function* decided(
  records: readonly RecordChange[],
  view: LedgerView,
  has: (account: string) => boolean,
): Iterable<RecordChange> {
  /** Sums that this order has changed already. */
  const sums = new Map<string, bigint>()
  for (const change of records) {
    const { kind, key, added, whileHas } = change
    if (added === undefined && whileHas === undefined) {
      yield change
      continue
    }
    const before = view.record(kind, key)?.value
    if (added === undefined) {
      const value = whileHas !== undefined && has(whileHas) ? change.value : undefined
      if (value !== before) yield { kind, key, value }
      continue
    }
    if (added === 0n) continue
    const place = `${kind}\0${key}`
    const sum = (sums.get(place) ?? BigInt(before ?? 0)) + added
    sums.set(place, sum)
    yield { kind, key, value: sum === 0n ? undefined : String(sum) }
  }
}

/** Idempotence comes first: an order that was carried out is answered with what it did. */
function existing(transfers: readonly TransferOrder[], view: LedgerView): Judged | undefined {
  const ids = new Set<string>()
  const found: Transfer[] = []
  for (const order of transfers) {
    const { id, reason } = order
    if (id === '' || id.length > idMax || !isKey(id) || reason === '' || ids.has(id))
      return { rejected: 'invalid', at: id }
    ids.add(id)
    const stored = view.transfer(id)
    if (stored === undefined) continue
    if (!isSameTransfer(stored, order)) return { rejected: 'differs', at: id }
    found.push(stored)
  }
  if (transfers.length > transfersMax) return { rejected: 'invalid', at: transfers[0]?.id ?? '' }
  if (found.length === 0) return undefined
  const missing = transfers.find(({ id }) => !found.some((one) => one.id === id))
  return missing === undefined ? { existed: found } : { rejected: 'differs', at: missing.id }
}

/** The accounts as the order changes them. */
class Draft {
  readonly made: Transfer[] = []
  readonly #accounts = new Map<string, LedgerAccount>()
  /** Accounts that gave something, by the transfer that took it. */
  readonly #givers = new Map<string, string>()
  readonly #ended = new Set<string>()

  constructor(
    private readonly view: LedgerView,
    private readonly sequence: number,
    private readonly nowMs: number,
  ) {}

  get changed(): LedgerAccount[] {
    return [...this.#accounts.values()]
  }

  move(order: MoveOrder): Rejected | undefined {
    const { id, kind, debit, credit, amount, reason, reference, timeoutMs, about = noFacts } = order
    const areNames = debit !== '' && credit !== '' && isKey(debit) && isKey(credit)
    if (amount < 1n || debit === credit || !areNames) return { rejected: 'invalid', at: id }
    const untilMs = kind === 'pending' && timeoutMs !== undefined ? this.nowMs + timeoutMs : 0
    const { nowMs: timeMs } = this
    const pending = ''
    const sequence = this.#next
    this.#add(
      { sequence, id, kind, debit, credit, amount, reason, reference, timeMs, untilMs, pending, about },
      0n,
    )
    if (order.mayOverdraw !== true) this.#givers.set(debit, id)
    return undefined
  }

  end(order: EndOrder): Rejected | undefined {
    const { id, kind, pending: pendingId, reason, reference } = order
    const pending = isKey(pendingId) ? this.view.transfer(pendingId) : undefined
    if (pending?.kind !== 'pending') return { rejected: 'unknown', at: id }
    if (this.view.isEnded(pendingId) || this.#ended.has(pendingId)) return { rejected: 'ended', at: id }
    const isOver = pending.untilMs !== 0 && pending.untilMs <= this.nowMs
    if (kind === 'post' && isOver) return { rejected: 'ended', at: id }
    const { debit, credit } = pending
    const amount = kind === 'post' ? (order.amount ?? pending.amount) : pending.amount
    if (amount < 1n || amount > pending.amount) return { rejected: 'invalid', at: id }
    this.#ended.add(pendingId)
    const { nowMs: timeMs } = this
    const untilMs = 0
    const about = noFacts
    const sequence = this.#next
    this.#add(
      {
        sequence,
        id,
        kind,
        debit,
        credit,
        amount,
        reason,
        reference,
        timeMs,
        untilMs,
        pending: pendingId,
        about,
      },
      pending.amount,
    )
    return undefined
  }

  /** Who would have less than nothing behind all transfers of the order. */
  poor(): Rejected | undefined {
    for (const [name, at] of this.#givers) {
      if (isOwned(name) && availableOf(this.account(name)) < 0n)
        return { rejected: 'insufficient', at, account: name }
    }
    return undefined
  }

  get #next(): number {
    return this.sequence + this.made.length + 1
  }

  /** `pending`: the amount of what the transfer ends. */
  #add(transfer: Transfer, pending: bigint): void {
    this.made.push(transfer)
    const { debit, credit } = transfer
    const { posted, held } = effectOf(transfer, pending)
    this.#accounts.set(debit, debited(this.account(debit), posted, held))
    this.#accounts.set(credit, credited(this.account(credit), posted, held))
  }

  account(name: string): LedgerAccount {
    return this.#accounts.get(name) ?? this.view.account(name) ?? newAccount(name, this.nowMs)
  }
}

/**
 * What must hold of the entries of a commit, whatever was ordered. Throws where it does not: a bug, and nothing may be written.
 */
export function assertEntries(
  { transfers, accounts }: LedgerEntries,
  before: (name: string) => LedgerAccount | undefined,
): void {
  const debitors = new Set(
    transfers.filter(({ kind }) => kind === 'posted' || kind === 'pending').map((one) => one.debit),
  )
  let posted = 0n
  let pending = 0n
  for (const account of accounts) {
    const old = before(account.name) ?? newAccount(account.name, 0)
    posted += balanceOf(account) - balanceOf(old)
    pending += account.creditsPending - old.creditsPending - (account.debitsPending - old.debitsPending)
    if (account.debitsPending < 0n || account.creditsPending < 0n)
      throw new Error(`ledger: less than nothing is pending on ${account.name}`)
    if (account.debitsPosted < old.debitsPosted || account.creditsPosted < old.creditsPosted)
      throw new Error(`ledger: a sum of ${account.name} went down`)
    const fell = availableOf(account) < availableOf(old)
    if (fell && !debitors.has(account.name)) throw new Error(`ledger: nobody took from ${account.name}`)
  }
  if (posted !== 0n || pending !== 0n) throw new Error('ledger: debits and credits of a commit differ')
}
