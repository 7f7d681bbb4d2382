import type { Clock, Timer } from '../../actor/clock.js'
import { TimedTurns } from '../../actor/timed-turns.js'
import { authorizationDigest, signatureDigest } from '../../admission/authorization.js'
import { resourceOf } from '../../admission/payment-offer.js'
import { isUnreadable, type Presented, paymentName, paymentOf } from '../../admission/presented.js'
import { Signers } from '../../admission/signers.js'
import { usdcNamed } from '../../admission/usdc.js'
import { isRefusal, type Refusal } from '../../format/refusal.js'
import type { Request } from '../../http/exchange.js'
import {
  identifierConflict,
  type UsdcAnswer,
  type UsdcOrder,
  type UsdcPort,
} from '../../payment/credits-port.js'
import { settlementPending } from '../charging/payment-outcome.js'
import type { Purchase, Sale, Sales } from '../charging/sales.js'
import { elsewhereAnswer, type ServiceOfSeveral } from '../charging/several-services.js'
import { lengthOf, type SingleUpload } from '../intake/single-upload.js'
import { jsonAnswer, textAnswer, type UploadAnswer } from '../requests/upload-answers.js'
import type { Uploader } from '../requests/uploader.js'
import { type PaymentEnd, UnsettledPayments } from './unsettled-payments.js'

export interface UsdcUploadsParts {
  /** Absent: no USDC is taken. */
  readonly usdc?: UsdcPort
  readonly sales: Sales
  readonly single: Pick<SingleUpload, 'receive'>
  /** In the addresses that offers name. */
  readonly protocol: 'http' | 'https'
  /** Whose payments a request brings: not the address of a proxy, which all of its clients share. */
  readonly clientOf: (request: Request) => string
  readonly clock: Clock
  /** Absent: this upload service is the only one. */
  readonly service?: ServiceOfSeveral
}

const noLength = textAnswer(411, 'Missing Content Length. Content Length is required for x402 upload.')
const notTaken = textAnswer(404, 'This service takes no payments by x402')
const noPrice = jsonAnswer(503, { error: 'The price is not known now: try again' }, '\r\nRetry-After: 2')

/**
 * Questions to the payment service that anybody can cause: for an offer, and whether a payment would settle. Fewer run at once
 * than a payment service elsewhere has connections (64), so that settlements never wait behind them.
 */
const offerTurns = { atOnce: 12, waitingMax: 1000, patienceMs: 4000 }
const lookTurns = { atOnce: 32, waitingMax: 1000, patienceMs: 8000 }

/** A payment that a request carries, with what it is to pay for. */
export interface BroughtPayment {
  readonly read: Presented
  /** Name of the payment. */
  readonly name: string
  readonly order: Omit<UsdcOrder, 'itemId'>
}

/** A payment whose upload is under way. */
export interface TrackedPayment {
  readonly end: PaymentEnd
  /** Counts it for its payer, who has signed it. False: too much of his is unsettled. `units`: what it costs. */
  readonly countFor: (units: bigint) => boolean
  /** Resolves with the answer to the upload when the payment is good no more. Never where it was not good from the beginning. */
  readonly expired: Promise<UploadAnswer>
}

const tooManyLooks = jsonAnswer(
  429,
  {
    error: 'too_many_payments',
    message: 'payments of this client are being looked at: wait for some of them',
  },
  '\r\nRetry-After: 2',
)

const tooMany = jsonAnswer(
  429,
  { error: 'too_many_payments', message: 'uploads of this payer are under way: wait for some of them' },
  '\r\nRetry-After: 5',
)

/** Signed items that are paid for in USDC, each by a payment of its own. */
export class UsdcUploads {
  readonly #unsettled = new UnsettledPayments()
  /** Looks under way, by the client that causes them. */
  readonly #looking = new UnsettledPayments()
  readonly #signers = new Signers()
  readonly #offerTurns: TimedTurns
  readonly #lookTurns: TimedTurns
  #looks = 0

  constructor(private readonly parts: UsdcUploadsParts) {
    this.#offerTurns = new TimedTurns(offerTurns, parts.clock)
    this.#lookTurns = new TimedTurns(lookTurns, parts.clock)
  }

