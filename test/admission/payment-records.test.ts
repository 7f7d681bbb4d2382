/** Records of payments: the names of earlier versions, on disk and in the ledger that services share, and what is forgotten. */
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import type { PaymentOrder } from '../../src/admission/cashier-messages.js'
import { PaymentRecords, paymentRecordText, readPaymentRecord } from '../../src/admission/payment-records.js'
import { EmbeddedLedger } from '../../src/ledger/embedded.js'
import { SharedSettlements } from '../../src/payment/usdc/shared-settlements.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { scratch } from '../scratch.js'

const order: PaymentOrder = {
  payment: '84532:0xab:0x01',
  digest: '0x',
  signature: '0x',
  signed: 's',
  version: 2,
  payer: '0xab',
  units: '1000',
  tokens: 1,
  validBefore: 86_400,
  resource: '/',
  beneficiary: 'a wallet',
  asker: '203.0.113.1',
  message: '{}',
}

/** As version 1 writes it. */
const older =
  '{"state":"asked","payment":"84532:0xab:0x01","digest":"0x","signed":"s","version":2,"payer":"0xab","units":"1000",' +
  '"tokens":1,"validBefore":86400,"resource":"/","client":"a wallet","message":"{}","askedMs":7}'

t.test('a record of an earlier version is read, and written as it was', async (t) => {
  const read = readPaymentRecord(older)
  const { signature, asker, ...facts } = order
  t.strictSame(read, { ...facts, state: 'asked', askedMs: 7 })
  t.strictSame(JSON.parse(paymentRecordText(read)), JSON.parse(older))
})

t.test('the disk and the shared ledger have the names of earlier versions', async (t) => {
  const path = scratch('payment-records')
  const records = new PaymentRecords(path)
  records.recordRequest(order, 7)
  t.match(records.recent(1), [{ client: 'a wallet', state: 'asked' }], 'and the operator sees them')
  await records.close()
  const environment = openEnvironment(path)
  const stored = environment.table('payments').get(Buffer.from(order.payment))
  t.strictSame(JSON.parse(Buffer.from(stored ?? []).toString()), JSON.parse(older))
  await environment.close()

  const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
  t.teardown(() => ledger.close())
  const shared = new SharedSettlements(ledger, () => 7, { self: 'one', leftMs: 1000 })
  await shared.claim(order)
  const [row] = await ledger.records('x402-asked', '', '', 2)
  const { signed: _, ...rest } = JSON.parse(older) as Record<string, unknown>
  t.match(JSON.parse(row?.value ?? '{}'), rest)
  t.strictSame((await shared.requested(order.payment))?.beneficiary, 'a wallet')
})

t.test('what was settled and never credited is not forgotten', async (t) => {
  const records = new PaymentRecords(scratch('payment-records'))
  t.teardown(() => records.close())
  const [open, credited] = ['0x01', '0x02'].map((payment) => records.recordRequest({ ...order, payment }, 7))
  if (open === undefined || credited === undefined) throw new Error('the table is full')
  records.end(open, { state: 'settled', credited: false })
  records.end(credited, { state: 'settled', credited: true })
  t.equal(records.forget(10 * 365 * 86_400_000, 10), 1)
  t.match(records.unended(), [{ payment: '0x01' }])
})

t.test('what failed in doubt is listed until it is decided, page by page', async (t) => {
  const records = new PaymentRecords(scratch('payment-records'))
  t.teardown(() => records.close())
  for (const payment of ['0x01', '0x02', '0x03', '0x04']) {
    const record = records.recordRequest({ ...order, payment }, 7)
    if (record === undefined) throw new Error('the table is full')
    records.end(record, { state: 'failed', doubtful: payment !== '0x02' })
  }
  const names = (after: string, limit: number) => records.doubtful(after, limit).map(({ payment }) => payment)
  t.strictSame(names('', 2), ['0x01', '0x03'])
  t.strictSame(names('0x03', 2), ['0x04'])
  const [first, third] = records.doubtful('', 2)
  if (first === undefined || third === undefined) throw new Error('they are not listed')
  records.end(first, { state: 'settled', credited: true })
  records.end(third, { state: 'failed', doubtful: false })
  t.strictSame(names('', 9), ['0x04'])
  records.forget(10 * 365 * 86_400_000, 10)
  t.strictSame(names('', 9), [], 'what is forgotten is listed no more')
})
