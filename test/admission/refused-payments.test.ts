/** Payments that were refused and cost nothing: nobody's records make way for them. */
import t from 'tap'
import type { PaymentOrder } from '../../src/admission/cashier-messages.js'
import { type PaymentRecord, PaymentRecords } from '../../src/admission/payment-records.js'
import { scratch } from '../scratch.js'

const dayMs = 24 * 3600_000

function orderOf(payment: string): PaymentOrder {
  const facts = {
    digest: '0x',
    version: 1,
    payer: '0xa',
    units: '1',
    tokens: 1,
    resource: '/',
    beneficiary: 'one',
  } as const
  return {
    ...facts,
    payment,
    validBefore: dayMs / 1000,
    message: '{}',
    signature: '0x',
    signed: '',
    asker: 'one',
  }
}

t.test('refused payments of a day leave room for others', async (t) => {
  const records = new PaymentRecords(scratch('refused'), 20)
  t.teardown(() => records.close())
  const ask = (payment: string, now: number): PaymentRecord => {
    const record = records.recordRequest(orderOf(payment), now)
    if (record === undefined) throw new Error(`the table is full: ${payment}`)
    return record
  }
  const failed = { state: 'failed', reason: 'insufficient_funds' } as const
  records.end(ask('doubtful', 1), { ...failed, doubtful: true, endedMs: 1 })
  records.end(ask('settled', 2), { state: 'settled', credited: true, endedMs: 2 })
  for (let at = 0; at < 25; at += 1)
    records.end(ask(`refused ${at}`, 10 + at), { ...failed, endedMs: 10 + at })
  t.equal(records.find('refused 0'), undefined)
  t.match(records.find('refused 24'), failed, 'the last ones are known')
  for (const kept of ['doubtful', 'settled']) t.ok(records.find(kept), kept)
  t.equal(records.recent(1000).length, 4)
  t.ok(ask('of somebody else', 500))
})

t.test('a refused payment that another gateway has left is taken up as open', async (t) => {
  const records = new PaymentRecords(scratch('refused'), 20)
  t.teardown(() => records.close())
  const refuse = (payment: string, now: number): PaymentRecord => {
    const record = records.recordRequest(orderOf(payment), now)
    if (record === undefined) throw new Error(`the table is full: ${payment}`)
    records.end(record, { state: 'failed', endedMs: now })
    return record
  }
  records.adopt(refuse('left', 1))
  for (let at = 0; at < 10; at += 1) refuse(`refused ${at}`, 2 + at)
  t.match(records.find('left'), { state: 'asked' })
  t.same(
    records.unended().map(({ payment }) => payment),
    ['left'],
  )
})