  /** To be called before the handler first waits. */
  receive(request: Request, uploader: Uploader): Promise<UploadAnswer> {
    const size = lengthOf(request)
    if (size === undefined) return Promise.resolve(noLength)
    const brought = this.readPayment(request, size)
    if (brought === undefined) {
      const beforeBody = (): Promise<UploadAnswer> => this.offer(request, size)
      return this.parts.single.receive(request, uploader, { beforeBody })
    }
    if ('status' in brought) return Promise.resolve(brought)
    const purchase = this.purchase(brought, (id) => id)
    const tracked = this.track(brought)
    const { end, expired } = tracked
    const beforeBody = (): Promise<UploadAnswer | undefined> => this.look(brought, size, tracked)
    return this.parts.single.receive(request, uploader, { beforeBody, purchase, expired }).finally(end)
  }

  /** Counts the payment of a request as unsettled, until `end`. One that was settled before does not count. */
  track({ read, name, order }: BroughtPayment): TrackedPayment {
    const { from, validBefore } = read.authorization
    if (this.parts.sales.sold(name) !== undefined) return alreadySettled
    const [payer, unsettled] = [from.toLowerCase(), this.#unsettled]
    const { clock } = this.parts
    const leftMs = Number(validBefore) * 1000 - clock.now()
    let timer: Timer | undefined
    const expired = new Promise<UploadAnswer>((resolve) => {
      // One that is late already is refused when it is looked at; or its settlement has begun, and this asks for the outcome.
      if (leftMs > 0) timer = clock.after(leftMs, () => resolve(this.#tooLate(order)))
    })
    let counted: PaymentEnd | undefined
    let isOver = false
    return {
      expired,
      countFor: (units) => {
        // It may end while it is looked at.
        if (isOver || units === 0n) return true
        if (counted !== undefined) return unsettled.grow(payer, name, units)
        counted = unsettled.open(payer, name, units)
        return counted !== undefined
      },
      end: () => {
        isOver = true
        timer?.cancel()
        counted?.()
      },
    }
  }

  #tooLate(order: UsdcWish): Promise<UploadAnswer> {
    return this.#faulty(order, {
      error: 'payment_verification_failed',
      message: 'invalid_exact_evm_payload_authorization_valid_before',
    })
  }

  /** The 402 for so many bytes, or why there is none. */
  offer(request: Request, bytes: number): Promise<UploadAnswer> {
    return this.#offer(this.parts.clientOf(request), this.#wanted(request, bytes))
  }

  async #offer(client: string, wanted: Parameters<UsdcPort['offer']>[0]): Promise<UploadAnswer> {
    const { usdc } = this.parts
    if (usdc === undefined) return notTaken
    return answered(await this.#offerTurns.run(client, () => usdc.offer(wanted)))
  }

