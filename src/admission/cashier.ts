import type { Timer } from '../actor/clock.js'
import { ConfirmedTime } from '../actor/confirmed-time.js'
import { Outage } from '../actor/outage.js'
import { whileDiskTakes } from '../store/disk-error.js'
import type { CashierReply, CashierRequest, PaymentOrder } from './cashier-messages.js'
import type { CashierParts } from './cashier-parts.js'
import {
  boundElsewhere,
  isLate,
  isSame,
  late,
  refusedReply,
  settledReply,
  spent,
  unsigned,
} from './cashier-replies.js'
import { DoubtfulPayments } from './doubtful-payments.js'
import { KindsLearner } from './kinds-learner.js'
import { Lanes } from './lanes.js'
import { PaymentLooks } from './payment-looks.js'
import type { PaymentRecord } from './payment-records.js'
import { Settler } from './settler.js'
import { Signers } from './signers.js'

/** The settlement of one payment, while it is under way: everybody who brings the payment waits for it. */
interface Settlement {
  /** Over once the settlement was requested, or never will be. */
  readonly verifying: Promise<void>
  readonly outcome: Promise<CashierReply>
}

/** Payments of one payer that failed in doubt, at most, until the chain has decided: then no further one is begun. */
const doubtfulMax = 8

/** Records looked at in one go when old ones are forgotten. */
const forgetMax = 2000

/**
 * Settles payments, each once: all who bring one payment wait for the same settlement (`Settler`). Only this actor calls the
 * facilitator.
 */
export class Cashier {
  readonly #underWay = new Map<string, Settlement>()
  readonly #learning: KindsLearner
  #forgetting: Timer | undefined
  readonly #closing = new AbortController()
  readonly #signers = new Signers()
  readonly #lanes: Lanes
  readonly #looks: PaymentLooks
  readonly #settler: Settler
  readonly #doubtful: DoubtfulPayments

  constructor(private readonly parts: CashierParts) {
    this.#lanes = new Lanes(parts.options, parts.clock)
    this.#looks = new PaymentLooks(parts.facilitator, this.#lanes, parts.clock)
    this.#settler = new Settler(parts, this.#closing.signal)
    this.#learning = new KindsLearner(parts)
    const recheck = (record: PaymentRecord): Promise<void> => this.#recheck(record)
    this.#doubtful = new DoubtfulPayments(parts.records, recheck, parts.clock, parts.options.doubtfulEveryMs)
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted
  }

  /** Takes up what an earlier process left, and begins to query what the facilitator supports. Does not wait. */
  start(): void {
    const { records, log, clock } = this.parts
    for (const record of records.unended()) {
      log.warn(
        { payment: record.payment, state: record.state },
        'a payment was open at the last stop: it is continued',
      )
      const going = record.state === 'settled' ? this.#settler.credit(record) : this.#settler.resume(record)
      this.#track(record.payment, Promise.resolve(), going)
    }
    this.#learning.start()
    if (this.parts.witness !== undefined) this.#doubtful.start()
    const disk = new Outage(
      log,
      'the disk is full or fails: old payments are kept',
      'old payments are forgotten again',
    )
    const time = new ConfirmedTime(clock)
    const forget = (): unknown => whileDiskTakes(disk, () => void records.forget(time.now(), forgetMax))
    this.#forgetting = clock.every(60_000, forget)
  }

