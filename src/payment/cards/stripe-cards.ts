import type { Stripe } from 'stripe'
import { expected } from '../../format/bug.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import type {
  CardEvent,
  CardPage,
  CardProvider,
  CardTaken,
  PaymentSession,
  SessionWish,
} from './card-provider.js'

export interface StripeOptions {
  readonly secretKey: string
  readonly webhookSecret: string
  /** Another server that speaks the same interface: for tests. */
  readonly apiUrl?: string
}

const name = 'Credits'
const pageMax = 100
/** What is heard of payments. Of one dispute there may be all three, in any order. */
const heardTypes = [
  'payment_intent.succeeded',
  'charge.dispute.created',
  'charge.dispute.funds_withdrawn',
  'charge.dispute.funds_reinstated',
  'charge.refunded',
]

/** Cards by Stripe. The library is loaded at the first use: it takes some MB, and most programs have no key. */
export class StripeCards implements CardProvider {
  readonly name = 'stripe'
  #client: Promise<Stripe> | undefined

  constructor(private readonly options: StripeOptions) {}

  async open(wish: SessionWish): Promise<PaymentSession | Refusal> {
    return this.#request(async (stripe) => {
      const { quoteId, amount, currency } = wish
      const metadata = { topUpQuoteId: quoteId }
      if (wish.method === 'payment-intent') {
        const intent = await stripe.paymentIntents.create(
          { amount, currency, metadata },
          { idempotencyKey: quoteId },
        )
        return { id: intent.id, url: null, client_secret: intent.client_secret }
      }
      const session = await stripe.checkout.sessions.create(sessionOf(wish, metadata), {
        idempotencyKey: quoteId,
      })
      return { id: session.id, url: session.url, client_secret: session.client_secret }
    })
  }

  async read(body: Uint8Array, signature: string): Promise<CardEvent | undefined> {
    const stripe = await this.#stripe()
    let event: Stripe.Event
    try {
      event = stripe.webhooks.constructEvent(Buffer.from(body), signature, this.options.webhookSecret)
    } catch (error) {
      // A signature of nobody, one that is too old, or a body that is no event.
      expected(error)
      return undefined
    }
    return eventOf(event)
  }

  async since(ms: number, after: string | undefined): Promise<CardPage<CardEvent> | Refusal> {
    return this.#request(async (stripe) => {
      const created = { gte: Math.floor(ms / 1000) }
      return pageOf(await stripe.events.list({ created, types: heardTypes, ...pageAt(after) }), eventOf)
    })
  }

  async taken(
    fromMs: number,
    toMs: number,
    after: string | undefined,
  ): Promise<CardPage<CardTaken> | Refusal> {
    return this.#request(async (stripe) => {
      const created = { gte: Math.floor(fromMs / 1000), lt: Math.ceil(toMs / 1000) }
      const expand = ['data.latest_charge']
      const list = await stripe.paymentIntents.list({ created, expand, ...pageAt(after) })
      const { entries, ...rest } = pageOf(list, (intent) => intent)
      const taken: CardTaken[] = []
      for (const intent of entries) {
        const one = await takenOf(stripe, intent)
        if (one !== undefined) taken.push(one)
      }
      return { entries: taken, ...rest }
    })
  }

  async find(payment: string): Promise<CardTaken | undefined | Refusal> {
    return this.#request(async (stripe) => {
      try {
        return await takenOf(
          stripe,
          await stripe.paymentIntents.retrieve(payment, { expand: ['latest_charge'] }),
        )
      } catch (error) {
        if ((error as { readonly statusCode?: unknown }).statusCode === 404) return undefined
        throw error
      }
    })
  }

  async refund(payment: string): Promise<true | Refusal> {
    return this.#request(async (stripe) => {
      try {
        await stripe.refunds.create({ payment_intent: payment }, { idempotencyKey: `refund-${payment}` })
      } catch (error) {
        // Stripe forgets the key after a day: a request that is repeated later gets this error.
        if ((error as { readonly code?: unknown }).code !== 'charge_already_refunded') throw error
      }
      return true as const
    })
  }

  async #request<T>(call: (stripe: Stripe) => Promise<T>): Promise<T | Refusal> {
    try {
      return await call(await this.#stripe())
    } catch (error) {
      return refuse('upstream', 'upstream', `Stripe: ${expected(error).message}`)
    }
  }

  async #stripe(): Promise<Stripe> {
    this.#client ??= import('stripe').then(({ Stripe: Client }) => {
      const { secretKey, apiUrl } = this.options
      const url = apiUrl === undefined ? undefined : new URL(apiUrl)
      const place =
        url === undefined
          ? {}
          : {
              host: url.hostname,
              port: url.port,
              protocol: url.protocol === 'http:' ? ('http' as const) : ('https' as const),
            }
      return new Client(secretKey, { maxNetworkRetries: 2, timeout: 20_000, telemetry: false, ...place })
    })
    return this.#client
  }
}

function pageAt(after: string | undefined): Stripe.PaginationParams {
  return { limit: pageMax, ...(after === undefined ? {} : { starting_after: after }) }
}

