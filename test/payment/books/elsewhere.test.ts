/** What is held back or spent for one upload service has paid no other one. */
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import type { Orderer } from '../../../src/payment/books/reservation.js'
import { Reservations } from '../../../src/payment/books/reservations.js'
import { accountOf, Wallets } from '../../../src/payment/books/wallets.js'
import { X402Sales } from '../../../src/payment/usdc/x402-sales.js'
import { scratch } from '../../scratch.js'
import { type Brought, countingDesk, paymentOf } from '../usdc/counting-desk.js'

const payer = Buffer.alloc(32, 1).toString('base64url')

async function books(t: Test) {
  const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
  t.teardown(() => ledger.close())
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, systemClock.now, systemClock.now)
  const reservations = new Reservations({ ledger, wallets, approvals })
  await ledger.commit({
    transfers: [
      {
        id: 'in',
        kind: 'posted',
        debit: 'world',
        credit: accountOf(payer),
        amount: 10_000n,
        reason: 'x',
        reference: 'x',
      },
    ],
  })
  /** What it is answered with: the outcome in one word. */
  const hold = async (itemId: string, orderer: Orderer, bytes = 100): Promise<string> => {
    const plan = async () => ({ parts: [{ account: accountOf(payer), winc: '10' }], records: [] })
    const order = { itemId, bytes, purpose: 'upload', records: undefined, ...orderer } as const
    const held = await reservations.reserve({
      ...order,
      winc: async () => 10n,
      wallet: async () => payer,
      plan,
    })
    if (isRefusal(held)) return held.refused
    return held.paid ? 'paid' : (held.elsewhere ?? 'unpaid')
  }
  let nowMs = 1_000_000
  const sales: X402Sales = countingDesk(
    (desk) => {
      const quotes = {
        ofToken: async (_: string, units: bigint) => ({ winc: String(units), usdEquivalent: '' }),
      }
      const parts = { ledger, reservations, prices: { ofItem: async () => 10n }, quotes }
      const clock = { ...systemClock, now: () => nowMs }
      return new X402Sales({ ...parts, clock, owned: { own: async () => ({ owner: '' }) } } as never, desk)
    },
    () => 10n,
  )
  /** A payment for the item alone, brought to a service: the outcome in one word, and whether anything came in now. */
  const pay = async (itemId: string, service: string, { order, payment }: Brought): Promise<string> => {
    const known = await ledger.transfer(`x402:${payment}`)
    const paid = await sales.pay({ ...order, itemId, bytes: 100, service })
    if (isRefusal(paid)) return paid.refused
    const isNew = known === undefined && (await ledger.transfer(`x402:${payment}`)) !== undefined
    return `${'paid' in paid ? 'paid' : (paid.elsewhere ?? paid.status)}${isNew ? ', settled' : ''}`
  }
  const became = async (itemId: string, service: string, { payment }: Brought): Promise<string> => {
    const outcome = await sales.outcome({ payment, itemId, bytes: 100, service })
    if (isRefusal(outcome)) return outcome.refused
    return outcome.paid ? 'paid' : outcome.state
  }
  const ahead = async (itemId: string, { order }: Brought): Promise<void> => {
    await sales.settle({ ...order, itemId, bytes: 100 })
  }
  const later = (ms: number): void => {
    nowMs += ms
  }
  return { reservations, hold, pay, became, ahead, later }
}

const by = (service: string, atMs = 0): Orderer => ({ service, ticket: `ticket of ${service}`, atMs })

t.test('what one service has spent is paid for that service alone', async (t) => {
  const { reservations, hold } = await books(t)
  t.equal(await hold('item', by('one')), 'paid')
  await reservations.settle('item')
  t.equal(await hold('item', by('two')), 'spent')
  t.equal(await hold('item', by('one')), 'paid', 'it asks again, with an empty disk')
  t.equal(await hold('item', { ticket: 'of an older release' }), 'paid')
  await reservations.refund('item')
  t.equal(await hold('item', by('two')), 'paid', 'the first one has given it up')
})

