import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import type { PaymentOrder } from '../../../src/admission/settlement-messages.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { SharedSettlements } from '../../../src/payment/usdc/shared-settlements.js'
import { X402Sales } from '../../../src/payment/usdc/x402-sales.js'
import { scratch } from '../../scratch.js'

t.test('a sale stays open while any service of the ledger has requested its settlement', async (t) => {
  const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
  t.teardown(() => ledger.close())
  const other = new SharedSettlements(ledger, systemClock.now, { self: 'other', leftMs: 1000 })
  const own = new SharedSettlements(ledger, systemClock.now, { self: 'own', leftMs: 1000 })
  let record: { state: string; doubtful?: true } | undefined
  const desk = { cashier: { find: () => record }, isRequested: (name: string) => own.isRequested(name) }
  const sales = new X402Sales({ ledger, clock: systemClock } as never, desk as never)
  const payment = '84532:0xab:0x01'
  const stateOf = async (): Promise<string> => {
    const outcome = await sales.outcome({ payment, itemId: 'item', bytes: 1 })
    if (isRefusal(outcome)) throw new Error(outcome.message)
    return outcome.paid ? 'paid' : outcome.state
  }
  t.equal(await stateOf(), 'unknown', 'nobody has requested it')
  await other.ask({ payment, units: '1', payer: '0xab', client: 'x' } as unknown as PaymentOrder)
  t.equal(await stateOf(), 'open', 'another service has')
  record = { state: 'failed', doubtful: true }
  t.equal(await stateOf(), 'open', 'a failure that is looked at again is no end')
  await other.clear(payment)
  t.equal(await stateOf(), 'failed')
  record = { state: 'asked' }
  t.equal(await stateOf(), 'open')
})
