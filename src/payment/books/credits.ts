import { systemClock } from '../../actor/clock.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { availableOf } from '../../ledger/ledger-account.js'
import type { MoneyLedger, RecordChange } from '../../ledger/ledger-port.js'
import type {
  ApproveOrder,
  Checked,
  CheckOrder,
  CreditsPort,
  Payer,
  Reserved,
  ReserveOrder,
  RevokeOrder,
  Unpaid,
  WithdrawOrder,
} from '../credits-port.js'
import { approvalAccount, leftChanged } from './approval-index.js'
import type { Approvals } from './approvals.js'
import type { CheckTurns } from './check-turns.js'
import { covers, isReserved, type Purpose, totalOf } from './reservation.js'
import { type PayersPlan, Reservations } from './reservations.js'
import { SharedCredits, totalLeft } from './shared-credits.js'
import { accountOf, type Wallets } from './wallets.js'

/** An order to reserve credits under a name, for any purpose. */
export interface ReserveForOrder extends Payer {
  readonly itemId: string
  readonly bytes: number
  readonly purpose: Purpose
  readonly winc: () => Promise<bigint | Refusal>
  readonly ticket?: string
  readonly service?: string
  /** Written in the same commit. */
  readonly records?: readonly RecordChange[]
}

interface Signer {
  readonly address: string
  readonly alias?: string | undefined
}

export interface CreditsParts {
  readonly ledger: MoneyLedger
  readonly wallets: Wallets
  readonly approvals: Approvals
  /** What is reserved for items: sales in USDC use the same one. Absent: this service makes its own. */
  readonly reservations?: Reservations
  /** Absent: no check waits for others. */
  readonly turns?: CheckTurns
  /** Winc for so many bytes. */
  readonly price: (bytes: number) => Promise<bigint | Refusal>
}

/** Spends credits for items: reserves them, then settles or refunds. Only this class decides which credits pay. */
export class LedgerCredits implements CreditsPort {
  readonly #ledger: MoneyLedger
  readonly #wallets: Wallets
  readonly #approvals: Approvals
  readonly #shared: SharedCredits
  readonly #price: CreditsParts['price']
  readonly #turns: CheckTurns | undefined
  readonly #reservations: Pick<Reservations, 'find' | 'reserve' | 'settle' | 'refund' | 'withdraw'>

  constructor({ ledger, wallets, approvals, price, reservations, turns }: CreditsParts) {
    this.#turns = turns
    this.#reservations = reservations ?? new Reservations({ ledger, wallets, approvals })
    this.#ledger = ledger
    this.#wallets = wallets
    this.#approvals = approvals
    this.#shared = new SharedCredits(ledger, wallets, approvals)
    this.#price = price
  }

  async price(bytes: number): Promise<{ readonly winc: string } | Refusal> {
    const winc = await this.#price(bytes)
    return isRefusal(winc) ? winc : { winc: String(winc) }
  }

  async check(order: CheckOrder): Promise<Checked | Refusal> {
    return this.#turns === undefined ? this.#check(order) : this.#turns.run(() => this.#check(order), order)
  }