t.test('two services in the same moment: one has it', async (t) => {
  const { reservations, hold } = await books(t)
  const names = ['one', 'two', 'three', 'four']
  const outcomes = await Promise.all(names.map((name) => hold('item', by(name))))
  t.strictSame(outcomes.sort(), ['held', 'held', 'held', 'paid'])
  await reservations.withdraw('item', 'ticket of one')
  t.equal(await hold('item', by('two')), 'paid', 'who could not accept it gives it back')
})

t.test('a service that is gone keeps nobody from an item', async (t) => {
  const { reservations, hold } = await books(t)
  t.equal(await hold('small', by('one')), 'paid')
  t.equal(await hold('small', by('two', 59_000)), 'held')
  t.equal(await hold('small', by('two', 61_000)), 'paid')
  t.equal(await hold('small', by('one', 62_000)), 'held', 'it has come too late')
  await reservations.settle('small')
  t.equal(await hold('small', by('one', 200_000)), 'spent')
  t.equal(await hold('large', by('one'), 1e10), 'paid')
  t.equal(await hold('large', by('two', 600_000), 1e10), 'held', 'a large item takes longer')
  t.equal(await hold('large', by('two', 1_100_000), 1e10), 'paid')
})

t.test('without names it is as it was', async (t) => {
  const { hold } = await books(t)
  t.equal(await hold('item', { ticket: 'one' }), 'paid')
  t.equal(await hold('item', { ticket: 'two' }), 'paid')
  t.equal(await hold('item', by('three')), 'paid')
})

t.test('one payment in USDC pays for an item at one service', async (t) => {
  const { reservations, hold, pay, became } = await books(t)
  const payment = paymentOf(10n)
  const outcomes = await Promise.all(['one', 'two', 'three'].map((name) => pay('item', name, payment)))
  t.equal(outcomes.filter((outcome) => outcome.startsWith('paid')).length, 1, String(outcomes))
  const names = ['one', 'two', 'three']
  const mine = names[outcomes.findIndex((outcome) => outcome.startsWith('paid'))] as string
  const other = names.find((name) => name !== mine) as string
  t.equal(await pay('item', other, payment), 'held')
  t.equal(await became('item', other, payment), 'open')
  t.equal(await hold('item', by(other, 1_000_000)), 'held', 'who brings no payment neither')
  t.equal(await pay('item', mine, payment), 'paid', 'its client asks again')
  await reservations.settle('item')
  t.equal(await pay('item', other, payment), 'spent')
  t.equal(await pay('item', other, paymentOf(10n)), 'spent', 'nothing of another payment is settled')
  t.equal(await became('item', other, payment), 'other')
  t.equal(await hold('item', by(other)), 'spent')
  t.equal(await pay('item', mine, payment), 'paid')
})

t.test('nothing is settled for an item that credits have paid for at another service', async (t) => {
  const { reservations, hold, pay } = await books(t)
  t.equal(await hold('item', by('one', 1_000_000)), 'paid')
  t.equal(await pay('item', 'two', paymentOf(10n)), 'held')
  await reservations.settle('item')
  t.equal(await pay('item', 'two', paymentOf(10n)), 'spent')
})

t.test('what was paid ahead is for the service that has the item first', async (t) => {
  const { hold, pay, ahead, reservations } = await books(t)
  const payment = paymentOf(10n)
  await ahead('item', payment)
  const outcomes = await Promise.all(['one', 'two'].map((name) => hold('item', by(name, 1_000_000))))
  t.strictSame(outcomes.sort(), ['held', 'paid'])
  await Promise.all(['one', 'two'].map((name) => reservations.withdraw('item', `ticket of ${name}`)))
  t.equal(
    await hold('item', { ...by('two', 1_000_000), ticket: 'again' }),
    'paid',
    'it could not be accepted there',
  )
  t.equal(await pay('item', 'one', payment), 'held')
})

t.test('a service that has a payment and is gone keeps nobody from its item', async (t) => {
  const { pay, became, later } = await books(t)
  const payment = paymentOf(10n)
  t.equal(await pay('item', 'one', payment), 'paid, settled')
  later(50_000)
  t.equal(await became('item', 'one', payment), 'paid', 'one that waits for its disk has it for longer')
  later(50_000)
  t.equal(await pay('item', 'two', payment), 'held')
  later(11_000)
  t.equal(await pay('item', 'two', payment), 'paid')
  t.equal(await became('item', 'one', payment), 'open')
})
