import { writePatiently } from '../store/patient-write.js'
import { type CashierReply, type PaymentOrder, settleFailed } from './cashier-messages.js'
import type { CashierParts } from './cashier-parts.js'
import { refusedReply, settledReply, usedReasons } from './cashier-replies.js'
import type { MovedOnChain } from './chain-witness.js'
import { ClaimedSettlement, settledAmount } from './claimed-settlement.js'
import type { Settled } from './facilitator.js'
import { PaymentBeginnings } from './payment-beginnings.js'
import type { Ownership } from './payment-owners.js'
import type { PaymentRecord } from './payment-records.js'

/** Added to the end of a payment's validity, because a settlement may be mined late. */
const graceMs = 60_000

/** So long a settlement in doubt is requested again from the facilitator, where a node of the chain can be queried, too. */
const requestedMs = 10 * 60_000

/** From where a settlement goes on. */
interface Attempt {
  /** A settlement was requested before, and its answer is not known: the money may have moved already. */
  readonly isInDoubt: boolean
  /** The facilitator gets one request. What that does not decide is recorded as `doubtful`, and may be tried again. */
  readonly isSingle: boolean
}

/** A payment whose settlement was never requested. */
const firstAttempt: Attempt = { isInDoubt: false, isSingle: false }
/** A payment that an earlier process of this service has left. */
const laterAttempt: Attempt = { isInDoubt: true, isSingle: false }
/** A payment that another service has left. */
const singleAttempt: Attempt = { isInDoubt: true, isSingle: true }

/**
 * Carries out settlements. The order is: verify, own, record, settle, record, credit, answer. After kill -9 at any point
 * it continues from the record of the payment. Without a requested settlement no money has moved.
 */
export class Settler {
  readonly #claimed: ClaimedSettlement
  readonly #beginnings: PaymentBeginnings

  /** `closing`: every wait ends with the reply `pending`; the next start goes on. */
  constructor(
    private readonly parts: CashierParts,
    private readonly closing: AbortSignal,
  ) {
    this.#claimed = new ClaimedSettlement(parts)
    this.#beginnings = new PaymentBeginnings(parts, this.#claimed, closing)
  }

