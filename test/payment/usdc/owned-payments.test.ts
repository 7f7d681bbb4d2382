/** Who takes a payment is decided once, whatever keeps the ledger, however many ask at once, and after a restart. */
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import type { MoneyLedger } from '../../../src/ledger/ledger-port.js'
import { PostgresLedger } from '../../../src/ledger/postgres.js'
import { OwnedPayments } from '../../../src/payment/usdc/owned-payments.js'
import { postgresFolder, startPostgres } from '../../engines/postgres-server.js'

const paymentOf = (at: number): string => `84532:0x${'a1'.repeat(20)}:0x${at.toString(16).padStart(64, '0')}`

/** `two`: at the same ledger. */
async function decides(t: Tap, two: readonly [MoneyLedger, MoneyLedger]): Promise<void> {
  let nowMs = 1000
  const desks = two.map((ledger) => new OwnedPayments(ledger, () => nowMs))
  const names = Array.from({ length: 12 }, (_, at) => `seller-${at}`)
  const decided = new Map<string, string>()
  for (let at = 0; at < 20; at += 1) {
    const payment = paymentOf(at)
    const decisions = await Promise.all(
      names.map((owner, turn) => desks[turn % 2]?.own({ payment, owner, untilMs: at < 10 ? 5000 : 9000 })),
    )
    const owners = new Set(
      decisions.map((one) => (one === undefined || isRefusal(one) ? 'nobody' : one.owner)),
    )
    t.equal(owners.size, 1, 'all were told of one owner')
    const [owner = ''] = owners
    t.ok(names.includes(owner))
    decided.set(payment, owner)
  }
  for (const [payment, owner] of decided)
    for (const desk of desks)
      t.same(await desk.own({ payment, owner: 'late', untilMs: 9000 }), { owner }, 'for good')
  nowMs = 6000
  t.equal(await desks[0]?.forget(), 10, 'what cannot be settled any more is forgotten')
  t.equal(await desks[1]?.forget(), 0)
  t.same(await desks[0]?.own({ payment: paymentOf(15), owner: 'late', untilMs: 9000 }), {
    owner: decided.get(paymentOf(15)),
  })
  t.ok(isRefusal(await desks[0]?.own({ payment: 'rubbish', owner: 'x', untilMs: 1 })))
  t.ok(isRefusal(await desks[0]?.own({ payment: paymentOf(1), owner: '', untilMs: 1 })))
}

type Tap = Pick<typeof t, 'equal' | 'ok' | 'same'>

t.test('embedded', async (t) => {
  const path = join(t.testdir(), 'ledger')
  const ledger = new EmbeddedLedger({ path, clock: systemClock })
  await decides(t, [ledger, ledger])
  const claim = { payment: paymentOf(99), owner: 'first', untilMs: 9000 }
  t.same(await new OwnedPayments(ledger, () => 0).own(claim), { owner: 'first' })
  await ledger.close()
  const again = new EmbeddedLedger({ path, clock: systemClock })
  t.same(await new OwnedPayments(again, () => 0).own({ ...claim, owner: 'second' }), { owner: 'first' })
  await again.close()
})

const skip = postgresFolder === undefined ? 'no PostgreSQL here' : false

t.test('PostgreSQL, two services', { skip }, async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const url = await server.database('owners')
  const one = await PostgresLedger.open({ url, clock: systemClock })
  const two = await PostgresLedger.open({ url, clock: systemClock })
  await decides(t, [one, two])
  await Promise.all([one.close(), two.close()])
})
