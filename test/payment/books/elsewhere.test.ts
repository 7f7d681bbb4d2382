/** What is held back or spent for one upload service has paid no other one. */
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import type { Orderer } from '../../../src/payment/books/reservation.js'
import { Reservations } from '../../../src/payment/books/reservations.js'
import { accountOf, Wallets } from '../../../src/payment/books/wallets.js'
import { scratch } from '../../scratch.js'

const payer = Buffer.alloc(32, 1).toString('base64url')

async function books(t: Test) {
  const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
  t.teardown(() => ledger.close())
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, systemClock.now)
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
    const held = await reservations.hold({ ...order, winc: async () => 10n, wallet: async () => payer, plan })
    if (isRefusal(held)) return held.refused
    return held.paid ? 'paid' : (held.elsewhere ?? 'unpaid')
  }
  return { reservations, hold }
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
