import type { Timer } from '../actor/clock.js'
import { Outage } from '../actor/outage.js'
import { isRefusal } from '../format/refusal.js'
import { tryWrite, whileDiskTakes } from '../store/disk-error.js'
import { writePatiently } from '../store/patient-write.js'
import {
  type CashierReply,
  type CashierRequest,
  type PaymentOrder,
  settleFailed,
} from './cashier-messages.js'
import type { CashierParts } from './cashier-parts.js'
import { isSame, refusedReply, settledReply, spent, unsigned, usedReasons } from './cashier-replies.js'
import { ClaimedSettlement } from './claimed-settlement.js'
import type { Settled } from './facilitator.js'
import { KindsLearner } from './kinds-learner.js'
import { Lanes } from './lanes.js'
import { PaymentLooks } from './payment-looks.js'
import type { Ownership } from './payment-owners.js'
import type { PaymentRecord } from './payment-records.js'
import { Signers } from './signers.js'

/** The settlement of one payment, while it is under way: everybody who brings the payment waits for it. */
interface Settlement {
  /** Over once the settlement was requested, or never will be. */
  readonly verifying: Promise<void>
  readonly outcome: Promise<CashierReply>
}

/** Added to the end of a payment's validity, because a settlement may be mined late. */
const graceMs = 60_000

/** Records looked at in one go when old ones are forgotten. */
const forgetMax = 2000

/** The owner of a payment is recorded for so long after its validity: far longer than its settlement is requested. */
const ownedMs = 24 * 3600_000

/**
 * Settles payments, each once. Only this actor calls the facilitator. The order is: verify, own, record, settle, record, credit,
 * answer. After kill -9 at any point the payment continues from its record. Without a requested settlement no money has moved.
 */
export class Cashier {
  readonly #underWay = new Map<string, Settlement>()
  readonly #learning: KindsLearner
  #forgetting: Timer | undefined
  readonly #closing = new AbortController()
  readonly #signers = new Signers()
  readonly #lanes: Lanes
  readonly #looks: PaymentLooks
  readonly #shared: ClaimedSettlement