  get #closed(): boolean {
    return this.closing.aborted
  }

  /**
   * Verifies, records, settles and credits a payment. `verified`: called when its settlement is about to be requested. `mayWait`:
   * called once, when only the chain can decide; false: it is recorded as doubtful at once.
   */
  async settle(order: PaymentOrder, verified: () => void, mayWait: () => boolean): Promise<CashierReply> {
    const begun = await this.#beginnings.begin(order)
    if (!('record' in begun)) return begun
    verified()
    const { record, transaction } = begun
    return transaction === undefined
      ? this.#request(record, firstAttempt, mayWait)
      : this.#settled(record, transaction)
  }

  /** Goes on with a settlement that an earlier process requested: whether the money has moved is not known. */
  async resume(record: PaymentRecord): Promise<CashierReply> {
    for (let tries = 0; !this.#closed; tries += 1) {
      const ownership = await this.#own(record)
      if (ownership !== 'unreachable') return this.#requestOwned(record, ownership, laterAttempt)
      await this.#pause(tries)
    }
    return { state: 'pending' }
  }

  /** The same with one attempt, for a settlement that another service requested. */
  async tryOnce(record: PaymentRecord): Promise<CashierReply> {
    if (this.#closed) return { state: 'pending' }
    const ownership = await this.#own(record)
    return ownership === 'unreachable'
      ? this.#failInDoubt(record, settleFailed, singleAttempt)
      : this.#requestOwned(record, ownership, singleAttempt)
  }

  /** Ends a payment that failed in doubt, where the chain shows by now whether it moved. */
  async recheck(record: PaymentRecord): Promise<CashierReply> {
    const onChain = await this.#onChain(record)
    if (this.#closed) return { state: 'pending' }
    if (onChain?.startsWith('0x') === true) return this.#settled(record, onChain)
    return onChain === 'never' ? this.#fail(record, record.reason ?? settleFailed) : refusedReply(record)
  }

  /** Credits the settled money to its beneficiary. It was paid: this goes on until it is done. */
  async credit(record: PaymentRecord): Promise<CashierReply> {
    const { credits, records, log } = this.parts
    const { payment, units, tokens, beneficiary, payer, signed, transaction = '', resource } = record
    for (let tries = 0; !this.#closed; tries += 1) {
      try {
        const facts = { units, payer, transaction, signed }
        const outcome = await credits.credit(beneficiary, payment, tokens, facts)
        // Another service may have credited it, for another beneficiary where the claim was lost.
        const credited = outcome === 'known' ? await this.#claimed.beneficiaryOf(record) : beneficiary
        if (this.#closed) break
        const details = { payment, units, tokens, beneficiary: credited, transaction, resource }
        if (credited === beneficiary) log.info(details, 'a payment was settled')
        else
          log.error(
            { ...details, meant: beneficiary },
            'a payment is credited to another beneficiary already',
          )
        return settledReply(records.end(record, { credited: true, beneficiary: credited }))
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

  /** What has an owner in its record was found to be ours before its settlement was requested. */
  async #own(record: PaymentRecord): Promise<Ownership> {
    return record.owner === undefined ? this.#beginnings.own(record) : 'ours'
  }

  #requestOwned(
    record: PaymentRecord,
    ownership: Exclude<Ownership, 'unreachable'>,
    attempt: Attempt,
  ): Promise<CashierReply> {
    if (ownership === 'ours') return this.#request(record, attempt)
    const reason = 'invalid_exact_evm_nonce_already_used'
    // Its settlement was requested here all the same, and it may be ours by a name that is lost.
    return attempt.isSingle
      ? this.#fail(record, reason)
      : this.#failInDoubt(record, reason, attempt, { isStray: true })
  }

  /**
   * Requests the settlement from the facilitator until it is decided. A first answer decides alone, where it is clear. After an
   * unclear one the money may have moved, so that a refusal proves nothing: then the chain decides (`witness`). What neither
   * decides in time is recorded as failed and `doubtful`.
   */
  async #request(
    record: PaymentRecord,
    attempt: Attempt,
    mayWait: () => boolean = () => true,
  ): Promise<CashierReply> {
    const { facilitator, clock, witness } = this.parts
    const untilMs = clock.monotonic() + this.#patienceMs(record, attempt)
    const requestedUntilMs = clock.monotonic() + requestedMs
    let { isInDoubt } = attempt
    for (let tries = 0; !this.#closed; tries += 1) {
      // After some minutes the chain alone decides: what the facilitator did not send by then it may never send.
      const isRequested = witness === undefined || !isInDoubt || clock.monotonic() < requestedUntilMs
      const answer = isRequested
        ? await facilitator.settle(record.message ?? '', record.payer)
        : ({ result: 'nothing', why: 'it is not requested any more' } as const)
      if (this.#closed) break
      if (answer.result === 'settled') return this.#settled(record, answer.transaction)
      if (answer.result === 'refused' && !isInDoubt) {
        // Another service may have taken what is used. Any other unclear refusal says nothing.
        const isUsed = usedReasons.has(answer.reason)
        if (answer.isClear || isUsed) return this.#refused(record, answer.reason, untilMs, isUsed)
      }
      if (answer.result === 'unrequested' && !isInDoubt) return this.#withdraw(record)
      const onChain = isInDoubt ? await this.#onChain(record) : undefined
      if (this.#closed) break
      if (onChain?.startsWith('0x') === true) return this.#settled(record, onChain)
      const reason = answer.result === 'refused' ? answer.reason : settleFailed
      if (onChain === 'never') return this.#fail(record, reason)
      // What is on the chain, and not final yet, is waited for.
      const isOver = clock.monotonic() > untilMs && onChain !== 'early'
      const isRefusedForGood = answer.result === 'refused' && isInDoubt && witness === undefined
      if (attempt.isSingle || isOver || isRefusedForGood || !(isInDoubt || mayWait()))
        return this.#failInDoubt(record, reason, attempt)
      isInDoubt = true
      this.#logUnclear(record, answer)
      await this.#pause(tries)
    }
    return { state: 'pending' }
  }

  /** Whether the money has moved. It may take time: an earlier attempt can still be mined. Undefined: nobody can see it. */
  async #onChain(record: PaymentRecord): Promise<MovedOnChain | undefined> {
    return this.parts.witness?.moved({ ...record, requestedMs: record.askedMs })
  }

  /** For so long its settlement is requested, ms. The clock may be set back meanwhile, which could extend an end by years. */
  #patienceMs({ validBefore, askedMs }: PaymentRecord, { isInDoubt }: Attempt): number {
    const { clock, options } = this.parts
    const endMs = Math.min(validBefore * 1000, askedMs + options.giveUpMs) + graceMs
    // One that is taken up late is requested for a while, too: the facilitator or the chain may be away just now.
    return Math.min(Math.max(endMs - clock.now(), isInDoubt ? graceMs : 0), options.giveUpMs + graceMs)
  }

  /** The facilitator never got the request: the record and the claim go, as if the payment had not been brought. */
  async #withdraw(record: PaymentRecord): Promise<CashierReply> {
    if (!(await this.#written(() => this.parts.records.drop(record)))) return { state: 'pending' }
    await this.#claimed.clear(record)
    return { state: 'down' }
  }

  /**
   * The settlement was refused clearly, so that nothing of it moved, or its nonce is used. The payment counts all the same where
   * another service that credits the same took it meanwhile. A used one that nobody of them took was submitted by somebody
   * else: it may have paid this wallet, so nothing is offered for it.
   */
  async #refused(
    record: PaymentRecord,
    reason: string,
    untilMs: number,
    isUsed: boolean,
  ): Promise<CashierReply> {
    // The own claim is removed first: otherwise two services that were both refused would each think that the other
    // one succeeded.
    await this.#claimed.clear(record)
    const taken = await this.#claimed.takenInTheEnd(record, untilMs, () => this.#closed)
    if (this.#closed) return { state: 'pending' }
    const isUnmoved = taken === undefined && (!isUsed || (await this.#onChain(record)) === 'never')
    if (isUnmoved) return this.#fail(record, reason)
    if (taken === undefined) return this.#failInDoubt(record, reason, firstAttempt, { isStray: true })
    if (taken === 'pending') return this.#failInDoubt(record, reason, firstAttempt)
    const { beneficiary = record.beneficiary, transaction } = taken
    return this.#settled({ ...record, ...settledAmount(taken), beneficiary }, transaction)
  }

  async #settled(record: PaymentRecord, transaction: string): Promise<CashierReply> {
    const change = { state: 'settled', credited: false, transaction } as const
    const ended = await this.#ended(record, change)
    return ended === undefined ? { state: 'pending' } : this.credit(ended)
  }

  /** Records that nothing of the payment has moved. */
  async #fail(record: PaymentRecord, reason: string): Promise<CashierReply> {
    this.parts.log.warn(detailsOf(record, reason), 'a payment was not settled')
    return this.#failed(record, { reason, doubtful: false })
  }

  /** Records that the payment failed, and may have moved all the same. Who tries once does so again, and states the end. */
  async #failInDoubt(
    record: PaymentRecord,
    reason: string,
    { isSingle }: Attempt,
    stray: Pick<PaymentRecord, 'isStray'> = {},
  ): Promise<CashierReply> {
    const { log } = this.parts
    if (isSingle) log.warn(detailsOf(record, reason), 'a payment was not settled')
    else
      log.error(
        detailsOf(record, reason),
        'a payment failed after an attempt without an answer: check on chain whether it was made',
      )
    return this.#failed(record, { reason, doubtful: true, ...stray })
  }

  async #failed(
    record: PaymentRecord,
    why: Required<Pick<PaymentRecord, 'reason' | 'doubtful'>> & Pick<PaymentRecord, 'isStray'>,
  ): Promise<CashierReply> {
    const ended = await this.#ended(record, { state: 'failed', ...why })
    return ended === undefined ? { state: 'pending' } : refusedReply(ended)
  }

  /** Writes down how it ended; waits for the disk, because it has happened. Undefined: the service closes first. */
  async #ended(record: PaymentRecord, change: Partial<PaymentRecord>): Promise<PaymentRecord | undefined> {
    const endedMs = this.parts.clock.now()
    let ended = undefined as PaymentRecord | undefined
    await this.#written(() => {
      ended = this.parts.records.end(record, { ...change, endedMs })
    })
    return ended
  }

  #written(write: () => void): Promise<boolean> {
    return writePatiently(write, this.closing, this.parts.log)
  }

  #logUnclear({ payment }: PaymentRecord, answer: Settled): void {
    const why = 'why' in answer ? answer.why : answer.result
    this.parts.log.warn(
      { payment, why },
      'the facilitator gave no clear answer to a settlement: it is tried again',
    )
  }

  #pause(tries: number): Promise<void> {
    const ms = this.parts.options.retryMs * 2 ** Math.min(tries, 6)
    return new Promise((resolve) => {
      this.parts.clock.after(ms, resolve)
    })
  }
}

function detailsOf({ payment, units }: PaymentRecord, reason: string): object {
  return { payment, units, reason }
}