  async #check({ bytes, itemId, ...payer }: CheckOrder): Promise<Checked | Refusal> {
    const winc = await this.#price(bytes)
    if (isRefusal(winc)) return winc
    const reservation =
      itemId === undefined ? undefined : (await this.#reservations.find(itemId))?.reservation
    if (isReserved(reservation) && covers(reservation, bytes, winc))
      return { isEnough: true, isUnknownWallet: false, winc: String(winc), balance: totalOf(reservation) }
    // Anybody may have named this payer, so nothing is written: what lies at its alias is added up with the rest.
    const signer = await this.#wallets.resolve(payer.address)
    const aliases = payer.alias === undefined || payer.alias === signer ? [] : [payer.alias]
    const shared = totalLeft(await this.#shared.chosen(payer.paidBy, signer, winc, aliases))
    const accounts = await this.#ledger.accountsNamed([signer, ...aliases].map(accountOf))
    const own = payer.directive === 'list-only' ? [] : accounts.map(availableOf).filter((one) => one > 0n)
    const balance = own.reduce((sum, one) => sum + one, shared)
    const isUnknownWallet = accounts.length === 0 && shared === 0n
    return { isEnough: balance >= winc, isUnknownWallet, winc: String(winc), balance: String(balance) }
  }

  reserve(order: ReserveOrder): Promise<Reserved | Unpaid | Refusal> {
    return this.reserveFor({ ...order, purpose: 'upload', winc: () => this.#price(order.bytes) })
  }

  /** Reserves credits: `settle` or `refund` of the same name must follow. A repeated order gets the first reservation. */
  async reserveFor(order: ReserveForOrder): Promise<Reserved | Unpaid | Refusal> {
    const { itemId, bytes, purpose, winc, ticket, service, records } = order
    const outcome = await this.#reservations.reserve({
      itemId,
      bytes,
      purpose,
      ticket,
      service,
      atMs: systemClock.now(),
      records,
      winc,
      wallet: () => this.#signer(order),
      plan: (wallet, missing) => this.#plan(order, wallet, missing),
    })
    if (isRefusal(outcome)) return outcome
    if (outcome.paid) return { paid: true, winc: String(outcome.winc) }
    const unpaid = await this.#unpaid(outcome.wallet, outcome.winc)
    return outcome.elsewhere === undefined ? unpaid : { ...unpaid, elsewhere: outcome.elsewhere }
  }

  /** The wallet that has reserved for an item; undefined where none has. */
  async ownerOf(itemId: string): Promise<string | undefined> {
    const found = await this.#reservations.find(itemId)
    return found && this.#wallets.resolve(found.reservation.address)
  }

  settle(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    return this.#reservations.settle(itemId)
  }

  refund(itemId: string): Promise<{ readonly winc: string } | Refusal> {
    return this.#reservations.refund(itemId)
  }

  withdraw({ itemId, ticket }: WithdrawOrder): Promise<{ readonly winc: string } | Refusal> {
    return this.#reservations.withdraw(itemId, ticket)
  }

  async approve(order: ApproveOrder): ReturnType<CreditsPort['approve']> {
    await this.#signer({ address: order.payingAddress, alias: order.payingAlias })
    return this.#approvals.create(order)
  }

  async revoke(order: RevokeOrder): ReturnType<CreditsPort['revoke']> {
    await this.#signer({ address: order.payingAddress, alias: order.payingAlias })
    return this.#approvals.revoke(order)
  }

  /** The wallet of the key that has signed an order. Moves credits at the alias of this key, so the signature must be checked. */
  async #signer({ address, alias }: Signer): Promise<string> {
    if (alias !== undefined) await this.#wallets.takeOverAlias(address, alias)
    return this.#wallets.resolve(address)
  }

  /** Who gives how much; undefined where the approvals alone must be enough and are not. */
  async #plan(payer: Payer, signer: string, winc: bigint): Promise<PayersPlan | undefined> {
    const parts: { account: string; winc: string }[] = []
    const records: RecordChange[] = []
    let missing = winc
    for (const { approval, left } of await this.#shared.chosen(payer.paidBy, signer, winc)) {
      const part = lesser(left, missing)
      if (part === 0n) break
      parts.push({ account: approvalAccount(approval.id), winc: String(part) })
      records.push(...leftChanged(approval, -part))
      missing -= part
    }
    if (missing === 0n) return { parts, records }
    if (payer.directive === 'list-only') return undefined
    return { parts: [...parts, { account: accountOf(signer), winc: String(missing) }], records }
  }

  async #unpaid(signer: string, winc: bigint): Promise<Unpaid> {
    const account = await this.#ledger.account(accountOf(signer))
    return { paid: false, winc: String(winc), isUnknownWallet: account === undefined }
  }
}

/** The lesser of two amounts. */
export function lesser(one: bigint, other: bigint): bigint {
  if (one < other) return one
  return other
}