  #wanted(request: Request, bytes: number): Pick<UsdcOrder, 'bytes' | 'resource' | 'mimeType'> {
    const resource = resourceOf(request, request.secure === true ? 'https' : this.parts.protocol)
    return { bytes, resource, mimeType: 'application/json' }
  }

  /** Undefined: the request carries no payment. An answer: it cannot be read. */
  readPayment(request: Request, bytes: number): BroughtPayment | UploadAnswer | undefined {
    const read = paymentOf(request)
    if (read === undefined) return undefined
    if (this.parts.usdc === undefined) return notTaken
    if (isUnreadable(read)) return malformed(read.unreadable)
    const name = paymentName(read)
    if (name === undefined) return malformed('the network of the payment is unknown')
    const { version } = read
    const header = request.header(version === 2 ? 'payment-signature' : 'x-payment') ?? ''
    const asker = this.parts.clientOf(request)
    return { read, name, order: { ...this.#wanted(request, bytes), header, version, asker } }
  }

  /**
   * Nothing of the body is read for a payment that is worth nothing. `bytes`: of the item of a sale that is over. `tracked`: it
   * counts for its payer once it was found good. Until then anybody may have named him, and it counts for its client alone.
   */
  async look(
    { read, name, order }: BroughtPayment,
    bytes: number,
    tracked?: TrackedPayment,
  ): Promise<UploadAnswer | undefined> {
    const { usdc, sales } = this.parts
    if (usdc === undefined) return notTaken
    // An item that is sold already is requested again for its receipt.
    const sale = sales.sold(name)
    if (sale?.bytes === bytes) return this.#unsigned(sale, read, order)
    this.#looks += 1
    const isLooked = this.#looking.open(order.asker, String(this.#looks), 0n)
    if (isLooked === undefined) return tooManyLooks
    const question = (): ReturnType<UsdcPort['look']> => usdc.look({ ...order, itemId: '' })
    const looked = await this.#lookTurns.run(order.asker, question).finally(isLooked)
    if (isRefusal(looked) || !('good' in looked)) return answered(looked)
    const units = BigInt(looked.units ?? read.authorization.value)
    return tracked === undefined || tracked.countFor(units) ? undefined : tooMany
  }

  /** Names of payments are public: no body is read for one that its payer has not signed. Undefined: it is signed. */
  async #unsigned(
    { signed }: Sale,
    { authorization, signature, network }: Presented,
    order: UsdcWish,
  ): Promise<UploadAnswer | undefined> {
    if (signed !== undefined && signed === signatureDigest(signature)) return undefined
    const chain = usdcNamed(network)
    if (chain === undefined) throw new Error('a payment has a name and no chain')
    const digest = Buffer.from(authorizationDigest(chain, authorization)).toString('hex')
    const facts = { digest, signature, payer: authorization.from.toLowerCase(), asker: order.asker }
    const checked = await this.#signers.check(facts, signed)
    if (checked === 'busy') return tooManyLooks
    if (checked === 'true') return undefined
    const message = 'invalid_exact_evm_payload_signature'
    return this.#faulty(order, { error: 'payment_verification_failed', message })
  }

  /**
   * `upload`: it begins an upload in parts, which any machine may end; `address` gets what is paid and not used, where it is not
   * who pays. Absent: this service accepts the item that is paid for.
   */
  purchase(
    { read, name, order }: BroughtPayment,
    requestOf: Purchase['request'],
    upload?: { readonly address: string | undefined },
  ): Purchase {
    const { identifier, authorization, signature } = read
    const service = upload === undefined ? this.parts.service?.name : undefined
    const more = {
      ...(upload?.address === undefined ? {} : { address: upload.address }),
      ...(service === undefined ? {} : { service }),
    }
    const { value, from } = authorization
    const named = identifier === undefined ? {} : { identifier: `${from.toLowerCase()}:${identifier}` }
    return {
      payment: name,
      units: value,
      bytes: order.bytes,
      signed: signatureDigest(signature),
      ...named,
      ...(service === undefined ? {} : { service }),
      request: requestOf,
      refuse: (why) => this.#refuse(why, order),
      pay: (itemId, sale, notAccepted) =>
        this.#pay({
          ...order,
          itemId,
          ...more,
          ...(sale && { sale }),
          ...(notAccepted === undefined ? {} : { notAccepted }),
        }),
    }
  }

  async #refuse(why: 'used' | 'identifier', order: UsdcWish): Promise<UploadAnswer> {
    if (why === 'identifier') return identifierConflict
    return this.#faulty(order, {
      error: 'payment_already_used',
      message: 'this payment has paid for something else',
    })
  }

  /** The offer, with why the payment was not taken. */
  #faulty(
    { asker, bytes, resource, mimeType }: UsdcWish,
    fault: { readonly error: string; readonly message: string },
  ): Promise<UploadAnswer> {
    return this.#offer(asker, { bytes, resource, mimeType, fault })
  }

  async #pay(order: UsdcOrder): ReturnType<Purchase['pay']> {
    const paid = await this.parts.usdc?.pay(order)
    if (paid === undefined) return { answer: notTaken, isOpen: false }
    // Nobody knows whether the order arrived.
    if (isRefusal(paid)) return { answer: settlementPending, isOpen: true }
    if ('paid' in paid) return paid
    const { elsewhere, first } = paid
    if (elsewhere !== undefined) {
      const answer = elsewhereAnswer(elsewhere, this.parts.service)
      // Held for another service, which may be this one under an earlier name: what is stored here stays until that is over.
      if (first === undefined) return { answer, isOpen: elsewhere === 'held' }
      return { answer, isOpen: false, ...(first === 'pending' ? {} : { first }) }
    }
    return { answer: answered(paid), isOpen: paid.status === 503, isUnsent: isUnsent(paid) }
  }
}

/** The payment service states that it has requested nothing for this order (`X402`). */
function isUnsent({ json }: UsdcAnswer): boolean {
  return typeof json === 'object' && json !== null && 'requested' in json && json.requested === false
}

/** A payment that was settled before: nothing is counted. */
const alreadySettled: TrackedPayment = {
  end: () => undefined,
  countFor: () => true,
  expired: new Promise(() => undefined),
}

type UsdcWish = Pick<UsdcOrder, 'asker' | 'bytes' | 'resource' | 'mimeType'>

function malformed(message: string): UploadAnswer {
  return jsonAnswer(400, { error: 'malformed_payment', message })
}

function answered(answer: UsdcAnswer | Refusal): UploadAnswer {
  if (!isRefusal(answer)) return answer
  return answer.refused === 'unknown' ? notTaken : noPrice
}
