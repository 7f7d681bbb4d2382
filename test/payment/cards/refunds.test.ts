/** Card payments that are sent back: each payment is either credited or refunded, whatever happens at the same moment. */
import t, { type Test } from 'tap'
import { refuse } from '../../../src/format/refusal.js'
import { LocalCards } from '../../../src/payment/cards/local-cards.js'
import { makeServiceToken } from '../../../src/payment/requests/service-token.js'
import { type PaymentRig, paymentRig, secret } from '../rig.js'

const address = Buffer.alloc(32, 1).toString('base64url')

interface RefundRig {
  readonly rig: PaymentRig
  /** Payments whose refund was requested. */
  readonly refunds: string[]
  /** While false the provider refuses refunds. */
  isUp: boolean
  begin(): Promise<{ readonly quote: string; readonly amount: number }>
  /** Reports a payment as the provider does. */
  report(quote: string, amount: number): Promise<number>
  credited(): Promise<string | undefined>
}

/** A service with a promotion for wallets that never paid. */
async function refundRig(t: Test): Promise<RefundRig> {
  const refunds: string[] = []
  const rig = await paymentRig(t, {
    cards: (ledger) =>
      Object.assign(new LocalCards(ledger, () => ''), {
        read: async (body: Uint8Array) => JSON.parse(Buffer.from(body).toString()) as never,
        refund: async (payment: string) => {
          refunds.push(payment)
          return made.isUp || refuse('upstream', 'upstream', 'the provider is away')
        },
      }),
  })
  const nowMs = Date.UTC(2026, 0, 1)
  const headers = {
    authorization: `Bearer ${await makeServiceToken(secret, nowMs)}`,
    'content-type': 'application/json',
  }
  const limits = { leastMicroUsd: 0, mostMicroUsd: 1e10, usesMax: 0, isForNew: true }
  const promotion = { code: 'WELCOME', permille: 500, expiresMs: nowMs + 1e10, ...limits }
  t.equal((await rig.post('/v1/promotions', JSON.stringify(promotion), headers)).status, 200)
  const made: RefundRig = {
    rig,
    refunds,
    isUp: true,
    begin: async () => {
      const { json } = await rig.get(`/v1/top-up/payment-intent/${address}/usd/1000?promoCode=WELCOME`)
      const { topUpQuoteId: quote, paymentAmount: amount } = (
        json as { topUpQuote: { topUpQuoteId: string; paymentAmount: number } }
      ).topUpQuote
      return { quote, amount }
    },
    report: async (quoteId, amount) => {
      const event = { kind: 'paid', quoteId, payment: `of-${quoteId}`, amount, currency: 'usd' }
      return (await rig.post('/v1/stripe-webhook', JSON.stringify(event))).status
    },
    credited: async () => (await rig.service.balanceOf(address))?.winc,
  }
  return made
}

t.test(
  'an event that is carried out twice at the same moment refunds nothing that it credited',
  async (t) => {
    const { rig, refunds, begin, report, credited } = await refundRig(t)
    const { quote, amount } = await begin()
    t.equal(amount, 500)
    // The first reading of the quote is delayed until the same event was carried out whole: as at another service of this ledger.
    const record = rig.ledger.record.bind(rig.ledger)
    let isFirst = true
    Object.assign(rig.ledger, {
      record: async (kind: string, key: string) => {
        const stored = await record(kind, key)
        if (kind !== 'card-quote' || !isFirst) return stored
        isFirst = false
        t.equal(await report(quote, amount), 200)
        return stored
      },
    })
    t.equal(await report(quote, amount), 200)
    t.equal(await credited(), '1225600000000')
    t.strictSame(refunds, [], 'what is credited is not sent back')
    t.strictSame((await rig.ledger.check()).faults, [])
  },
)

t.test(
  'a refund that the provider did not confirm is requested again, and its quote is never credited',
  async (t) => {
    const made = await refundRig(t)
    const { refunds, begin, report, credited } = made
    const { quote, amount } = await begin()
    made.isUp = false
    t.ok((await report(quote, amount + 1)) >= 500, 'another amount than promised')
    t.ok((await report(quote, amount)) >= 500, 'the decision stays')
    made.isUp = true
    t.equal(await report(quote, amount), 200)
    t.strictSame(refunds, Array(3).fill(`of-${quote}`))
    t.equal(await report(quote, amount), 200)
    t.equal(refunds.length, 3, 'a confirmed refund is not repeated')
    t.equal(await credited(), undefined)
  },
)

t.test('a payment that is disputed before its refund is confirmed is not sent back, too', async (t) => {
  const made = await refundRig(t)
  const { rig, refunds, begin, report, credited } = made
  const { quote, amount } = await begin()
  made.isUp = false
  t.ok((await report(quote, amount + 1)) >= 500)
  // A dispute names the payment only.
  const dispute = { kind: 'disputed', quoteId: '', payment: `of-${quote}`, reason: 'fraudulent' }
  t.equal((await rig.post('/v1/stripe-webhook', JSON.stringify(dispute))).status, 200)
  made.isUp = true
  t.equal(await report(quote, amount + 1), 200)
  t.equal(refunds.length, 1)
  t.equal(await credited(), undefined)
})
