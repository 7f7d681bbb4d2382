/** Cards by Stripe: its library signs and checks, a server on this machine answers in its place. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import Stripe from 'stripe'
import t, { type Test } from 'tap'
import { StripeCards } from '../../../src/payment/cards/stripe-cards.js'
import { paymentRig } from '../rig.js'

const address = Buffer.alloc(32, 1).toString('base64url')
const webhookSecret = 'whsec_of_a_test'
/** A payment of which the provider states that it was refunded before. */
const refundedBefore = 'pi_3'

interface ReceivedRequest {
  readonly path: string
  readonly body: URLSearchParams
}

async function stripeServer(
  t: Test,
): Promise<{ readonly url: string; readonly received: ReceivedRequest[] }> {
  const received: ReceivedRequest[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const path = (request.url ?? '').split('?')[0] ?? ''
      received.push({ path, body: new URLSearchParams(Buffer.concat(pieces).toString()) })
      response.setHeader('content-type', 'application/json')
      if (received.at(-1)?.body.get('payment_intent') === refundedBefore) {
        response.statusCode = 400
        const error = { type: 'invalid_request_error', code: 'charge_already_refunded', message: 'refunded' }
        return response.end(JSON.stringify({ error }))
      }
      const isSession = path.endsWith('/sessions')
      // Names and types are those that Stripe's library declares.
      const session = {
        id: 'cs_1',
        object: 'checkout.session',
        url: 'https://checkout.test/cs_1',
        client_secret: null,
      } satisfies Partial<Stripe.Checkout.Session>
      const intent = {
        id: 'pi_1',
        object: 'payment_intent',
        client_secret: 'pi_1_secret',
      } satisfies Partial<Stripe.PaymentIntent>
      const answer = isSession ? session : intent
      return response.end(JSON.stringify(answer))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const place = server.address()
  return { url: `http://127.0.0.1:${typeof place === 'object' ? place?.port : 0}`, received }
}

t.test(
  'a payment is credited once, taken back once, and sent back where it is not what was promised',
  async (t) => {
    const { url: apiUrl, received } = await stripeServer(t)
    const rig = await paymentRig(t, {
      cards: () => new StripeCards({ secretKey: 'sk_test_of_a_test', webhookSecret, apiUrl }),
    })
    const begin = async (method: string): Promise<{ quote: string; session: unknown }> => {
      const { json } = await rig.get(`/v1/top-up/${method}/${address}/usd/1000`)
      const { topUpQuote, paymentSession } = json as {
        topUpQuote: { topUpQuoteId: string }
        paymentSession: unknown
      }
      return { quote: topUpQuote.topUpQuoteId, session: paymentSession }
    }
    const tell = (event: object, signature?: string) => {
      const payload = JSON.stringify({ object: 'event', id: 'evt_1', ...event })
      const header = signature ?? Stripe.webhooks.generateTestHeaderString({ payload, secret: webhookSecret })
      return rig.post('/v1/stripe-webhook', payload, { 'stripe-signature': header })
    }
    const paid = (quote: string, payment: string, amount = 1000) => ({
      type: 'payment_intent.succeeded',
      data: {
        object: {
          id: payment,
          amount_received: amount,
          currency: 'usd',
          metadata: { topUpQuoteId: quote },
        } satisfies Partial<Stripe.PaymentIntent>,
      },
    })
    const disputed = (
      payment: string,
      what = 'created',
      status: Stripe.Dispute.Status = 'needs_response',
      dispute = 'dp_1',
    ) => ({
      type: `charge.dispute.${what}`,
      data: {
        object: {
          id: dispute,
          payment_intent: payment,
          reason: 'fraudulent',
          status,
          metadata: {},
        } satisfies Partial<Stripe.Dispute>,
      },
    })
    const has = async (): Promise<string | undefined> => (await rig.service.balanceOf(address))?.winc

    const first = await begin('checkout-session')
    t.match(first.session, { id: 'cs_1', url: 'https://checkout.test/cs_1', client_secret: null })
    t.equal(received[0]?.path, '/v1/checkout/sessions')
    t.equal(received[0]?.body.get('payment_intent_data[metadata][topUpQuoteId]'), first.quote)
    t.equal(received[0]?.body.get('line_items[0][price_data][unit_amount]'), '1000')
    t.equal(received[0]?.body.get('adaptive_pricing[enabled]'), 'false')
    for (const signature of [
      '',
      't=1,v1=00',
      Stripe.webhooks.generateTestHeaderString({ payload: '{}', secret: 'another' }),
    ])
      t.match(await tell(paid(first.quote, 'pi_1'), signature), { status: 400, text: 'Webhook Error!' })
    t.equal(await has(), undefined, 'nothing from forgers')
    const events = await Promise.all([1, 2, 3].map(() => tell(paid(first.quote, 'pi_1'))))
    for (const { status } of events) t.equal(status, 200)
    t.equal(await has(), '1225600000000')
    t.equal(
      (await tell({ type: 'customer.created', data: { object: {} } })).status,
      200,
      'others are heard and forgotten',
    )

    const second = await begin('payment-intent')
    t.match(second.session, { id: 'pi_1', client_secret: 'pi_1_secret', url: null })
    t.equal((await tell(paid(second.quote, 'pi_2', 999))).status, 200)
    t.equal(await has(), '1225600000000', 'another amount is not credited')
    t.strictSame(
      received.filter(({ path }) => path === '/v1/refunds').map(({ body }) => body.get('payment_intent')),
      ['pi_2'],
    )
    const third = await begin('payment-intent')
    rig.setTime(Date.UTC(2026, 0, 2))
    t.equal((await tell(paid(third.quote, 'pi_3'))).status, 200)
    t.equal(await has(), '1225600000000', 'a quote of yesterday is not credited')
    t.equal(received.filter(({ path }) => path === '/v1/refunds').length, 2)

    await rig.service.credits.reserve({ itemId: 'i', bytes: 0, address, signatureType: 1, paidBy: [] })
    for (const status of ['warning_needs_response', 'warning_closed'])
      t.equal((await tell(disputed('pi_1', 'created', status))).status, 200)
    t.equal(await has(), '1225596800000', 'an inquiry takes nothing back')
    for (const again of [1, 2]) t.equal((await tell(disputed('pi_1'))).status, 200, `time ${again}`)
    t.equal(await has(), '-3200000', 'what was spent is owed')
    t.equal((await tell(paid(first.quote, 'pi_1'))).status, 200, 'late news of the payment change nothing')
    t.equal(await has(), '-3200000')
    for (const again of [1, 2])
      t.equal((await tell(disputed('pi_1', 'funds_reinstated', 'won'))).status, 200, `time ${again}`)
    t.equal(await has(), '1225596800000', 'a dispute that is won gives them back, once')
    for (const what of ['created', 'funds_withdrawn']) await tell(disputed('pi_1', what))
    t.equal(await has(), '1225596800000', 'late news of it take nothing')
    await tell(disputed('pi_1', 'funds_withdrawn', 'lost', 'dp_2'))
    t.equal(await has(), '-3200000', 'another dispute does')
    await tell(disputed('pi_1', 'funds_reinstated', 'lost', 'dp_2'))
    t.equal(await has(), '-3200000', 'what comes back of a lost one is no decision')
    await tell(disputed('pi_1', 'funds_reinstated', 'won', 'dp_2'))
    for (const what of ['funds_reinstated', 'funds_withdrawn'])
      await tell(disputed('pi_1', what, 'won', 'dp_3'))
    t.equal(await has(), '1225596800000', 'events in the other order')
    const refund = { id: 'ch_1', payment_intent: 'pi_1', metadata: {} } satisfies Partial<Stripe.Charge>
    for (const refunded of [false, true, true])
      await tell({ type: 'charge.refunded', data: { object: { ...refund, refunded } } })
    t.equal(await has(), '-3200000', 'what the operator sent back in whole is taken back')
    t.strictSame((await rig.ledger.check()).faults, [])

    const early = await begin('payment-intent')
    await tell(disputed('pi_5', 'funds_withdrawn', 'needs_response', 'dp_5'))
    await tell(disputed('pi_5', 'funds_reinstated', 'won', 'dp_5'))
    await tell(paid(early.quote, 'pi_5'))
    t.equal(await has(), '1225596800000', 'a dispute that was won before the payment is reported')
  },
)