function pageOf<Listed extends { readonly id: string }, Entry>(
  { data, has_more: hasMore }: Stripe.ApiList<Listed>,
  entryOf: (object: Listed) => Entry,
): CardPage<Entry> {
  // The library believes every answer that has no error in it.
  if (!Array.isArray(data)) throw new Error('the answer is no list')
  const last = hasMore ? data.at(-1)?.id : undefined
  return { entries: data.map(entryOf), ...(last === undefined ? {} : { next: last }) }
}

/** Undefined where nothing was paid. */
async function takenOf(stripe: Stripe, intent: Stripe.PaymentIntent): Promise<CardTaken | undefined> {
  const { id, status, metadata, amount_received: amount, currency, created, latest_charge: last } = intent
  if (status !== 'succeeded') return undefined
  const charge = typeof last === 'object' && last !== null ? last : undefined
  const dispute = charge?.disputed === true ? await withdrawingDispute(stripe, id) : undefined
  return {
    payment: id,
    quoteId: metadata.topUpQuoteId ?? '',
    amount,
    currency,
    paidMs: (charge?.created ?? created) * 1000,
    isRefunded: charge?.refunded === true,
    isDisputed: dispute !== undefined,
    ...(dispute === undefined ? {} : { dispute }),
  }
}

/** The dispute that has withdrawn a payment, and is not won. */
async function withdrawingDispute(stripe: Stripe, payment: string): Promise<string | undefined> {
  const list = await stripe.disputes.list({ payment_intent: payment, limit: pageMax })
  return pageOf(list, (dispute) => dispute).entries.find(({ status }) => isWithdrawing(status))?.id
}

/** An inquiry (`warning_...`) withdraws nothing. What is `prevented` was prevented by sending the payment back. */
function isWithdrawing(status: Stripe.Dispute.Status): boolean {
  return !(status.startsWith('warning_') || status === 'won')
}

function sessionOf(wish: SessionWish, metadata: Record<string, string>): Stripe.Checkout.SessionCreateParams {
  const { currency, amount, uiMode, successUrl, cancelUrl, returnUrl, expiresMs } = wish
  const common: Stripe.Checkout.SessionCreateParams = {
    mode: 'payment',
    line_items: [{ quantity: 1, price_data: { currency, unit_amount: amount, product_data: { name } } }],
    payment_intent_data: { metadata },
    metadata,
    expires_at: Math.ceil(expiresMs / 1000) + 60,
    // A payment in another currency than that of the quote would be sent back.
    adaptive_pricing: { enabled: false },
  }
  if (uiMode === 'embedded') {
    const back =
      returnUrl === undefined ? { redirect_on_completion: 'never' as const } : { return_url: returnUrl }
    return { ...common, ui_mode: 'embedded_page', ...back }
  }
  return {
    ...common,
    success_url: successUrl ?? 'https://stripe.com',
    ...(cancelUrl === undefined ? {} : { cancel_url: cancelUrl }),
  }
}

function eventOf(event: Stripe.Event): CardEvent {
  if (event.type === 'payment_intent.succeeded') {
    const { id, metadata, amount_received: amount, currency } = event.data.object
    const { topUpQuoteId } = metadata
    return topUpQuoteId === undefined
      ? { kind: 'other' }
      : { kind: 'paid', quoteId: topUpQuoteId, payment: id, amount, currency, ...paidAt(event.created) }
  }
  switch (event.type) {
    case 'charge.dispute.created':
      // An inquiry that becomes a dispute is created once: then `funds_withdrawn` is heard of it.
      return isWithdrawing(event.data.object.status)
        ? { kind: 'disputed', ...disputeOf(event.data.object) }
        : { kind: 'other' }
    case 'charge.dispute.funds_withdrawn':
      return { kind: 'disputed', ...disputeOf(event.data.object) }
    case 'charge.dispute.funds_reinstated':
      // A part may come back of a dispute that is lost.
      return event.data.object.status === 'won'
        ? { kind: 'reinstated', ...disputeOf(event.data.object) }
        : { kind: 'other' }
    case 'charge.refunded': {
      const { refunded, payment_intent: intent, metadata } = event.data.object
      const facts = { quoteId: metadata.topUpQuoteId ?? '', payment: nameOf(intent), reason: 'refunded' }
      return refunded
        ? { kind: 'disputed', ...facts, dispute: `refund-${facts.payment}`, isRefund: true }
        : { kind: 'other' }
    }
    default:
      return { kind: 'other' }
  }
}

function disputeOf({ id, metadata, payment_intent: intent, reason }: Stripe.Dispute) {
  return { quoteId: metadata.topUpQuoteId ?? '', payment: nameOf(intent), reason, dispute: id }
}

function nameOf(intent: string | Stripe.PaymentIntent | null): string {
  return typeof intent === 'string' ? intent : (intent?.id ?? '')
}

/** The event is made when the payment succeeds. */
function paidAt(created: unknown): { readonly paidMs?: number } {
  return typeof created === 'number' ? { paidMs: created * 1000 } : {}
}
