/** A clock that is hours ahead and set right soon must end nothing: no shared credits, no quotes, no owners of payments. */
import t from 'tap'
import { indexKinds } from '../../src/payment/books/approval-index.js'
import { makeServiceToken } from '../../src/payment/requests/service-token.js'
import { OwnedPayments } from '../../src/payment/usdc/owned-payments.js'
import { paymentRig, secret } from './rig.js'

const startMs = Date.UTC(2026, 0, 1)
const hourMs = 3600_000
const [giver = '', friend = ''] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64url'))

t.test('shared credits and quotes outlive a clock that was ahead', async (t) => {
  const rig = await paymentRig(t)
  const token = { authorization: `Bearer ${await makeServiceToken(secret, startMs)}` }
  const credit = {
    debit: 'source:t',
    credit: `wallet:${giver}`,
    amount: 1000n,
    reason: 'payment',
    reference: 'r',
  }
  await rig.ledger.commit({ transfers: [{ id: 'give', kind: 'posted', ...credit }] })
  const path = `/v1/account/approvals/create?payingAddress=${giver}&approvedAddress=${friend}&winc=100`
  for (const [id, seconds] of [
    ['short', 7200],
    ['long', 48 * 3600],
  ])
    await rig.get(`${path}&dataItemId=${id}&expiresInSeconds=${seconds}`, token)
  await rig.get(`/v1/top-up/payment-intent/${giver}/usd/1000`)
  const effective = async (): Promise<string | undefined> =>
    (await rig.service.balanceOf(friend))?.effectiveBalance
  const kept = async (): Promise<number[]> =>
    Promise.all(
      [indexKinds.due, 'card-quote'].map(async (kind) => (await rig.ledger.records(kind, '', '', 9)).length),
    )
  t.equal(await effective(), '200')
  rig.setClock(startMs + 25 * hourMs)
  t.equal(await effective(), '100', 'what is over by the clock cannot be spent')
  await rig.service.forgetQuotes()
  t.strictSame(await kept(), [2, 1], 'and all of it is kept')
  rig.setClock(startMs)
  t.equal(await effective(), '200', 'it is good again')
  rig.setTime(startMs + 25 * hourMs)
  t.equal(await effective(), '100')
  await rig.service.forgetQuotes()
  t.strictSame(await kept(), [1, 0], 'what is over by a time that has come ends')
  t.equal((await rig.service.balanceOf(giver))?.winc, '900')
})

t.test('the owner of a payment is forgotten by a confirmed time only', async (t) => {
  const { ledger } = await paymentRig(t)
  let confirmedMs = Number.NEGATIVE_INFINITY
  const owned = new OwnedPayments(ledger, () => confirmedMs)
  const payment = `84532:0x${'a1'.repeat(20)}:0x${'00'.repeat(32)}`
  await owned.own({ payment, owner: 'first', untilMs: 5000 })
  t.equal(await owned.forget(), 0)
  confirmedMs = 6000
  t.equal(await owned.forget(), 1)
})
