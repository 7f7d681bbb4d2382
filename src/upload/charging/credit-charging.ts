import { randomBytes } from 'node:crypto'
import { type Clock, pause, withinTime } from '../../actor/clock.js'
import { FreeShares } from '../../actor/free-shares.js'
import { isOutOfTurn } from '../../actor/timed-turns.js'
import type { Id } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import type { CreditsPort, Payer } from '../../payment/credits-port.js'
import { aliasOf, kyveAddress, nativeAddress } from '../../proof/owner-address.js'
import type { Environment } from '../../store/lmdb.js'
import type { FreePools } from '../records/free-pools.js'
import { fixedAnswers, paymentAway, type UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import {
  type ChargeOutcome,
  type Charging,
  freeExhausted,
  freeOrRefused,
  freeUserOf,
  type ItemCharge,
} from './charging.js'
import type { RepostCheck } from './repost-check.js'
import { elsewhereAnswer, type ServiceOfSeveral } from './several-services.js'
import { recordUnsettled, UnsettledItems } from './unsettled-items.js'

/** A client gets 503 within a second where the payment service does not answer. */
const patienceMs = 900
/** Where its last answer took long, as by a slow database, three times as long is waited, at most this. */
const patienceMaxMs = 5000
const againMs = 2000
/** Billing uses this number where the path names that network; the item itself has type 3. */
const kyveType = 101

/** Questions about the credits of items that are not here yet, at the same time; one client has a quarter of them. */
const foreseenMax = 64

const late = refuse('late', 'self', 'the payment service does not answer')
/** Random bytes that name one order for an item. */
const ticketBytes = 16

/** Charges items: free pools first, else credits: reserved before the item is stored, settled when it is accepted. */
export class CreditCharging implements Charging {
  /** Written before credits are reserved, so that the next process settles or refunds them after a kill. */
  readonly #unsettled: UnsettledItems
  /** Items with a refund in flight. A repeated upload is refused meanwhile, or the refund would take its new charge. */
  readonly #refunding = new Set<Id>()
  /** Tickets of an earlier process, of items that it may not have accepted. */
  readonly #abandoned = new Map<Id, Uint8Array>()
  readonly #foreseen = FreeShares.quarters(foreseenMax)
  /** What the last answer of the payment service took. */
  #answerMs = 0

  constructor(
    private readonly pools: FreePools,
    private readonly credits: CreditsPort,
    private readonly environment: Environment,
    private readonly reposts: Pick<RepostCheck, 'inScannedBundle' | 'refusal' | 'record'>,
    private readonly clock: Clock,
    private readonly closing: AbortSignal,
    /** Absent: this upload service is the only one. */
    private readonly service?: ServiceOfSeveral,
  ) {
    this.#unsettled = new UnsettledItems(environment, closing)
    for (const { id, ticket } of this.#unsettled.left()) {
      if (ticket === undefined) void this.#settle(id)
      else this.#abandoned.set(id, ticket)
    }
  }

  /** Refunds what an earlier process reserved for items that it had not accepted. One that a store brought back is accepted. */
  refundAbandoned(): void {
    for (const [id, ticket] of this.#abandoned)
      if (this.#unsettled.hasTicket(id, ticket)) void this.#refund(id, ticket)
    this.#abandoned.clear()
  }

  async charge(
    header: ItemHeader,
    bytes: number,
    uploader: Uploader,
    itemsInside = 0,
  ): Promise<ChargeOutcome> {
    const free = await freeOrRefused(this.pools, this.reposts, { header, bytes, uploader, itemsInside })
    if (free !== undefined) return free
    if (this.#refunding.has(header.id)) return paymentAway(header.id)
    const ticket = randomBytes(ticketBytes)
    const named = { itemId: header.id, ticket: ticket.toString('base64url') }
    const service = this.service === undefined ? {} : { service: this.service.name }
    const order = { ...payerOf(header, uploader), ...named, ...service, bytes }
    // Nothing is reserved yet, so a full disk is answered at once.
    const unwritten = await this.#unsettled.recordOrder(header.id, ticket)
    if (unwritten !== undefined) return unwritten
    const reserving = this.credits.reserve(order)
    const reserved = await this.#inTime(reserving)
    if (isRefusal(reserved)) {
      // The order may still have been carried out, or be carried out later.
      void this.#refund(header.id, ticket)
      return paymentAway(header.id)
    }
    if (!reserved.paid) {
      await this.#unsettled.remove(header.id)
      const { elsewhere } = reserved
      if (elsewhere !== undefined) return elsewhereAnswer(elsewhere, this.service)
      return reserved.isUnknownWallet ? freeExhausted(bytes) : fixedAnswers.unpaid
    }
    // The row is on disk, so the client need not wait for the payment service.
    const refund = (): Promise<void> =>
      withinTime(this.clock, patienceMs, this.#refund(header.id, ticket), undefined)
    // Only now: who cannot pay must not use up what the gateways of the network answer.
    const refused = await this.reposts.refusal(header, bytes, uploader)
    if (refused !== undefined) {
      await refund()
      return refused
    }
    return {
      winc: reserved.winc,
      isLogged: true,
      record: (id) => {
        if (reserved.winc === '0') this.#unsettled.removeNow(id)
        else recordUnsettled(this.environment, id)
        this.reposts.record(header, uploader)
      },
      refund,
    }
  }

  async foresee(header: ItemHeader, bytes: number, uploader: Uploader): Promise<UploadAnswer | undefined> {
    if (this.pools.reservable(freeUserOf(header, uploader), bytes) !== undefined) return undefined
    const paid = this.reposts.inScannedBundle(header.id)
    if (paid !== undefined) return paid
    // The signature is not checked yet, so anybody may have written this header. Where there are too many requests, the item is
    // read first: questions for strangers must not take the payment service's time from those who pay.
    const leave = this.#foreseen.take(uploader.address ?? 'own')
    if (typeof leave === 'string') return undefined
    const { address } = uploader
    const order = { ...payerOf(header, uploader), bytes, itemId: header.id }
    const checking = this.credits.check(address === undefined ? order : { ...order, asker: address })
    void checking.then(leave, leave)
    const checked = await this.#inTime(checking)
    // The item is read first, too, where the payment service has too many questions of others: they must keep nobody from paying.
    if (isRefusal(checked))
      return checked !== late && isOutOfTurn(checked) ? undefined : paymentAway(header.id)
    if (checked.isEnough) return undefined
    return checked.isUnknownWallet ? freeExhausted(bytes) : fixedAnswers.unpaid
  }

  settle(id: Id, { winc, heldAs }: Pick<ItemCharge, 'winc' | 'heldAs'>): void {
    if (winc !== '0' && heldAs === undefined) void this.#settle(id)
  }

  async #settle(id: Id): Promise<void> {
    while (!this.closing.aborted) {
      const settled = await this.credits.settle(id)
      if (this.closing.aborted) return
      if (!isRefusal(settled)) {
        await this.#unsettled.remove(id)
        return
      }
      await pause(againMs, this.closing)
    }
  }

  /** Withdraws the order by its ticket, because it may still be in flight: what it reserved, or still would, is refunded. */
  async #refund(id: Id, ticket: Uint8Array): Promise<void> {
    this.#refunding.add(id)
    const order = { itemId: id, ticket: Buffer.from(ticket).toString('base64url') }
    while (!this.closing.aborted) {
      // The row of an older release has no ticket: what is reserved for the item is refunded by its id.
      const refunded = await (ticket.length === 0 ? this.credits.refund(id) : this.credits.withdraw(order))
      if (this.closing.aborted) return
      if (!isRefusal(refunded)) {
        await this.#unsettled.remove(id)
        this.#refunding.delete(id)
        return
      }
      await pause(againMs, this.closing)
    }
  }

  /** An answer that comes late is measured, too, so that the next one is waited for. */
  #inTime<T>(answer: Promise<T | Refusal>): Promise<T | Refusal> {
    const sinceMs = this.clock.monotonic()
    const measured = answer.then((outcome) => {
      if (!isRefusal(outcome)) this.#answerMs = this.clock.monotonic() - sinceMs
      return outcome
    })
    const ms = Math.min(Math.max(patienceMs, 3 * this.#answerMs), patienceMaxMs)
    return withinTime(this.clock, ms, measured, late)
  }
}

/** Whose account pays for an item. */
export function payerOf({ signatureType, owner }: ItemHeader, { paidBy, token }: Uploader): Payer {
  if (signatureType === 3 && token === 'kyve')
    return { address: kyveAddress(owner), signatureType: kyveType, paidBy }
  const alias = aliasOf(signatureType, owner)
  const payer = { address: nativeAddress(signatureType, owner), signatureType, paidBy }
  return alias === undefined ? payer : { ...payer, alias }
}
