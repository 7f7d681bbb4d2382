/** Two payment services of one ledger: a payment-identifier is one sale's, while its payment may settle or has settled. */
import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import type { PaymentOrder } from '../../../src/admission/cashier-messages.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { SharedSettlements } from '../../../src/payment/usdc/shared-settlements.js'
import { usdcSource, usdcTransferId } from '../../../src/payment/usdc/usdc-transfers.js'
import { scratch } from '../../scratch.js'

const payer = '0xab'
const name = 'order-0123456789'
const request = 'raw:digest'

const orderOf = (at: number): PaymentOrder =>
  ({
    payment: `84532:${payer}:0x0${at}`,
    units: '1',
    payer,
    beneficiary: `item:all:item${at}:1:::${name}:owner:${request}`,
  }) as unknown as PaymentOrder

t.test('a payment-identifier names one sale', async (t) => {
  const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
  t.teardown(() => ledger.close())
  const [one, two] = ['one', 'two'].map(
    (self) => new SharedSettlements(ledger, systemClock.now, { self, leftMs: 1000 }),
  ) as [SharedSettlements, SharedSettlements]
  const [first, second, third] = [orderOf(1), orderOf(2), orderOf(3)]
  const saleOf = ({ payment }: PaymentOrder, itemId: string): object => ({ payment, itemId, request })
  const identified = (): Promise<unknown> => two.identified(payer, name)

  const claims = await Promise.allSettled([one.claim(first), two.claim(second)])
  t.strictSame(claims.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'at the same moment')
  const isFirst = claims[0].status === 'fulfilled'
  const [taken, late] = isFirst ? [first, second] : [second, first]
  t.strictSame(await identified(), saleOf(taken, isFirst ? 'item1' : 'item2'))
  t.equal(await one.requested(late.payment), undefined, 'nothing was requested for the other')
  const winner = isFirst ? one : two
  await winner.claim(taken)
  t.equal(await two.identified('0xcd', name), undefined, 'each payer has names of its own')

  await winner.clear(taken.payment)
  t.equal(await identified(), undefined, 'it moved nothing')
  t.strictSame(await ledger.records('x402-identifier', '', '', 10), [], 'nothing stays')

  await one.claim(third)
  await two.claim(third)
  await one.clear(third.payment)
  t.strictSame(await identified(), saleOf(third, 'item3'), 'another service still has it requested')
  await ledger.commit({
    transfers: [
      {
        id: usdcTransferId(third.payment),
        kind: 'posted',
        debit: usdcSource,
        credit: 'x402:third',
        amount: 1n,
        reason: 'x402_payg',
        reference: '0x1',
      },
    ],
  })
  await two.clear(third.payment)
  await t.rejects(one.claim(first), /payment-identifier/)
  t.strictSame(await identified(), saleOf(third, 'item3'), 'it is settled')
})
