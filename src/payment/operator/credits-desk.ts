import type { Clock, Timer } from '../../actor/clock.js'
import type { Meters } from '../../actor/meter.js'
import { isRefusal } from '../../format/refusal.js'
import { balanceOf } from '../../ledger/ledger-account.js'
import { isRejected, type MoneyLedger } from '../../ledger/ledger-port.js'
import type { MoveOrder, Transfer } from '../../ledger/transfer.js'
import type { BalanceView } from '../books/accounts.js'
import { accountOf, addressKind, spelled, Wallets } from '../books/wallets.js'
import { type StoredTopUp, topUpKind, watchedKind } from '../chains/top-up.js'
import type { Oracle } from '../prices/oracle.js'
import { type Promotion, promotionCountKind } from '../prices/promotions.js'
import { rateNumber } from '../prices/rates.js'
import type { Reconciler } from './reconciliation.js'

export interface CreditsDeskParts {
  readonly ledger: MoneyLedger
  readonly oracle: Oracle
  readonly reconciler: Pick<Reconciler, 'list'>
  readonly balanceOf: (address: string) => Promise<BalanceView | undefined>
  readonly meters: Meters
  readonly clock: Clock
}

/** One line of a statement: what a transfer did to a wallet. */
export interface StatementRow {
  readonly sequence: number
  readonly timeMs: number
  readonly id: string
  readonly reason: string
  readonly reference: string
  /** The account on the other side. */
  readonly other: string
  /** The amount with its sign; '0' for credits that were reserved and refunded. */
  readonly winc: string
  readonly state: 'done' | 'held' | 'given back'
  readonly note: string
}

export interface Correction {
  /** Names the correction: the same once more does nothing. */
  readonly key: string
  readonly address: string
  /** The amount with its sign. */
  readonly winc: string
  readonly note: string
  readonly by: string
}

/** What became of an operator's order. */
export type CreditsOutcome = { readonly done: string } | { readonly refused: string }

const lookEveryMs = 15_000
const pendingMax = 200
/** Payments that are looked at for those that are pending. */
const watchedMax = 5000
const statementMax = 10_000
const pageMax = 500
const correctionsAccount = 'operator:corrections'

/** The payment service as its operator sees it. */
export class CreditsDesk {
  readonly #timer: Timer
  readonly #wallets: Wallets
  #isLooking = false

  constructor(private readonly parts: CreditsDeskParts) {
    this.#wallets = new Wallets(parts.ledger)
    this.#timer = parts.clock.every(lookEveryMs, () => void this.#look())
    void this.#look()
  }

  close(): void {
    this.#timer.cancel()
  }

