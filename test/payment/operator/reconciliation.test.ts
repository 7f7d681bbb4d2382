/** Each day's payments against the books of Stripe and of the chains: what differs is found, kept and shown. */
import type { Stripe } from 'stripe'
import t from 'tap'
import { StripeCards } from '../../../src/payment/cards/stripe-cards.js'
import type { ChainReader, SeenPayment } from '../../../src/payment/chains/seen-payment.js'
import { makeServiceToken } from '../../../src/payment/requests/service-token.js'
import { answeringServer } from '../chains/recorded-rpc.js'
import { type PaymentRig, paymentRig, secret } from '../rig.js'

const start = Date.UTC(2026, 0, 1)
const dayMs = 24 * 3600_000
const address = Buffer.alloc(32, 1).toString('base64url')
const own = Buffer.alloc(32, 9).toString('base64url')

/** A payment as Stripe has it. */
interface Intent {
  readonly id: string
  readonly quote: string
  readonly amount?: number
  readonly createdMs: number
  readonly refunded?: boolean
  readonly disputed?: boolean
}

/** Names and types are those that Stripe's library declares. */
type StripeIntent = Partial<Omit<Stripe.PaymentIntent, 'latest_charge'>> & {
  readonly id: string
  readonly latest_charge: Partial<Stripe.Charge>
}

const stripeIntentOf = (intent: Intent): StripeIntent => {
  const { id, quote, amount = 1000, createdMs, refunded = false, disputed = false } = intent
  const created = createdMs / 1000
  return {
    object: 'payment_intent',
    id,
    status: 'succeeded',
    amount_received: amount,
    currency: 'usd',
    created,
    metadata: quote === '' ? {} : { topUpQuoteId: quote },
    latest_charge: { id: `ch_${id}`, object: 'charge', created, refunded, disputed },
  }
}

/** Stripe's lists, in pages of two, youngest first. */
function listOf<Entry extends { readonly id: string }>(
  all: readonly Entry[],
  query: URLSearchParams,
): object {
  const after = query.get('starting_after')
  const from = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1
  const data = all.slice(from, from + 2)
  return { object: 'list', url: '/', has_more: from + 2 < all.length, data }
}

async function rigWith(t: Parameters<typeof answeringServer>[0], reader?: ChainReader) {
  const intents: Intent[] = []
  let isDown = false
  const refunds: string[] = []
  const url = await answeringServer(t, ({ path }) => {
    const { pathname, searchParams } = new URL(path, 'http://x')
    if (isDown) return 400
    if (pathname === '/v1/refunds') return { id: `re_${refunds.push(pathname)}` }
    if (pathname === '/v1/events') {
      const events = [...intents].reverse().map((one) => ({
        object: 'event',
        id: `evt_${one.id}`,
        type: 'payment_intent.succeeded',
        created: one.createdMs / 1000,
        data: { object: stripeIntentOf(one) },
      }))
      return listOf(events, searchParams)
    }
    if (pathname === '/v1/disputes') {
      const disputes = intents.flatMap(({ id, disputed }) => (disputed ? [id] : []))
      const wanted = disputes.filter((id) => id === searchParams.get('payment_intent'))
      return {
        object: 'list',
        data: wanted.map((id) => ({ id: `dp_${id}`, object: 'dispute', status: 'needs_response' })),
        has_more: false,
      }
    }
    if (pathname === '/v1/payment_intents') {
      const [gte, lt] = [searchParams.get('created[gte]'), searchParams.get('created[lt]')]
      const isIn = ({ createdMs }: Intent): boolean =>
        createdMs / 1000 >= Number(gte) && createdMs / 1000 < Number(lt)
      return listOf([...intents].reverse().filter(isIn).map(stripeIntentOf), searchParams)
    }
    const found = intents.find(({ id }) => pathname === `/v1/payment_intents/${id}`)
    if (pathname.startsWith('/v1/payment_intents/')) return found === undefined ? 404 : stripeIntentOf(found)
    return { id: 'cs_1', url: 'https://checkout.test/cs_1', client_secret: null }
  })
  const keys = { secretKey: 'sk_test_of_a_test', webhookSecret: 'whsec_of_a_test', apiUrl: url }
  const rig = await paymentRig(t, {
    cards: () => new StripeCards(keys),
    ...(reader === undefined ? {} : { readers: [reader], addresses: { arweave: own } }),
  })
  return {
    rig,
    intents,
    refunds,
    setDown: (down: boolean) => {
      isDown = down
    },
  }
}

async function quoteFor(rig: PaymentRig): Promise<string> {
  const { json } = await rig.get(`/v1/top-up/checkout-session/${address}/usd/1000`)
  return (json as { topUpQuote: { topUpQuoteId: string } }).topUpQuote.topUpQuoteId
}

const winc = async (rig: PaymentRig) => BigInt((await rig.service.balanceOf(address))?.winc ?? 0)

