import type { Log } from '../../actor/log.js'
import type { Meters } from '../../actor/meter.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import { type Fence, Lead } from '../../ledger/lead.js'
import { isRejected, type MoneyLedger } from '../../ledger/ledger-port.js'
import { cardDayKind, dayOf, topUpDayKind } from '../books/days.js'
import type { CardTaken } from '../cards/card-provider.js'
import type { Cards } from '../cards/cards.js'
import type { TopUps } from '../chains/top-ups.js'
import { comparedUsdc, type X402Books } from '../usdc/x402-comparison.js'

/** Something that our books and those of others do not agree on. */
export interface Difference {
  readonly what: 'card' | 'chain' | 'x402'
  /** Id of the payment, or of the transaction. */
  readonly id: string
  readonly why: string
}

/** What the comparison of one day found. */
export interface Reconciliation {
  /** UTC: `2026-01-31`. */
  readonly day: string
  readonly atMs: number
  /** Payments compared. */
  readonly cards: number
  readonly chains: number
  /** Payments in USDC by x402; absent in what earlier versions have kept. */
  readonly usdc?: number
  /** Those whose provider or chain gave no answer: the day is compared again. */
  readonly unchecked: number
  readonly differences: readonly Difference[]
  /** More were found than are kept. */
  readonly isCut: boolean
}

const kind = 'reconciliation'
const differencesMax = 1000
const pageMax = 500
const dayMs = 24 * 3600_000
/** Days are compared so long after their end: events of midnight have arrived by then. */
const settledMs = 2 * 3600_000
/** Days back that are looked at: a program that stood still for a week compares what it has missed. */
const daysBack = 7

export interface ReconciliationParts {
  readonly ledger: MoneyLedger
  readonly cards: Cards
  readonly topUps: TopUps
  /** Absent: no USDC is taken by x402. */
  readonly usdc?: X402Books
  readonly now: () => number
  readonly log: Log
  /** Called with the last row; undefined: another service compares. */
  readonly onCompared?: (row: Reconciliation | undefined) => void
}

/** Compares each day's payments with the books of the card provider and with the chains. */
export class Reconciler {
  #isRunning = false
  readonly #lead: Lead

  constructor(private readonly parts: ReconciliationParts) {
    this.#lead = new Lead(parts.ledger, kind)
  }

  /** Comparisons, youngest first. */
  async list(limit: number): Promise<Reconciliation[]> {
    const { now } = this.parts
    const found: Reconciliation[] = []
    // Keys sort by day; the last years are one page.
    const since = dayOf(now() - 400 * dayMs)
    for (const { value } of await this.parts.ledger.records(kind, '', since, pageMax))
      found.push(JSON.parse(value) as Reconciliation)
    return found.reverse().slice(0, limit)
  }

  /**
   * Compares the days that are over and were not, or not wholly, compared. Resolves with how many were. Of several services on
   * one ledger one does.
   */
  async work(): Promise<number> {
    if (this.#isRunning) return 0
    this.#isRunning = true
    try {
      const fence = await this.#lead.take()
      if (fence === undefined) {
        this.parts.onCompared?.(undefined)
        return 0
      }
      let compared = 0
      let youngest: Reconciliation | undefined
      for (let back = daysBack; back >= 1; back -= 1) {
        const day = dayOf(this.parts.now() - back * dayMs)
        if (Date.parse(day) + dayMs + settledMs > this.parts.now()) continue
        const stored = await this.parts.ledger.record(kind, day)
        const before = stored === undefined ? undefined : (JSON.parse(stored.value) as Reconciliation)
        if (before !== undefined && before.unchecked === 0) {
          youngest = before
          continue
        }
        youngest = await this.#compare(day, fence)
        // Another process has begun to lead meanwhile.
        if (youngest === undefined) return compared
        compared += 1
      }
      // What was found before this process began is shown by it, too.
      if (compared === 0 && youngest !== undefined) this.parts.onCompared?.(youngest)
      return compared
    } finally {
      this.#isRunning = false
    }
  }

  /** Compares one day now, and keeps what was found. */
  async compare(day: string): Promise<Reconciliation> {
    return (await this.#compare(day, undefined)) as Reconciliation
  }

  /** Undefined: what was found does not count, because another process leads. */
  async #compare(day: string, fence: Fence | undefined): Promise<Reconciliation | undefined> {
    const { ledger, log, now, onCompared } = this.parts
    const found = new Findings()
    await this.#cards(day, found)
    await this.#chains(day, found)
    await this.#usdc(day, found)
    const row: Reconciliation = { day, atMs: now(), ...found.counts, ...found.kept }
    const records = [{ kind, key: day, value: JSON.stringify(row) }, ...(fence === undefined ? [] : [fence])]
    const isFollowed = isRejected(await ledger.commit({ transfers: [], records }))
    onCompared?.(isFollowed ? undefined : row)
    if (isFollowed) return undefined
    const { differences, unchecked } = row
    if (differences.length > 0)
      log.error(
        { day, differences: differences.slice(0, 20), count: found.count },
        'the ledger and the payment providers do not agree',
      )
    else if (unchecked > 0) log.warn({ day, unchecked }, 'some payments could not be compared yet')
    return row
  }

  async #cards(day: string, found: Findings): Promise<void> {
    const { cards } = this.parts
    const fromMs = Date.parse(day)
    const seen = new Set<string>()
    let after: string | undefined
    for (;;) {
      const page = await cards.provider.taken(fromMs, fromMs + dayMs, after)
      if (isRefusal(page)) return found.silent(page)
      for (const taken of page.entries) {
        if (taken.quoteId === '') continue
        found.counts.cards += 1
        seen.add(taken.quoteId)
        await this.#card(taken, found)
      }
      after = page.next
      if (after === undefined) break
    }
    // What we have credited must be in their books, also where they have it on another day.
    for await (const id of this.#ofDay(cardDayKind, day)) {
      if (seen.has(id)) continue
      found.counts.cards += 1
      const payment = (await cards.find(id))?.payment ?? ''
      const taken = await cards.provider.find(payment)
      if (taken === undefined) found.add('card', payment || id, 'credited here, and not known there')
      else if (isRefusal(taken)) found.silent(taken)
      else await this.#card(taken, found)
    }
  }