  /** Sets the gauges. */
  async #look(): Promise<void> {
    const { meters, clock, oracle } = this.parts
    const failing = meters.of('payment_ledger_failing')
    if (this.#isLooking) {
      // The ledger has not answered since the last look.
      failing.set(1)
      return
    }
    this.#isLooking = true
    try {
      // A disk that is full, or a database that only reads, answers questions still.
      const probe = { kind: 'probe', key: 'last', value: String(clock.now()) }
      await this.parts.ledger.commit({ transfers: [], records: [probe] })
      const pending = await this.#pending()
      const oldest = Math.min(...pending.map(({ createdMs }) => createdMs))
      meters.of('payment_topups_pending').set(pending.length)
      const age = pending.length === 0 ? 0 : (clock.now() - oldest) / 1000
      meters.of('payment_topup_oldest_pending_seconds').set(age)
      failing.set(0)
    } catch {
      // Whatever the reason is: the service itself logs what failed for its clients.
      failing.set(1)
    } finally {
      this.#isLooking = false
    }
    meters.of('payment_oracle_failing').set(isRefusal(await oracle.rates()) ? 1 : 0)
    meters.of('payment_oracle_age_seconds').set((oracle.about.ageMs ?? 0) / 1000)
  }

  /**
   * Payments on chains that are waited for, in the fields of their records, which the operator's API answers. Credited ones that
   * may still be taken back lie between them in the list.
   */
  async #pending(): Promise<StoredTopUp[]> {
    const { ledger } = this.parts
    const found: StoredTopUp[] = []
    let looked = 0
    for (let after = ''; found.length < pendingMax && looked < watchedMax; ) {
      const watched = await ledger.records(watchedKind, '', after, pendingMax)
      const records = await Promise.all(watched.map(({ key }) => ledger.record(topUpKind, key)))
      const topUps = records.flatMap((record) =>
        record === undefined ? [] : [JSON.parse(record.value) as StoredTopUp],
      )
      found.push(...topUps.filter(({ state }) => state === 'pending'))
      const last = watched.at(-1)
      if (last === undefined || watched.length < pendingMax) break
      after = last.key
      looked += watched.length
    }
    return found.slice(0, pendingMax)
  }

  async overview(): Promise<object> {
    const { ledger, oracle, reconciler, clock } = this.parts
    const rates = await oracle.rates()
    const promotions = await ledger.records('promo', '', '', 200)
    const declared = promotions.map(({ value }) => JSON.parse(value) as Promotion)
    const accounts = await Promise.all(
      ['source:', 'revenue', 'operator:', 'promo'].map((start) => ledger.accounts(start, '', 50)),
    )
    return {
      now: clock.now(),
      oracle: {
        ...oracle.about,
        ...(isRefusal(rates)
          ? { failing: rates.message }
          : { usd: numbers(rates.usd), perUsd: numbers(rates.perUsd) }),
      },
      pending: await this.#pending(),
      promotions: await Promise.all(
        declared.map(async (one) => ({
          ...one,
          uses: Number((await ledger.record(promotionCountKind, one.code))?.value ?? 0),
        })),
      ),
      accounts: accounts.flat().map((account) => ({ name: account.name, winc: String(balanceOf(account)) })),
      reconciliations: await reconciler.list(7),
    }
  }

  /** A wallet by any of its addresses, with its last transfers; undefined where nobody knows it. */
  async account(address: string): Promise<object | undefined> {
    const balance = await this.parts.balanceOf(address)
    const rows = await this.statement(address, 100)
    if (balance === undefined && rows.length === 0) return undefined
    const wallet = await this.#wallets.resolve(address)
    return { wallet, names: await this.#wallets.addressesOf(wallet), balance, rows }
  }

  /** What happened to a wallet, youngest first. */
  async statement(address: string, limit = statementMax): Promise<StatementRow[]> {
    const wallet = await this.#wallets.resolve(address)
    const rows: StatementRow[] = []
    for (const name of await this.#wallets.addressesOf(wallet)) {
      const account = accountOf(name)
      const found = await this.#transfers(account, limit)
      rows.push(...(await Promise.all(found.map((transfer) => this.#row(account, transfer)))))
    }
    return rows.sort((one, other) => other.sequence - one.sequence).slice(0, limit)
  }

  async #transfers(account: string, limit: number): Promise<Transfer[]> {
    const found: Transfer[] = []
    for (let before = Number.MAX_SAFE_INTEGER; found.length < limit; ) {
      const page = await this.parts.ledger.history(account, before, Math.min(pageMax, limit - found.length))
      found.push(...page)
      const last = page.at(-1)
      if (last === undefined) break
      before = last.sequence
    }
    return found
  }

  async #row(account: string, transfer: Transfer): Promise<StatementRow> {
    const { sequence, timeMs, id, reason, reference, debit, credit, kind, about } = transfer
    const end = kind === 'pending' ? await this.parts.ledger.ending(id) : undefined
    const amount = end === undefined ? transfer.amount : end.kind === 'void' ? 0n : end.amount
    const state =
      kind !== 'pending' ? 'done' : end === undefined ? 'held' : end.kind === 'void' ? 'given back' : 'done'
    const winc = String(debit === account ? -amount : amount)
    const other = debit === account ? credit : debit
    return {
      sequence,
      timeMs,
      id,
      reason,
      reference,
      other,
      winc,
      state,
      note: about.note ?? about.tokenType ?? '',
    }
  }

  /** Adds to a balance, or takes from it, by a transfer with a reason. Nothing is ever changed or removed. */
  async correct({ key, address, winc, note, by }: Correction): Promise<CreditsOutcome> {
    if (addressKind(address) === undefined) return { refused: 'This is no address of a wallet' }
    if (!/^-?[1-9]\d{0,29}$/.test(winc))
      return { refused: 'Winc must be a whole number, with a minus to take some' }
    if (!/^[\w-]{8,64}$/.test(key)) return { refused: 'The key must be 8 to 64 letters or digits' }
    if (note.trim() === '' || note.length > 500) return { refused: 'Say why, in at most 500 characters' }
    const amount = BigInt(winc)
    const { wallet, outcome } = await this.#wallets.commitToWalletOf(spelled(address), (wallet) => {
      const own = accountOf(wallet)
      const [debit, credit] = amount > 0n ? [correctionsAccount, own] : [own, correctionsAccount]
      const transfer: MoveOrder = {
        id: `correction:${key}`,
        kind: 'posted',
        debit,
        credit,
        amount: amount > 0n ? amount : -amount,
        reason: 'correction',
        reference: key,
        about: { type: 'correction', note, by },
      }
      return { transfers: [transfer] }
    })
    if (isRejected(outcome))
      return { refused: refusals[outcome.rejected] ?? `It was rejected: ${outcome.rejected}` }
    if (!outcome.existed) this.parts.meters.of('payment_corrections_total').add(1)
    return {
      done: outcome.existed ? 'This correction was made before' : `${wallet} was corrected by ${winc} winc`,
    }
  }
}

const refusals: Readonly<Partial<Record<string, string>>> = {
  insufficient: 'The wallet has less than that',
  differs: 'Another correction has this key',
}

function numbers(rates: Readonly<Record<string, bigint>>): Record<string, number> {
  return Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, rateNumber(rate)]))
}

const columns = [
  'time',
  'sequence',
  'id',
  'reason',
  'reference',
  'other account',
  'winc',
  'state',
  'note',
] as const

/** A statement as CSV (RFC 4180). Cells that spreadsheets would take for formulas are texts. */
export function statementCsv(rows: readonly StatementRow[]): string {
  const lines = rows.map(({ timeMs, sequence, id, reason, reference, other, winc, state, note }) =>
    [
      new Date(timeMs).toISOString(),
      String(sequence),
      ...[id, reason, reference, other].map(textCell),
      winc,
      state,
      textCell(note),
    ]
      .map((cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell))
      .join(','),
  )
  return `${[columns.join(','), ...lines].join('\r\n')}\r\n`
}

function textCell(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
}
