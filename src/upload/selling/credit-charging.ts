import { randomBytes } from 'node:crypto'
import { type Clock, pause, withinTime } from '../../actor/clock.js'
import { type Id, idBytes, idOfBytes } from '../../format/id.js'
import type { ItemHeader } from '../../format/item.js'
import { isRefusal, type Refusal, refuse } from '../../format/refusal.js'
import { GroupCommit } from '../../ledger/group.js'
import type { CreditsPort, Payer } from '../../payment/credits-port.js'
import { kyveAddress, nativeAddress, normalizedAddress } from '../../proof/owner-address.js'
import { tryWrite } from '../../store/disk-error.js'
import type { Environment, Table } from '../../store/lmdb.js'
import { answerOf, paymentAway, said, type UploadAnswer } from '../calls/upload-answers.js'
import type { Uploader } from '../calls/uploader.js'
import type { FreePools } from '../records/free-pools.js'
import {
  type Charged,
  type Charging,
  freeCharge,
  freeExhausted,
  freeTakerOf,
  type ItemCharge,
} from './charging.js'

/** A client is told within a second that nobody can be asked for credits. */
const patienceMs = 900
const againMs = 2000
/** Billing goes by this number where the path names that network; the item itself says 3. */
const kyveType = 101

/** Of one transaction. */
const wordsMax = 1000

const late = refuse('late', 'self', 'the payment service does not answer')
const none = new Uint8Array(0)
/** Begins the word of an item whose credits may be held back, and that is not accepted yet. The ticket of its order follows. */
const held = Uint8Array.of(1)
const ticketBytes = 16

/** Items whose credits are held back and neither spent nor given back. */
function unsettledIn(environment: Environment): Table {
  return environment.table('unsettled')
}

/** Says that credits are to be spent for an item. Only inside a `write` of the environment. */
export function keepUnsettled(environment: Environment, id: Id): void {
  unsettledIn(environment).put(idBytes(id), none)
}

/** Takes what is free, and credits for the rest: held back before the item is kept, spent after. */
export class CreditCharging implements Charging {
  /** Written before credits are held back: a kill at any moment leaves word of what is to be spent or given back. */
  readonly #unsettled: Table
  /** Word of those that come in one turn is written in one transaction. An answer: it was not written. */
  readonly #words: GroupCommit<{ readonly id: Id; readonly ticket?: Uint8Array }, UploadAnswer | undefined>
  /** Settled or given back, and still to be removed: the disk was full, and the next transaction that it takes does it. */
  readonly #over = new Set<Id>()
  /** Items whose credits are still to be given back: one that comes again waits for it, or it would lose what it pays anew. */
  readonly #refunding = new Set<Id>()

