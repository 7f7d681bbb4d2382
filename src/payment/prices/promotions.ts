import type { MoneyLedger, RecordChange } from '../../ledger/ledger-port.js'
import type { Denied } from '../credits-port.js'
import { type Currency, fiatOfMicroUsd, type Rates } from './rates.js'
import type { Adjustment } from './tariff.js'

/** A promotion: a part of a payment that need not be paid. */
export interface Promotion {
  readonly code: string
  /** The discount, in thousandths of the payment. */
  readonly permille: number
  readonly expiresMs: number
  /** Payments below are not promoted. */
  readonly leastMicroUsd: number
  /** The most that it gives. */
  readonly mostMicroUsd: number
  /** Uses by all wallets together; 0: no bound. */
  readonly usesMax: number
  /** Only for wallets that have never paid. */
  readonly isForNew: boolean
}

const promotionKind = 'promo'
const useKind = 'promo-use'
/** Codes to how often they were used: a list of uses would have to be read through. */
export const promotionCountKind = 'promo-used'
const turnKind = 'promo-turn'
/** Promotions that are looked at; the operator declares each of them. */
const promotionsMax = 10_000
const pageMax = 1000
const codeShape = /^[A-Za-z0-9_-]{1,64}$/

function denied(text: string): Denied {
  return { denied: true, status: 400, text }
}

interface Promoted {
  readonly discount: bigint
  readonly adjustments: readonly Adjustment[]
}

/** Promotions, by code. Each is used once for a payment and counted with it. */
export class Promotions {
  constructor(
    private readonly ledger: MoneyLedger,
    private readonly now: () => number,
    /** Whether a wallet has paid before. */
    private readonly hasPaid: (address: string) => Promise<boolean>,
  ) {}

  /** Declares a promotion; a second one of the same code replaces the first, and keeps its count. */
  async declare(promotion: Promotion): Promise<void> {
    const value = JSON.stringify(promotion)
    await this.ledger.commit({
      transfers: [],
      records: [{ kind: promotionKind, key: promotion.code, value }],
    })
  }

  /** How often a code was used. */
  async uses(code: string): Promise<number> {
    return Number((await this.ledger.record(promotionCountKind, code))?.value ?? 0)
  }

  /** Counts uses of promotions that have no count yet, because an earlier version kept the list alone. At the start. */
  async count(): Promise<void> {
    for (const { key: code } of await this.ledger.records(promotionKind, '', '', promotionsMax)) {
      if ((await this.ledger.record(promotionCountKind, code)) !== undefined) continue
      let uses = 0
      for (let after = ''; ; ) {
        const page = await this.ledger.records(useKind, `${code}|`, after, pageMax)
        uses += page.length
        const last = page.at(-1)
        if (last === undefined || page.length < pageMax) break
        after = last.key
      }
      if (uses === 0) continue
      const counted = { kind: promotionCountKind, key: code, value: String(uses), expected: 0 }
      await this.ledger.commit({ transfers: [], records: [counted] })
    }
  }

  /** What codes give for a payment. The discount is rounded down to the smallest unit. */
  async apply(
    codes: readonly string[],
    address: string | undefined,
    currency: Currency,
    minor: bigint,
    rates: Rates,
  ): Promise<Promoted | Denied> {
    if (codes.length === 0) return { discount: 0n, adjustments: [] }
    if (address === undefined)
      return denied('Promo codes must be applied to a specific `destinationAddress` or to the request signer')
    let discount = 0n
    const adjustments: Adjustment[] = []
    const known = await this.#known(codes)
    let paid: Promise<boolean> | undefined
    const hasPaid = (): Promise<boolean> => {
      paid ??= this.hasPaid(address)
      return paid
    }
    for (const code of new Set(codes)) {
      const { promotion, uses = 0 } = known.get(code) ?? {}
      if (promotion === undefined) return denied(`No promo code found with code '${code}'`)
      const isUsed = (): Promise<Denied | undefined> =>
        this.#used(promotion, address, { uses: async () => uses, hasPaid })
      const fault = this.#fault(promotion, currency, minor, rates) ?? (await isUsed())
      if (fault !== undefined) return fault
      const most = fiatOfMicroUsd(currency, BigInt(promotion.mostMicroUsd), rates)
      const part = ((minor - discount) * BigInt(promotion.permille)) / 1000n
      const given = part < most ? part : most
      discount += given
      adjustments.push({
        name: `Promo code ${code}`,
        description: 'A part of the payment is a gift',
        operator: 'multiply',
        operatorMagnitude: (1000 - promotion.permille) / 1000,
        adjustmentAmount: -Number(given),
        currencyType: currency,
        promoCode: code,
        maxDiscount: Number(most),
      })
    }
    return { discount, adjustments }
  }

