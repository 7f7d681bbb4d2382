import type { Clock } from '../../actor/clock.js'
import type { Log } from '../../actor/log.js'
import type { Meters } from '../../actor/meter.js'
import type { Denial, SettledPayment } from '../../admission/admission-port.js'
import { Cashier } from '../../admission/cashier.js'
import { cashierDefaults, Kinds } from '../../admission/cashier-messages.js'
import { cdpAuthorizing } from '../../admission/cdp-token.js'
import { ChainWitness, type WitnessOptions } from '../../admission/chain-witness.js'
import { excluding } from '../../admission/excluding.js'
import { Facilitator } from '../../admission/facilitator.js'
import { Offers } from '../../admission/payment-offer.js'
import { RecordedOwners, type RecordOwner } from '../../admission/payment-owners.js'
import { PaymentRecords } from '../../admission/payment-records.js'
import { paymentIdentifiers } from '../../admission/presented.js'
import { type Usdc, usdcOf } from '../../admission/usdc.js'
import { X402 } from '../../admission/x402.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { isLedgerGone, type MoneyLedger } from '../../ledger/ledger-port.js'
import type { ExcludedSenders } from '../books/excluded-senders.js'
import type { UsdcAnswer } from '../credits-port.js'
import type { Prices } from '../prices/prices.js'
import type { Quotes } from '../prices/quotes.js'
import { afterFee, wincOfToken } from '../prices/rates.js'
import { LeftSettlements } from './left-settlements.js'
import { creditLost } from './lost-credits.js'
import type { OwnedPayments } from './owned-payments.js'
import { purposeOf } from './sale-beneficiary.js'
import { SharedSettlements } from './shared-settlements.js'
import type { X402Books } from './x402-comparison.js'

/** Where USDC is received, and who settles it. Plain: it is cloned into the thread. */
export interface X402Options {
  readonly network: Usdc['network']
  /** Receives the payments; lower case. */
  readonly wallet: string
  readonly facilitatorUrl: string
  readonly protocol: 'http' | 'https'
  /** Folder of the records of settlements. */
  readonly recordsPath: string
  readonly verifyMs: number
  readonly settleMs: number
  /** A node of the chain, which decides about payments whose settlement had no answer. */
  readonly rpc?: Pick<WitnessOptions, 'url' | 'confirmations'>
  /** Signs requests to the facilitator, where it is the provider's own. */
  readonly cdp?: { readonly keyId: string; readonly secret: string }
}

export interface X402ProcessorParts {
  readonly ledger: MoneyLedger
  readonly options: X402Options
  readonly prices: Pick<Prices, 'ofItem'>
  readonly quotes: Pick<Quotes, 'rates' | 'fee' | 'ofToken'>
  readonly owned: Pick<OwnedPayments, 'own'>
  readonly excluded: Pick<ExcludedSenders, 'has'>
  readonly meters: Meters
  readonly clock: Clock
  readonly log: Log
}

/** As `creditSettled`. */
export type Crediting = (
  beneficiary: string,
  payment: string,
  settled: SettledPayment,
) => Promise<'credited' | 'known'>

/** The price of such an amount shows how much a payment buys, without an error of rounding. */
const sampleUnits = 10n ** 12n
/** USDC: less costs more to settle than it brings; more is no payment for storage any more. */
const bounds = { minimum: '0.001', maximum: '10000' }
const leastUnits = 1000n
/** Added to the time of one attempt to settle. A service that requested earlier has died. */
const leftMs = 60_000
/** The common name of all payment services with one ledger, which is what credits each payment once. */
const ownName = 'credits'

/** A ledger that is gone for a while decides nothing. */
async function owning(
  { owned }: X402ProcessorParts,
  claim: Parameters<RecordOwner>[0],
): ReturnType<RecordOwner> {
  try {
    return await owned.own(claim)
  } catch (error) {
    if (!isLedgerGone(error)) throw error
    return refuse('upstream', 'upstream', 'the ledger cannot be reached')
  }
}

/** Takes USDC by x402 for all that the payment service sells: so one payment can buy one thing only. */
export class X402Processor {
  readonly x402: X402
  readonly cashier: Cashier
  readonly #offers: Offers
  readonly #facilitator: Facilitator
  readonly #witness: ChainWitness | undefined
  readonly #records: PaymentRecords
  readonly #left: LeftSettlements
  readonly #claims: SharedSettlements

