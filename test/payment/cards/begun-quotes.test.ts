/** Card payments that strangers begin and never finish. */
import t from 'tap'
import { LocalCards } from '../../../src/payment/cards/local-cards.js'
import { paymentRig } from '../rig.js'

const address = Buffer.alloc(32, 1).toString('base64url')
const startMs = Date.UTC(2026, 0, 1)
const hourMs = 3600_000
const kinds = ['card-quote', 'card-quote-begun', 'card-session', 'card-session-of']

t.test('what is begun and not paid leaves the ledger; what was paid stays', async (t) => {
  let cards: LocalCards | undefined
  const rig = await paymentRig(t, {
    cards: (ledger) => {
      cards = new LocalCards(
        ledger,
        () => '',
        () => startMs,
      )
      return cards
    },
  })
  const begin = async (): Promise<{ quote: string; session: string }> => {
    const { json } = await rig.get(`/v1/top-up/payment-intent/${address}/usd/1000`)
    const begun = json as { topUpQuote: { topUpQuoteId: string }; paymentSession: { id: string } }
    return { quote: begun.topUpQuote.topUpQuoteId, session: begun.paymentSession.id }
  }
  const pay = (session: string) =>
    rig.post(`/checkout/${session}`, 'card=4242424242424242', {
      'content-type': 'application/x-www-form-urlencoded',
    })
  const kept = async (): Promise<number[]> =>
    Promise.all(kinds.map(async (kind) => (await rig.ledger.records(kind, '', '', 100)).length))
  const [paid, unheard] = [await begin(), await begin()]
  for (let count = 0; count < 5; count += 1) await begin()
  t.equal((await pay(paid.session)).status, 200)
  // Charged in time, and never reported.
  await cards?.charge(unheard.session, '4242424242424242')
  t.equal(await rig.service.forgetQuotes(), 0, 'not while they can be paid')
  t.strictSame(await kept(), [7, 6, 7, 7])
  rig.setTime(startMs + 4 * hourMs)
  t.equal(await rig.service.forgetQuotes(), 5)
  t.strictSame(await kept(), [2, 0, 2, 2])
  t.equal(
    (await rig.service.balanceOf(address))?.winc,
    String(2n * 1225600000000n),
    'both payments are credited',
  )
  t.equal((await rig.get(`/checkout/${paid.session}`)).status, 200)
})

t.test('a payment for a quote that is gone is sent back, once; one of others is not', async (t) => {
  const refunds: string[] = []
  const rig = await paymentRig(t, {
    cards: (ledger) => {
      const local = new LocalCards(ledger, () => '')
      return Object.assign(local, {
        read: async (body: Uint8Array) => JSON.parse(Buffer.from(body).toString()) as never,
        refund: async (payment: string) => {
          refunds.push(payment)
          return true as const
        },
      })
    },
  })
  const { json } = await rig.get(`/v1/top-up/payment-intent/${address}/usd/1000`)
  const { topUpQuoteId: quoteId } = (json as { topUpQuote: { topUpQuoteId: string } }).topUpQuote
  rig.setTime(startMs + 4 * hourMs)
  t.equal(await rig.service.forgetQuotes(), 1)
  const tell = (payment: string, quote: string) => {
    const event = { kind: 'paid', quoteId: quote, payment, amount: 1000, currency: 'usd' }
    return rig.post('/v1/stripe-webhook', JSON.stringify(event))
  }
  for (let times = 0; times < 3; times += 1) t.equal((await tell('pi_1', quoteId)).status, 200)
  t.equal((await tell('pi_2', crypto.randomUUID())).status, 200)
  t.strictSame(refunds, ['pi_1'])
  t.equal(await rig.service.balanceOf(address), undefined)
})