  /** Events that have not arrived yet are fetched now, and then both sides must agree. */
  async #card(taken: CardTaken, found: Findings): Promise<void> {
    const { cards, log } = this.parts
    const { quoteId, payment, amount, currency, paidMs, isRefunded, isDisputed, dispute } = taken
    const named = dispute === undefined ? {} : { dispute }
    const before = await cards.find(quoteId)
    if (before === undefined) return this.#unquoted(taken, found)
    try {
      const isRefunding = before.state === 'refunding'
      if (isRefunding ? !isDisputed : before.state === 'open' && !isRefunded)
        await cards.handle({ kind: 'paid', quoteId, payment, amount, currency, paidMs })
      if ((isRefunding || before.state === 'paid') && isDisputed)
        await cards.handle({ kind: 'disputed', quoteId, payment, reason: 'found by comparing', ...named })
    } catch (error) {
      log.error({ err: error, payment }, 'a card payment that was found by comparing could not be recorded')
    }
    const quote = (await cards.find(quoteId)) ?? before
    const { state } = quote
    if (quote.payment !== undefined && quote.payment !== payment)
      return found.add('card', payment, `paid twice: the quote was paid by ${quote.payment}`)
    if (state === 'open' && !isRefunded) found.add('card', payment, 'paid there, and not credited here')
    if (state === 'paid' && isDisputed) {
      found.add('card', payment, 'disputed there, and credited here')
      // It waits for the purchase of a name, and nobody else repeats it for longer than some days.
      found.counts.unchecked += 1
    }
    if (state === 'paid' && isRefunded) found.add('card', payment, 'sent back there, and credited here')
    if (state === 'refunding' || (state === 'refunded' && !isRefunded && before.state === 'refunded'))
      found.add('card', payment, 'not sent back there')
    if (state === 'paid' && (quote.amount !== amount || quote.currency !== currency))
      found.add('card', payment, `${amount} ${currency} there, ${quote.amount} ${quote.currency} here`)
  }

  /** A payment for a quote that is not kept any more is sent back, where it was one of ours. */
  async #unquoted(
    { quoteId, payment, amount, currency, paidMs, isRefunded }: CardTaken,
    found: Findings,
  ): Promise<void> {
    const { cards, log } = this.parts
    if (!(await cards.isOwn(quoteId))) return found.add('card', payment, 'paid there, and no quote here')
    if (isRefunded) return
    try {
      await cards.handle({ kind: 'paid', quoteId, payment, amount, currency, paidMs })
    } catch (error) {
      log.error({ err: error, payment }, 'a card payment whose quote is over could not be sent back')
      found.add('card', payment, 'paid there, its quote was over, and not sent back')
    }
  }

  async #chains(day: string, found: Findings): Promise<void> {
    for await (const key of this.#ofDay(topUpDayKind, day)) {
      const why = await this.parts.topUps.compare(key)
      found.counts.chains += 1
      if (typeof why === 'string') found.add('chain', key, why)
      else if (why !== undefined) found.silent(why)
    }
  }

  async #usdc(day: string, found: Findings): Promise<void> {
    const { ledger, usdc } = this.parts
    if (usdc === undefined) return
    const fromMs = Date.parse(day)
    for await (const { payment, why, silent } of comparedUsdc(ledger, usdc, fromMs, fromMs + dayMs)) {
      found.counts.usdc += 1
      if (why !== undefined) found.add('x402', payment, why)
      if (silent === true) found.counts.unchecked += 1
    }
  }

  async *#ofDay(of: typeof cardDayKind | typeof topUpDayKind, day: string): AsyncGenerator<string> {
    let after = ''
    for (;;) {
      const page = await this.parts.ledger.records(of, `${day}|`, after, pageMax)
      for (const { key } of page) yield key.slice(day.length + 1)
      const last = page.at(-1)
      if (last === undefined || page.length < pageMax) return
      after = last.key
    }
  }
}

/** What one comparison found. */
class Findings {
  readonly counts = { cards: 0, chains: 0, usdc: 0, unchecked: 0 }
  count = 0
  readonly #differences: Difference[] = []

  get kept(): Pick<Reconciliation, 'differences' | 'isCut'> {
    return { differences: this.#differences, isCut: this.count > this.#differences.length }
  }

  add(what: Difference['what'], id: string, why: string): void {
    this.count += 1
    if (this.#differences.length < differencesMax) this.#differences.push({ what, id, why })
  }

  silent(_: Refusal): void {
    this.counts.unchecked += 1
  }
}

/** Shows what the last comparison found. */
export function reconciliationGauges(meters: Meters): (row: Reconciliation | undefined) => void {
  const differences = meters.of('payment_reconciliation_differences')
  const unchecked = meters.of('payment_reconciliation_unchecked')
  const day = meters.of('payment_reconciliation_day_seconds')
  return (row) => {
    differences.set(row?.differences.length ?? 0)
    unchecked.set(row?.unchecked ?? 0)
    day.set(row === undefined ? 0 : Date.parse(row.day) / 1000)
  }
}