  constructor(private readonly parts: CashierParts) {
    this.#lanes = new Lanes(parts.options, parts.clock)
    this.#looks = new PaymentLooks(parts.facilitator, this.#lanes, parts.clock)
    this.#shared = new ClaimedSettlement(parts)
    this.#learning = new KindsLearner(parts)
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
      const going = record.state === 'settled' ? this.#credit(record) : this.#resume(record)
      this.#track(record.payment, Promise.resolve(), going)
    }
    this.#learning.start()
    const disk = new Outage(
      log,
      'the disk is full or fails: old payments are kept',
      'old payments are forgotten again',
    )
    const forget = (): unknown => whileDiskTakes(disk, () => void records.forget(clock.now(), forgetMax))
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
    return isSame(this.parts.records.find(order.payment), order) ? reply : spent
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
    await this.#track(payment, Promise.resolve(), this.#resume(this.parts.records.adopt(record), true))
      .outcome
    return this.#closed ? undefined : this.parts.records.find(payment)
  }

  /** Stops; settlements that are under way are resumed at the next start. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#learning.close()
    this.#forgetting?.cancel()
    await this.parts.records.close()
  }

  /** Has the facilitator verify whether a payment would settle, unless that is known. */
  #look(order: PaymentOrder): CashierReply | Promise<CashierReply> {
    const record = this.parts.records.find(order.payment)
    if (record !== undefined && !isSame(record, order)) return spent
    if (record?.state === 'failed') return refusedReply(record)
    if (record !== undefined || this.#underWay.has(order.payment)) return { state: 'made' }
    return this.#looks.verdict(order)
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
    if (record !== undefined && !isSame(record, order)) return spent
    if (record?.state === 'settled' && record.credited !== false) return settledReply(record)
    if (record?.state === 'failed') return refusedReply(record)
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
    return this.#track(
      order.payment,
      verifying,
      this.#verifyAndSettle(order, () => verified())
        .then((reply) => {
          if (reply.state === 'refused') this.#lanes.blame(order)
          else this.#lanes.worth(order)
          if (reply.state === 'settled') this.#looks.made(order)
          return reply
        })
        .finally(() => {
          leave()
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

  /** Verifies, records and settles a payment. `verified`: called when its settlement is about to be requested. */
  async #verifyAndSettle(order: PaymentOrder, verified: () => void): Promise<CashierReply> {
    const { facilitator, records, clock, log } = this.parts
    const answer = await facilitator.verify(order.message, order.payer)
    if (answer.verdict === 'nothing') return { state: 'down' }
    const used = answer.verdict === 'invalid' && usedReasons.has(answer.reason)
    const taken = used ? await this.#shared.taken(order) : undefined
    if (answer.verdict === 'invalid' && taken === undefined)
      return { state: 'refused', stage: 'verify', reason: answer.reason }
    // Before anything is credited or waited for: anybody who reads the payment on the chain can bring it for something else.
    const ownership = await this.#own(order)
    if (ownership === 'other') return spent
    if (taken === 'asked') return { state: 'pending' }
    if (ownership === 'unreachable') return { state: 'down' }
    if (taken === undefined && !(await this.#shared.ask(order))) return { state: 'down' }
    if (this.#closed) return { state: 'down' }
    const record = tryWrite(() => records.ask(order, clock.now()))
    if (record !== undefined && isRefusal(record)) {
      // No settlement was requested yet, and no other service shall request one.
      log.error({ reason: record.message }, 'a payment is not taken: it could not be written down')
      if (taken === undefined) await this.#shared.clear(order)
      return { state: 'down' }
    }
    if (record === undefined) {
      log.error('the table of payments is full: new payments are refused')
      return { state: 'down' }
    }
    await records.flushed()
    verified()
    return taken === undefined ? this.#settle(record, false) : this.#settled(record, taken)
  }

  /** Whether the payment is ours to take for this, and nobody else's with the same wallet. */
  async #own({ payment, validBefore, beneficiary }: PaymentOrder | PaymentRecord): Promise<Ownership> {
    return (await this.parts.owners?.own(payment, validBefore * 1000 + ownedMs, beneficiary)) ?? 'ours'
  }

  /** Takes up a settlement that an earlier process requested: whether the money has moved is not known. */
  async #resume(record: PaymentRecord, isOnce = false): Promise<CashierReply> {
    for (let tries = 0; !this.#closed; tries += 1) {
      const ownership = await this.#own(record)
      if (ownership === 'ours') return this.#settle(record, true, isOnce)
      if (ownership === 'other') return this.#fail(record, 'invalid_exact_evm_nonce_already_used', false)
      if (isOnce) return this.#fail(record, settleFailed, true, true)
      await this.#pause(tries)
    }
    return { state: 'pending' }
  }

  /** Requests the settlement until there is a clear answer. `doubtful`: an earlier attempt was left without one. */
  async #settle(record: PaymentRecord, doubtful: boolean, isOnce = false): Promise<CashierReply> {
    const { facilitator, records, clock, witness } = this.parts
    const untilMs = clock.monotonic() + this.#patienceMs(record, doubtful)
    let doubt = doubtful
    for (let tries = 0; !this.#closed; tries += 1) {
      const answer = await facilitator.settle(record.message ?? '', record.payer)
      if (this.#closed) break
      if (answer.result === 'settled') return this.#settled(record, answer.transaction)
      if (answer.result === 'refused' && !doubt) return this.#refused(record, answer.reason, untilMs)
      if (answer.result === 'unasked' && !doubt) {
        if (!(await this.#written(() => records.drop(record)))) break
        await this.#shared.clear(record)
        return { state: 'down' }
      }
      // In doubt the chain decides, and it may take time: an earlier attempt can still be mined.
      const seen = doubt ? await witness?.moved({ ...record, requestedMs: record.askedMs }) : undefined
      if (this.#closed) break
      if (seen?.startsWith('0x') === true) return this.#settled(record, seen)
      const reason = answer.result === 'refused' ? answer.reason : settleFailed
      if (seen === 'never') return this.#fail(record, reason, false)
      // What is on the chain, and not final yet, is waited for.
      const isOver = clock.monotonic() > untilMs && seen !== 'early'
      const isLast = answer.result === 'refused' && witness === undefined
      if (isOnce || isOver || isLast) return this.#fail(record, reason, true, isOnce)
      doubt = true
      this.#sayUnclear(record, answer)
      await this.#pause(tries)
    }
    return { state: 'pending' }
  }

  /** For so long its settlement is requested, ms. The clock may be set back meanwhile, which could extend an end by years. */
  #patienceMs({ validBefore, askedMs }: PaymentRecord, doubtful: boolean): number {
    const { clock, options } = this.parts
    const endMs = Math.min(validBefore * 1000, askedMs + options.giveUpMs) + graceMs
    // One that is taken up late is requested for a while, too: the facilitator or the chain may be away just now.
    return Math.min(Math.max(endMs - clock.now(), doubtful ? graceMs : 0), options.giveUpMs + graceMs)
  }

  /**
   * The settlement was refused clearly, so that nothing of it moved. The payment counts all the same where another service that
   * credits the same took it meanwhile.
   */
  async #refused(record: PaymentRecord, reason: string, untilMs: number): Promise<CashierReply> {
    // The own claim is removed first: otherwise two services that were both refused would each think that the other
    // one succeeded.
    await this.#shared.clear(record)
    const taken = await this.#shared.takenInTheEnd(record, untilMs, () => this.#closed)
    if (this.#closed) return { state: 'pending' }
    return taken === undefined || taken === 'asked'
      ? this.#fail(record, reason, false)
      : this.#settled(record, taken)
  }

  async #settled(record: PaymentRecord, transaction: string): Promise<CashierReply> {
    const change = { state: 'settled', credited: false, transaction } as const
    const endedMs = this.parts.clock.now()
    const ended = await this.#ended(record, { ...change, endedMs })
    return ended === undefined ? { state: 'pending' } : this.#credit(ended)
  }

  /** Writes down how it ended; waits for the disk, because it has happened. Undefined: the service closes first. */
  async #ended(record: PaymentRecord, change: Partial<PaymentRecord>): Promise<PaymentRecord | undefined> {
    let ended = undefined as PaymentRecord | undefined
    await this.#written(() => {
      ended = this.parts.records.end(record, change)
    })
    return ended
  }

  #written(write: () => void): Promise<boolean> {
    return writePatiently(write, this.#closing.signal, this.parts.log)
  }

  #sayUnclear({ payment }: PaymentRecord, answer: Settled): void {
    const why = 'why' in answer ? answer.why : answer.result
    this.parts.log.warn(
      { payment, why },
      'the facilitator gave no clear answer to a settlement: it is tried again',
    )
  }

  /** `isAgain`: who has taken it up does so again, and states how it ended. */
  async #fail(
    record: PaymentRecord,
    reason: string,
    doubtful: boolean,
    isAgain = false,
  ): Promise<CashierReply> {
    const { clock, log } = this.parts
    const details = { payment: record.payment, units: record.units, reason }
    if (doubtful && !isAgain)
      log.error(
        details,
        'a payment failed after an attempt without an answer: check on chain whether it was made',
      )
    else log.warn(details, 'a payment was not settled')
    const change = { state: 'failed', reason, doubtful, endedMs: clock.now() } as const
    const ended = await this.#ended(record, change)
    return ended === undefined ? { state: 'pending' } : refusedReply(ended)
  }

  /** Credits the settled money to its beneficiary. It was paid: this goes on until it is done. */
  async #credit(record: PaymentRecord): Promise<CashierReply> {
    const { credits, records, log } = this.parts
    const { payment, units, tokens, beneficiary, payer, signed, transaction = '', resource } = record
    for (let tries = 0; !this.#closed; tries += 1) {
      try {
        await credits.credit(beneficiary, payment, tokens, { units, payer, transaction, signed })
        if (this.#closed) break
        log.info({ payment, units, tokens, beneficiary, transaction, resource }, 'a payment was settled')
        return settledReply(records.end(record, { credited: true }))
      } catch (error) {
        log.error(
          { err: error, payment, units, beneficiary },
          'a settled payment cannot be credited now: tried again',
        )
      }
      await this.#pause(tries)
    }
    return { state: 'pending' }
  }

  #pause(tries: number): Promise<void> {
    const ms = this.parts.options.retryMs * 2 ** Math.min(tries, 5)
    return new Promise((resolve) => {
      this.parts.clock.after(ms, resolve)
    })
  }
}