t.test(
  'what was missed is heard from all pages, and late news count as of when the card was charged',
  async (t) => {
    const { rig, intents, refunds } = await rigWith(t)
    for (let at = 0; at < 7; at += 1) {
      const quote = await quoteFor(rig)
      intents.push({ id: `pi_${at}`, quote, createdMs: start + 60_000 * (at + 1) })
    }
    const late = await quoteFor(rig)
    intents.push({ id: 'pi_late', quote: late, createdMs: start + 3600_000 })
    rig.setTime(start + 2 * dayMs)
    await rig.service.catchUp(start)
    t.equal(await winc(rig), 7n * 1_225_600_000_000n, 'each was charged in time, and is heard two days later')
    t.equal(refunds.length, 1, 'the one that was charged too late is sent back')
    await rig.service.catchUp(start)
    t.equal(await winc(rig), 7n * 1_225_600_000_000n, 'once')
    t.strictSame((await rig.ledger.check()).faults, [])
  },
)

t.test('differences from the books of Stripe', async (t) => {
  const { rig, intents, setDown } = await rigWith(t)
  const at = (id: string, quote: string, more: Partial<Intent> = {}): void => {
    intents.push({ id, quote, createdMs: start + 60_000, ...more })
  }
  const quotes = await Promise.all(Array.from({ length: 6 }, () => quoteFor(rig)))
  const [right = '', gone = '', refunded = '', disputed = '', unheard = '', twice = ''] = quotes
  for (const [id, quote] of [
    ['a', right],
    ['gone', gone],
    ['b', refunded],
    ['c', disputed],
    ['d', twice],
  ])
    at(id ?? '', quote ?? '')
  await rig.service.catchUp(start)
  const before = await winc(rig)
  t.equal(before, 5n * 1_225_600_000_000n)
  intents.length = 0
  at('a', right)
  at('b', refunded, { refunded: true })
  at('c', disputed, { disputed: true })
  at('d', twice)
  at('e', twice)
  at('f', unheard)
  at('g', '00000000-0000-0000-0000-000000000000')
  at('h', '')
  t.equal(await rig.service.reconciler.work(), 6, 'days before, and not this one: it is not over')
  rig.setTime(start + dayMs + 3 * 3600_000)
  setDown(true)
  t.equal(await rig.service.reconciler.work(), 2)
  const [silent] = await rig.service.reconciler.list(10)
  t.match(silent, { day: '2026-01-01', unchecked: 1, differences: [] })
  setDown(false)
  t.ok((await rig.service.reconciler.work()) > 0, 'again, until it was answered')
  t.equal(await rig.service.reconciler.work(), 0, 'and not again')
  const token = { authorization: `Bearer ${await makeServiceToken(secret, start + dayMs + 3 * 3600_000)}` }
  t.equal((await rig.get('/v1/reconciliations')).status, 401)
  const { json } = await rig.get('/v1/reconciliations', token)
  const [row] = (json as { reconciliations: { differences: { id: string; why: string }[]; cards: number }[] })
    .reconciliations
  t.equal(row?.cards, 8)
  const whys = Object.fromEntries((row?.differences ?? []).map(({ id, why }) => [id, why]))
  t.match(whys, {
    b: 'sent back there, and credited here',
    e: /^paid twice/,
    g: 'paid there, and no quote here',
    gone: 'credited here, and not known there',
  })
  t.equal(Object.keys(whys).length, 4, JSON.stringify(whys))
  t.equal(await winc(rig), before, 'what was not heard was credited, what was disputed was taken back')
  t.equal((await rig.post('/v1/reconciliations/x', '', token)).status, 400)
  t.equal((await rig.post('/v1/reconciliations/2026-01-01', '', token)).status, 200)
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test('differences from the chains', async (t) => {
  const shown = new Map<string, SeenPayment | 'absent' | { wrong: string }>()
  const reader: ChainReader = {
    chain: 'arweave',
    tokens: ['arweave'],
    find: async (_, id) => shown.get(id) ?? 'absent',
    close: () => Promise.resolve(),
  }
  const { rig } = await rigWith(t, reader)
  const facts = {
    sender: address,
    recipient: own,
    quantity: 1_000_000n,
    isFinal: true,
    isBeyondWatching: true,
  }
  for (const id of ['right', 'gone', 'less', 'failed', 'elsewhere']) {
    shown.set(id, { ...facts, id })
    t.equal((await rig.post('/v1/account/balance/arweave', JSON.stringify({ tx_id: id }))).status, 200)
  }
  shown.set('gone', 'absent')
  shown.set('less', { ...facts, id: 'less', quantity: 1n })
  shown.set('failed', { wrong: 'The transaction has failed on its chain' })
  shown.set('elsewhere', { ...facts, id: 'elsewhere', recipient: address })
  rig.setTime(start + dayMs)
  const row = await rig.service.reconciler.compare('2026-01-01')
  t.match(row, { chains: 5, cards: 0, unchecked: 0 })
  t.strictSame(
    row.differences.map(({ id, why }) => `${id}: ${why}`),
    [
      'arweave:elsewhere: credited here, and paid to another address',
      'arweave:failed: credited here, and its chain says: The transaction has failed on its chain',
      'arweave:gone: credited here, and its chain does not know it',
      'arweave:less: 1 on its chain, 1000000 here',
    ],
  )
})