  /**
   * What is written with the payment that uses these codes: each use is counted once. Or why one of them is not good any more:
   * any number of payments may have been promised it before one of them was made.
   */
  async usedBy(codes: readonly string[], payment: string, address: string): Promise<RecordChange[] | Denied> {
    const changes: RecordChange[] = []
    for (const code of new Set(codes)) {
      changes.push({ kind: useKind, key: `${code}|${payment}`, value: '1' })
      changes.push({ kind: promotionCountKind, key: code, value: undefined, added: 1n })
      const promotion = await this.#find(code)
      if (promotion === undefined) continue
      // Two payments at once cannot both have the last use: one of them finds that the turn is another one.
      if (promotion.usesMax > 0) changes.push(await this.#turn(code, payment))
      if (promotion.isForNew) changes.push(await this.#turn(`${code}|${address}`, payment))
      const fault = await this.#used(promotion, address, {
        uses: () => this.uses(code),
        hasPaid: () => this.hasPaid(address),
      })
      if (fault !== undefined) return fault
    }
    return changes
  }

  async #turn(key: string, payment: string): Promise<RecordChange> {
    const before = await this.ledger.record(turnKind, key)
    return { kind: turnKind, key, value: JSON.stringify(payment), expected: before?.version ?? 0 }
  }

  async #find(code: string): Promise<Promotion | undefined> {
    const found = codeShape.test(code) ? await this.ledger.record(promotionKind, code) : undefined
    return found === undefined ? undefined : (JSON.parse(found.value) as Promotion)
  }

  /** Those of these codes that were declared, in two questions to the ledger: whoever requests a price names any number. */
  async #known(
    codes: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly promotion: Promotion; readonly uses: number }>> {
    const shaped = codes.filter((code) => codeShape.test(code))
    const found = await this.ledger.recordsNamed(promotionKind, shaped)
    const keys = found.map(({ key }) => key)
    const counts = await this.ledger.recordsNamed(promotionCountKind, keys)
    const uses = new Map(counts.map(({ key, value }) => [key, Number(value)]))
    const entry = (key: string, value: string) => {
      return [key, { promotion: JSON.parse(value) as Promotion, uses: uses.get(key) ?? 0 }] as const
    }
    return new Map(found.map(({ key, value }) => entry(key, value)))
  }

  #fault(promotion: Promotion, currency: Currency, minor: bigint, rates: Rates): Denied | undefined {
    const { code, expiresMs, leastMicroUsd } = promotion
    if (expiresMs <= this.now())
      return denied(`The promo code '${code}' expired on ${new Date(expiresMs).toISOString()}`)
    const least = fiatOfMicroUsd(currency, BigInt(leastMicroUsd), rates)
    if (minor < least)
      return denied(`The promo code '${code}' can only used on payments above ${least} ${currency}`)
    return undefined
  }

  async #used(
    { code, usesMax, isForNew }: Promotion,
    address: string,
    { uses, hasPaid }: { uses: () => Promise<number>; hasPaid: () => Promise<boolean> },
  ): Promise<Denied | undefined> {
    if (usesMax > 0 && (await uses()) >= usesMax)
      return denied(`The promo code '${code}' has already been used the maximum number of times (${usesMax})`)
    if (isForNew && (await hasPaid()))
      return denied(`The user '${address}' is ineligible for the promo code '${code}'`)
    return undefined
  }
}
