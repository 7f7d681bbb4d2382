/** A card that pays for a name of somebody else, and is disputed: the wallet that its owner named loses nothing. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Refusal, refuse } from '../../../src/format/refusal.js'
import type { NoSale } from '../../../src/names/lease.js'
import type { CardTaken } from '../../../src/payment/cards/card-provider.js'
import { LocalCards } from '../../../src/payment/cards/local-cards.js'
import { LocalNameRegistry, type NameRegistry } from '../../../src/payment/names/name-registry.js'
import type { Reconciliation } from '../../../src/payment/operator/reconciliation.js'
import { scratch } from '../../scratch.js'
import { type PaymentRig, paymentRig } from '../rig.js'

const victim = Buffer.alloc(32, 1).toString('base64url')

interface DisputeRig {
  readonly rig: PaymentRig
  readonly says: (Refusal | NoSale)[]
  winc(): Promise<bigint>
  /** Pays by card for a name, or for credits. Resolves with the payment. */
  buy(path: string): Promise<string>
  dispute(payment: string): Promise<number>
  /** Compares today's payments with the books of the provider, which has all that were paid as disputed. */
  compare(): Promise<Reconciliation>
}

async function disputeRig(t: Test): Promise<DisputeRig> {
  const folder = scratch('names')
  const paths = { list: join(folder, 'names'), leases: join(folder, 'leases') }
  const says: (Refusal | NoSale)[] = []
  const paid = new Map<string, CardTaken>()
  const registry = new LocalNameRegistry(paths, () => Date.UTC(2026, 0, 1))
  const names: NameRegistry = Object.assign(registry, {
    sell: async (...args: Parameters<NameRegistry['sell']>) =>
      says.shift() ?? LocalNameRegistry.prototype.sell.apply(registry, args),
  })
  const rig = await paymentRig(t, {
    names,
    cards: (ledger) =>
      Object.assign(new LocalCards(ledger, () => ''), {
        read: async (body: Uint8Array) => JSON.parse(Buffer.from(body).toString()) as never,
        find: async (payment: string): Promise<CardTaken | undefined> => paid.get(payment),
      }),
  })
  return {
    rig,
    says,
    winc: async () => BigInt((await rig.service.balanceOf(victim))?.winc ?? 0),
    buy: async (path) => {
      const { json, text } = await rig.get(path)
      const { topUpQuote, purchaseQuote, adjustments: _ } = json as Record<string, Record<string, unknown>>
      const quotes = await rig.ledger.records('card-quote', '', '', 100)
      const facts = quotes.map(({ value }) => JSON.parse(value) as Record<string, unknown>)
      const quote = facts.find(({ state }) => state === 'open')
      if (quote === undefined || (topUpQuote ?? purchaseQuote) === undefined) throw new Error(text)
      const { id: quoteId, amount, currency } = quote
      const payment = `of-${String(quoteId)}`
      const event = { kind: 'paid', quoteId, payment, amount, currency }
      const charge = { quoteId: String(quoteId), amount: Number(amount), currency: String(currency) }
      paid.set(payment, { ...charge, payment, paidMs: Date.now(), isRefunded: false, isDisputed: true })
      t.equal((await rig.post('/v1/stripe-webhook', JSON.stringify(event))).status, 200)
      return payment
    },
    compare: async () => {
      const [day] = await rig.ledger.records('card-day', '', '', 1)
      return rig.service.reconciler.compare(day?.key.slice(0, 10) ?? '')
    },
    dispute: async (payment) => {
      const event = { kind: 'disputed', quoteId: '', payment, reason: 'fraudulent' }
      return (await rig.post('/v1/stripe-webhook', JSON.stringify(event))).status
    },
  }
}

const nameFor = (name: string): string =>
  `/v1/arns/quote/payment-intent/${victim}/usd/buy-name/${name}?type=lease&years=1`

t.test('what a name has cost is not taken from the wallet that a stranger named', async (t) => {
  const { rig, winc, buy, dispute } = await disputeRig(t)
  await buy(`/v1/top-up/payment-intent/${victim}/usd/100000`)
  const before = await winc()
  t.ok(before > 0n)
  const payment = await buy(nameFor('unwanted'))
  for (const turn of [1, 2]) t.equal(await dispute(payment), 200, `turn ${turn}`)
  t.equal(await winc(), before)
  const own = await buy(`/v1/top-up/payment-intent/${victim}/usd/1000`)
  t.equal(await dispute(own), 200)
  t.equal(await winc(), before, 'a top-up is taken back whole')
  t.strictSame((await rig.ledger.check()).faults, [])
})

t.test(
  'the credits of a purchase that failed are taken back; one that is open makes the dispute wait',
  async (t) => {
    const { rig, says, winc, buy, dispute } = await disputeRig(t)
    says.push({ noSale: 'Somebody was faster' })
    const failed = await buy(nameFor('gone'))
    t.ok((await winc()) > 0n, 'they became credits')
    t.equal(await dispute(failed), 200)
    t.equal(await winc(), 0n)
    const away = refuse('upstream', 'upstream', 'the registry is away')
    says.push(away, away)
    const open = await buy(nameFor('waits'))
    t.ok((await dispute(open)) >= 500, 'the provider repeats it')
    t.equal(await dispute(open), 200)
    t.equal(await winc(), 0n)
    t.strictSame((await rig.ledger.check()).faults, [])
  },
)

t.test('a dispute that still waits when its day is compared is found, and carried out later', async (t) => {
  const { rig, says, winc, buy, compare } = await disputeRig(t)
  const away = refuse('upstream', 'upstream', 'the registry is away')
  says.push(away, away)
  const payment = await buy(nameFor('waits'))
  const why = 'disputed there, and credited here'
  t.match(await compare(), { unchecked: 1, differences: [{ what: 'card', id: payment, why }] })
  t.match(await compare(), { unchecked: 0, differences: [] })
  t.equal(await winc(), 0n)
  t.strictSame((await rig.ledger.check()).faults, [])
})