  constructor(
    private readonly pools: FreePools,
    private readonly credits: CreditsPort,
    private readonly environment: Environment,
    private readonly clock: Clock,
    private readonly closing: AbortSignal,
  ) {
    this.#unsettled = unsettledIn(environment)
    this.#words = new GroupCommit(async (words) => {
      // What is not forgotten is settled, or given back, once more by the next process.
      if (closing.aborted) return words.map(({ id }) => paymentAway(id))
      for (const { id, ticket } of words) if (ticket === undefined) this.#over.add(id)
      const write = (): void =>
        environment.write(() => {
          for (const id of this.#over) this.#unsettled.remove(idBytes(id))
          for (const { id, ticket } of words)
            if (ticket !== undefined) this.#unsettled.put(idBytes(id), Buffer.concat([held, ticket]))
        })
      const refusal = tryWrite(write)
      if (refusal === undefined) this.#over.clear()
      return words.map(() => (refusal === undefined ? undefined : answerOf(refusal)))
    }, wordsMax)
    // What an earlier process left.
    for (const { key, value } of this.#unsettled.from(undefined, Number.MAX_SAFE_INTEGER)) {
      if (value.length === 0) void this.#settle(idOfBytes(key))
      else void this.#refund(idOfBytes(key), value.subarray(held.length))
    }
  }

  async charge(header: ItemHeader, bytes: number, uploader: Uploader): Promise<ItemCharge> {
    const free = freeCharge(this.pools, header, bytes, uploader)
    if (free !== undefined) return free
    if (this.#refunding.has(header.id)) return paymentAway(header.id)
    const ticket = randomBytes(ticketBytes)
    const named = { itemId: header.id, ticket: ticket.toString('base64url') }
    const order = { ...payerOf(header, uploader), ...named, bytes }
    // Nothing is held back yet: where the disk does not take word of it, nobody needs to wait for the disk.
    const unwritten = await this.#words.add({ id: header.id, ticket })
    if (unwritten !== undefined) return unwritten
    const reserving = this.credits.reserve(order)
    const reserved = await this.#inTime(reserving)
    if (isRefusal(reserved)) {
      // It may have been carried out all the same, or be carried out later.
      void this.#refund(header.id, ticket)
      return paymentAway(header.id)
    }
    if (!reserved.paid) {
      await this.#forget(header.id)
      return reserved.isUnknownWallet ? freeExhausted(bytes) : said.unpaid
    }
    return {
      winc: reserved.winc,
      isLogged: true,
      keep: (id) => {
        if (reserved.winc === '0') this.#unsettled.remove(idBytes(id))
        else keepUnsettled(this.environment, id)
      },
      // Word of it is on disk: the client need not wait until the payment service takes it.
      giveBack: () => withinTime(this.clock, patienceMs, this.#refund(header.id, ticket), undefined),
    }
  }

  async foresee(header: ItemHeader, bytes: number, uploader: Uploader): Promise<UploadAnswer | undefined> {
    if (this.pools.would(freeTakerOf(header, uploader), bytes) !== undefined) return undefined
    const asked = { ...payerOf(header, uploader), bytes, itemId: header.id }
    const checked = await this.#inTime(this.credits.check(asked))
    if (isRefusal(checked)) return paymentAway(header.id)
    if (checked.isEnough) return undefined
    return checked.isUnknownWallet ? freeExhausted(bytes) : said.unpaid
  }

  settle(id: Id, { winc }: Charged): void {
    if (winc !== '0') void this.#settle(id)
  }

  async #settle(id: Id): Promise<void> {
    while (!this.closing.aborted) {
      const settled = await this.credits.settle(id)
      if (this.closing.aborted) return
      if (!isRefusal(settled)) {
        await this.#forget(id)
        return
      }
      await pause(againMs, this.closing)
    }
  }

  /** The order that may have held the credits back may also still be under way: it is withdrawn by its name. */
  async #refund(id: Id, ticket: Uint8Array): Promise<void> {
    this.#refunding.add(id)
    const order = { itemId: id, ticket: Buffer.from(ticket).toString('base64url') }
    while (!this.closing.aborted) {
      // Releases before tickets wrote none.
      const refunded = await (ticket.length === 0 ? this.credits.refund(id) : this.credits.withdraw(order))
      if (this.closing.aborted) return
      if (!isRefusal(refunded)) {
        await this.#forget(id)
        this.#refunding.delete(id)
        return
      }
      await pause(againMs, this.closing)
    }
  }

  async #forget(id: Id): Promise<void> {
    await this.#words.add({ id })
  }

  #inTime<T>(answer: Promise<T | Refusal>): Promise<T | Refusal> {
    return withinTime(this.clock, patienceMs, answer, late)
  }
}

/** Whose account pays for an item. */
export function payerOf({ signatureType, owner }: ItemHeader, { paidBy, token }: Uploader): Payer {
  const alias = normalizedAddress(owner)
  if (signatureType === 3 && token === 'kyve')
    return { address: kyveAddress(owner), signatureType: kyveType, paidBy }
  return { address: nativeAddress(signatureType, owner), signatureType, alias, paidBy }
}