  /** Answers one message (`CashierRequest`). Never rejects but for bugs. */
  async handle(request: CashierRequest): Promise<CashierReply> {
    const { clock, options } = this.parts
    const order = 'pay' in request ? request.pay : request.look
    if (this.#closed) return { state: 'down' }
    // The signature is checked first, because only the payer may learn the state of a payment.
    if (this.#lanes.isShut(order)) return { state: 'busy' }
    const signed = await this.#signers.check(order, this.parts.records.find(order.payment)?.signed)
    if (this.#closed) return { state: 'down' }
    if (signed === 'busy') return { state: 'busy' }
    if (signed === 'false') {
      this.#lanes.blame(order)
      return unsigned
    }
    if ('look' in request) return this.#look(order)
    const settlement = await this.#join(order)
    if ('state' in settlement) return settlement
    await settlement.verifying
    let timer: Timer | undefined
    const late = new Promise<CashierReply>((resolve) => {
      timer = clock.after(options.waitMs, () => resolve({ state: 'pending' }))
    })
    const reply = await Promise.race([settlement.outcome, late])
    timer?.cancel()
    if (this.#closed) return reply
    return this.#otherThan(order) ?? reply
  }

  /** The record of a payment; undefined: nothing has moved and nothing was requested. */
  find(payment: string): PaymentRecord | undefined {
    return this.parts.records.find(payment)
  }

  /**
   * Takes up a settlement that another service, which credits the same, requested and did not end. One attempt: what it does
   * not decide is `doubtful`, and may be taken up again. Undefined: it is under way here, or has ended here.
   */
  async takeUp(record: PaymentRecord): Promise<PaymentRecord | undefined> {
    const { payment } = record
    const known = this.parts.records.find(payment)
    // What was refused here may have been refused because the other one had it already.
    const isOpen = known === undefined || known.state === 'failed'
    if (this.#closed || this.#underWay.has(payment) || !isOpen) return undefined
    this.parts.log.warn({ payment }, 'a payment was left open by another service: it is continued here')
    const going = this.#settler.tryOnce(this.parts.records.adopt(record))
    await this.#track(payment, Promise.resolve(), going).outcome
    return this.#closed ? undefined : this.parts.records.find(payment)
  }

  /**
   * Credits a settled payment again, whose credit is lost. Resolves when that is done, or when the cashier closes first. Where
   * nobody here knows what was settled nothing is credited.
   */
  async creditAgain(payment: string): Promise<void> {
    const record = this.parts.records.find(payment)
    if (this.#closed || record?.state !== 'settled' || record.isAmountUnchecked === true) return
    const { outcome } =
      this.#underWay.get(payment) ?? this.#track(payment, Promise.resolve(), this.#settler.credit(record))
    await outcome
  }

  /** Stops; settlements that are under way are resumed at the next start. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#learning.close()
    this.#doubtful.close()
    this.#forgetting?.cancel()
    await this.parts.records.close()
  }

  async #recheck(record: PaymentRecord): Promise<void> {
    if (this.#closed || this.#underWay.has(record.payment)) return
    await this.#track(record.payment, Promise.resolve(), this.#settler.recheck(record)).outcome
  }

  /** Has the facilitator verify whether a payment would settle, unless that is known. */
  #look(order: PaymentOrder): CashierReply | Promise<CashierReply> {
    const record = this.parts.records.find(order.payment)
    const other = this.#otherThan(order)
    if (other !== undefined) return other
    if (record?.state === 'failed') return refusedReply(record)
    if (record !== undefined || this.#underWay.has(order.payment)) return { state: 'made' }
    if (isLate(order, this.parts.clock.now())) return { state: 'refused', stage: 'verify', reason: late }
    return this.#looks.verdict(order)
  }

  /** The answer where another payment with this nonce is recorded, or this one for another beneficiary. */
  #otherThan(order: PaymentOrder): CashierReply | undefined {
    const record = this.parts.records.find(order.payment)
    if (!isSame(record, order)) return spent
    // What certainly moved nothing counts nowhere.
    const mayCount = record !== undefined && (record.state !== 'failed' || record.doubtful === true)
    const isBound = this.parts.bindsBeneficiary === true && mayCount
    return isBound && record.beneficiary !== order.beneficiary ? boundElsewhere : undefined
  }

  /** The settlement of a payment, or the answer where there is none. A new payment waits for its turn at the facilitator. */
  async #join(order: PaymentOrder): Promise<Settlement | CashierReply> {
    const isNew = !this.#underWay.has(order.payment) && this.parts.records.find(order.payment) === undefined
    if (isNew && (await this.#lanes.turn(order)) !== undefined) return { state: 'busy' }
    if (this.#closed) return { state: 'down' }
    const settlement = this.#underWay.get(order.payment) ?? this.#begin(order)
    // The turn was not used: the facilitator got no request.
    if (isNew && 'state' in settlement) this.#lanes.worth(order)
    return settlement
  }

  /** Begins a settlement. An answer: the payment has ended, or there is no place for it now. */
  #begin(order: PaymentOrder): Settlement | CashierReply {
    const { records, log } = this.parts
    const record = records.find(order.payment)
    const other = this.#otherThan(order)
    if (other !== undefined) return other
    if (record?.state === 'settled' && record.credited !== false) return settledReply(record)
    if (record?.state === 'failed') return refusedReply(record)
    // A wallet with the price of one payment can sign many, of which one settles: the others would all wait for the chain.
    if (records.hasDoubtful(order, doubtfulMax)) return { state: 'busy' }
    const leave = this.#lanes.take(order)
    if (leave === 'client') return { state: 'busy' }
    if (leave === 'all') {
      log.warn(
        { settlements: this.#underWay.size },
        'too many payments are being settled: new ones are refused',
      )
      return { state: 'down' }
    }
    let verified: () => void = () => undefined
    const verifying = new Promise<void>((resolve) => {
      verified = resolve
    })
    let release = leave
    // What waits for the chain, which can take an hour, gives its place to payments that take a moment.
    const mayWait = (): boolean => {
      const place = this.#lanes.waitForChain(order)
      if (typeof place === 'string') return false
      leave()
      release = place
      return true
    }
    return this.#track(
      order.payment,
      verifying,
      this.#settler
        .settle(order, () => verified(), mayWait)
        .then((reply) => {
          if (reply.state === 'refused') this.#lanes.blame(order)
          else if (reply.state !== 'doubtful') this.#lanes.worth(order)
          if (reply.state === 'settled') this.#looks.made(order)
          return reply
        })
        .finally(() => {
          release()
          verified()
        }),
    )
  }

  #track(payment: string, verifying: Promise<void>, going: Promise<CashierReply>): Settlement {
    const outcome = going.finally(() => this.#underWay.delete(payment))
    const settlement = { verifying, outcome }
    this.#underWay.set(payment, settlement)
    // Not awaited: a bug in it becomes an unhandled rejection and ends the thread, also where no request waits any more.
    void outcome
    return settlement
  }
}