  constructor(
    private readonly parts: X402ProcessorParts,
    crediting: Crediting,
  ) {
    const { options, clock, log, meters } = parts
    const { network, wallet, facilitatorUrl, protocol, verifyMs, settleMs, cdp } = options
    const kinds = new Kinds()
    this.#facilitator = new Facilitator(
      { url: facilitatorUrl, usdc: usdcOf[network], verifyMs, settleMs, connectionsMax: 16 },
      clock,
      log,
      cdp === undefined ? undefined : cdpAuthorizing(cdp.keyId, cdp.secret, clock),
    )
    const { rpc } = options
    this.#witness =
      rpc && new ChainWitness({ ...rpc, usdc: usdcOf[network], wallet, limitMs: verifyMs }, clock)
    this.#records = new PaymentRecords(options.recordsPath)
    const claimOptions = { self: this.#records.name(), leftMs: settleMs + leftMs }
    const claims = new SharedSettlements(parts.ledger, clock.now, claimOptions)
    this.#claims = claims
    this.cashier = new Cashier({
      ...(this.#witness === undefined ? {} : { witness: this.#witness }),
      owners: new RecordedOwners(
        (claim) => owning(parts, claim),
        async () => ownName,
        purposeOf,
      ),
      records: this.#records,
      facilitator: excluding(this.#facilitator, (payer) => parts.excluded.has(payer)),
      claims,
      credits: { credit: (beneficiary, payment, _, settled) => crediting(beneficiary, payment, settled) },
      kinds,
      clock,
      log,
      options: { ...cashierDefaults, waitMs: verifyMs },
    })
    this.#left = new LeftSettlements({
      ledger: parts.ledger,
      claims,
      cashier: this.cashier,
      hasChain: rpc !== undefined,
      leftMs: claimOptions.leftMs,
      clock,
      log,
    })
    // One unit for each "byte", so that the amount is charged as it is.
    const tariff = { perByte: '0.000001', ...bounds, multiplier: 1 }
    const description = 'Credits for permanent storage'
    const about = { network, wallet, tariff, protocol, facilitatorUrl, description }
    this.#offers = new Offers({ ...about, extensions: paymentIdentifiers }, kinds)
    const cashier = {
      ask: (order: Parameters<Cashier['handle']>[0]) => this.cashier.handle(order),
    }
    this.x402 = new X402({ offers: this.#offers, cashier, clock, meters })
  }

  /** Takes up what an earlier process left. Does not wait. */
  start(): void {
    this.cashier.start()
  }

  /** Ends what other services with the same ledger have left. Resolves with how many settlements have ended. */
  finishAbandoned(): Promise<number> {
    return this.#left.work()
  }

  /** As the function of that name, with what this process keeps. */
  creditLost(): Promise<number> {
    const { ledger, log } = this.parts
    return creditLost({ ledger, log, records: this.#records, cashier: this.cashier })
  }

  /** As `SharedSettlements.requested`. */
  requested(payment: string): ReturnType<SharedSettlements['requested']> {
    return this.#claims.requested(payment)
  }

  /** As `SharedSettlements.identified`. */
  identified(payer: string, identifier: string): ReturnType<SharedSettlements['identified']> {
    return this.#claims.identified(payer, identifier)
  }

  get network(): Usdc['network'] {
    return this.parts.options.network
  }

  get protocol(): 'http' | 'https' {
    return this.parts.options.protocol
  }

  /** What is compared with the ledger. */
  get books(): X402Books {
    const chain = this.#witness
    return { ...(chain && { chain }), unended: () => this.#records.unended() }
  }

  /** The most that one payment may be. */
  get most(): bigint {
    return this.#offers.price.units(Number.MAX_SAFE_INTEGER)
  }

  /** USDC whose winc is enough for an item of so many bytes, rounded up. Refusals: `upstream`. */
  async unitsOf(bytes: number): Promise<bigint | Refusal> {
    const { prices, quotes } = this.parts
    const price = await prices.ofItem(bytes)
    if (isRefusal(price)) return price
    const rates = await quotes.rates()
    if (isRefusal(rates)) return rates
    const bought = afterFee(wincOfToken('base-usdc', sampleUnits, rates), quotes.fee)
    if (bought < 1n) return refuse('upstream', 'upstream', 'the price of USDC is zero')
    // One more, because each of the two fees and prices is rounded down.
    const units = (price * sampleUnits) / bought + 1n
    return units < leastUnits ? leastUnits : units
  }

  async close(): Promise<void> {
    this.#left.close()
    await this.cashier.close()
    await this.#facilitator.close()
    await this.#witness?.close()
  }
}

/** An answer of x402 as services send it on. */
export function answerOfDenial({ status, body, lines }: Denial): UsdcAnswer {
  return { status, json: JSON.parse(Buffer.from(body).toString()) as unknown, lines }
}
