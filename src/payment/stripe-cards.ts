import type { Stripe } from 'stripe'
import { expected } from '../format/bug.js'
import { type Refusal, refuse } from '../format/refusal.js'
import type { CardEvent, CardProvider, PaymentSession, SessionWish } from './card-provider.js'

export interface StripeOptions {
  readonly secretKey: string
  readonly webhookSecret: string
  /** Another server that speaks the same interface: for tests. */
  readonly apiUrl?: string
}

const name = 'Credits'
const eventsMax = 1000

/** Cards by Stripe. The library is loaded at the first use: it takes some MB, and most programs have no key. */
export class StripeCards implements CardProvider {
  readonly name = 'stripe'
  #client: Promise<Stripe> | undefined

  constructor(private readonly options: StripeOptions) {}

  async open(wish: SessionWish): Promise<PaymentSession | Refusal> {
    return this.#asked(async (stripe) => {
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

  async since(ms: number): Promise<readonly CardEvent[] | Refusal> {
    return this.#asked(async (stripe) => {
      const types = ['payment_intent.succeeded', 'charge.dispute.created']
      const list = stripe.events.list({ created: { gte: Math.floor(ms / 1000) }, types, limit: 100 })
      const events = await list.autoPagingToArray({ limit: eventsMax })
      // Oldest first, as they happened.
      return events.reverse().map(eventOf)
    })
  }

  async refund(payment: string): Promise<true | Refusal> {
    return this.#asked(async (stripe) => {
      await stripe.refunds.create({ payment_intent: payment }, { idempotencyKey: `refund-${payment}` })
      return true as const
    })
  }

  async #asked<T>(ask: (stripe: Stripe) => Promise<T>): Promise<T | Refusal> {
    try {
      return await ask(await this.#stripe())
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

function sessionOf(wish: SessionWish, metadata: Record<string, string>): Stripe.Checkout.SessionCreateParams {
  const { currency, amount, uiMode, successUrl, cancelUrl, returnUrl, expiresMs } = wish
  const common: Stripe.Checkout.SessionCreateParams = {
    mode: 'payment',
    line_items: [{ quantity: 1, price_data: { currency, unit_amount: amount, product_data: { name } } }],
    payment_intent_data: { metadata },
    metadata,
    expires_at: Math.ceil(expiresMs / 1000) + 60,
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
      : { kind: 'paid', quoteId: topUpQuoteId, payment: id, amount, currency }
  }
  if (event.type === 'charge.dispute.created') {
    const { metadata, payment_intent: intent, reason } = event.data.object
    const payment = typeof intent === 'string' ? intent : (intent?.id ?? '')
    const quoteId = metadata.topUpQuoteId ?? ''
    return { kind: 'disputed', quoteId, payment, reason }
  }
  return { kind: 'other' }
}
