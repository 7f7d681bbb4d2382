/** Looks at payments that need never be made: the facilitator, which has a limit, is asked about few of them. */
import t from 'tap'
import {
  type CashierReply,
  cashierDefaults,
  type PaymentOrder,
} from '../../src/admission/cashier-messages.js'
import type { Verified } from '../../src/admission/facilitator.js'
import { Lanes } from '../../src/admission/lanes.js'
import { PaymentLooks } from '../../src/admission/payment-looks.js'
import { Hours } from './hours.js'

function orderOf(
  payer: string,
  nonce: string,
  asker: string,
  signature = `0x${'11'.repeat(65)}`,
): PaymentOrder {
  const digest = `${payer}-${nonce}`
  const facts = {
    version: 1,
    units: '1000',
    tokens: 1,
    validBefore: 1e10,
    resource: '',
    beneficiary: '',
    message: '{}',
  }
  return { ...facts, payment: `1:${payer}:${nonce}`, payer, digest, signature, asker } as PaymentOrder
}

function scene(verdictOf: (payer: string) => Verified = () => ({ verdict: 'valid' })) {
  const clock = new Hours()
  const lanes = new Lanes(cashierDefaults, clock)
  const looked: string[] = []
  const verify = async (_: string, payer: string): Promise<Verified> => {
    looked.push(payer)
    return verdictOf(payer)
  }
  const looks = new PaymentLooks({ verify }, lanes, clock)
  const replies: CashierReply[] = []
  const look = (order: PaymentOrder): void => {
    void looks.verdict(order).then((reply) => replies.push(reply))
  }
  const count = (state: CashierReply['state']): number => replies.filter((one) => one.state === state).length
  return { clock, lanes, looks, look, looked, replies, count }
}

t.test(
  'a payment that would settle is asked for once in some seconds, by whomever it is brought',
  async (t) => {
    const { clock, look, looked, count } = scene()
    for (let at = 0; at < 100; at += 1) look(orderOf('payer', 'one', `${11 + at}.1.1.1`))
    await clock.pass(5000)
    for (let at = 0; at < 100; at += 1) look(orderOf('payer', 'one', '20.1.1.1'))
    await clock.pass(0)
    t.equal(count('good'), 200)
    t.equal(looked.length, 1)
    await clock.pass(6000)
    look(orderOf('payer', 'one', '20.1.1.1'))
    await clock.pass(0)
    t.equal(looked.length, 2)
  },
)

t.test('a payer has some payments at a time that are looked at and not made', async (t) => {
  const { clock, look, looks, looked, count } = scene()
  for (let at = 0; at < 64; at += 1) look(orderOf('rich', String(at), `${11 + at}.1.1.1`))
  await clock.pass(0)
  for (let at = 64; at < 300; at += 1) look(orderOf('rich', String(at), `${11 + (at % 200)}.1.1.1`))
  await clock.pass(0)
  t.equal(looked.length, 64)
  t.equal(count('busy'), 236)
  look(orderOf('honest', '0', '210.1.1.1'))
  await clock.pass(100)
  t.equal(looked.at(-1), 'honest')
  for (let at = 0; at < 64; at += 1) looks.made(orderOf('rich', String(at), `${11 + at}.1.1.1`))
  look(orderOf('rich', 'next', '11.1.1.1'))
  await clock.pass(100)
  t.equal(looked.length, 66, 'those that are made do not count')
})

t.test('payments of many payers that cannot be made leave turns to others', async (t) => {
  const invalid = { verdict: 'invalid', reason: 'insufficient_funds' } as const
  const { clock, look, looked, count } = scene((payer) =>
    payer === 'honest' ? { verdict: 'valid' } : invalid,
  )
  for (let at = 0; at < 400; at += 1) look(orderOf(`p${at}`, '0', `${11 + (at % 100)}.1.1.1`))
  await clock.pass(1000)
  t.ok(looked.length <= 64 + 20, `${looked.length} questions`)
  look(orderOf('honest', '0', '210.1.1.1'))
  await clock.pass(100)
  t.equal(count('good'), 1)
})

t.test('who brings what a payer has paid elsewhere uses up nothing of the payer', async (t) => {
  let nonce = ''
  const used = { verdict: 'invalid', reason: 'nonce_already_used' } as const
  const { clock, look, count } = scene(() => (nonce === 'new' ? { verdict: 'valid' } : used))
  for (let at = 0; at < 200; at += 1) {
    look(orderOf('payer', String(at), `${11 + (at % 100)}.1.1.1`))
    await clock.pass(60)
  }
  nonce = 'new'
  look(orderOf('payer', nonce, '210.1.1.1'))
  await clock.pass(100)
  t.equal(count('good'), 1)
})

t.test('who brings payments of a contract uses up nothing of its own', async (t) => {
  const ofContract = `0x${'22'.repeat(200)}`
  const { clock, look, count } = scene(() => ({ verdict: 'invalid', reason: 'invalid_payload' }))
  for (let at = 0; at < 100; at += 1) {
    look(orderOf('contract', String(at), `${11 + at}.1.1.1`, ofContract))
    await clock.pass(1000)
  }
  t.equal(count('refused'), 100)
})

t.test('a facilitator that does not answer is nobody’s fault', async (t) => {
  const { clock, look, looked, count } = scene(() => ({ verdict: 'nothing', why: 'silence' }))
  for (let at = 0; at < 100; at += 1) {
    look(orderOf('payer', String(at), '20.1.1.1'))
    await clock.pass(100)
  }
  t.equal(count('down'), 100)
  t.equal(looked.length, 100)
})
