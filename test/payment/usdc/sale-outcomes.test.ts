import t, { type Test } from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { signatureDigest } from '../../../src/admission/authorization.js'
import type { PaymentOrder } from '../../../src/admission/cashier-messages.js'
import { isUnreadable, readPayment } from '../../../src/admission/presented.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { EmbeddedLedger } from '../../../src/ledger/embedded.js'
import { availableOf } from '../../../src/ledger/ledger-account.js'
import { Approvals } from '../../../src/payment/books/approvals.js'
import { Reservations } from '../../../src/payment/books/reservations.js'
import { accountOf, Wallets } from '../../../src/payment/books/wallets.js'
import { FirstSales } from '../../../src/payment/usdc/first-sales.js'
import { SharedSettlements } from '../../../src/payment/usdc/shared-settlements.js'
import { usdcSource, usdcTransferId } from '../../../src/payment/usdc/usdc-transfers.js'
import { X402Sales } from '../../../src/payment/usdc/x402-sales.js'
import { Hours } from '../../admission/hours.js'
import { scratch } from '../../scratch.js'
import { countingDesk, paymentOf } from './counting-desk.js'

t.test('a sale stays open while any service of the ledger has requested its settlement', async (t) => {
  const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
  t.teardown(() => ledger.close())
  const other = new SharedSettlements(ledger, systemClock.now, { self: 'other', leftMs: 1000 })
  const own = new SharedSettlements(ledger, systemClock.now, { self: 'own', leftMs: 1000 })
  const beneficiary = 'item:all:item:1:::0xab:o:raw:digest'
  let record: { state: string; beneficiary: string; doubtful?: true } | undefined
  const desk = { cashier: { find: () => record }, requested: (name: string) => own.requested(name) }
  const sales = new X402Sales({ ledger, clock: systemClock } as never, desk as never)
  const payment = '84532:0xab:0x01'
  const stateOf = async (itemId = 'item', request?: string): Promise<string> => {
    const outcome = await sales.outcome({ payment, itemId, bytes: 1, ...(request && { request }) })
    if (isRefusal(outcome)) throw new Error(outcome.message)
    return outcome.paid ? 'paid' : outcome.state
  }
  t.equal(await stateOf(), 'unknown', 'nobody has requested it')
  await other.claim({ payment, units: '1', payer: '0xab', beneficiary } as unknown as PaymentOrder)
  t.equal(await stateOf(), 'open', 'another service has')
  t.equal(await stateOf('another'), 'other', 'for another item')
  t.equal(await stateOf('another', 'raw:digest'), 'open', 'that it may be for')
  t.equal(await stateOf('another', 'raw:another'), 'other')
  record = { state: 'failed', beneficiary, doubtful: true }
  t.equal(await stateOf(), 'open', 'a failure that is looked at again is no end')
  await other.clear(payment)
  t.equal(await stateOf(), 'failed')
  record = { state: 'asked', beneficiary }
  t.equal(await stateOf(), 'open')
  t.equal(await stateOf('another'), 'other')
})

const payer = `0x${'ab'.repeat(20)}`

/** Two upload services of one ledger buy items that they sign themselves. */
function sellers(t: Test) {
  let aheadMs = 0
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs }
  const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
  t.teardown(() => ledger.close())
  const wallets = new Wallets(ledger)
  const approvals = new Approvals(ledger, wallets, clock.now, clock.now)
  const reservations = new Reservations({ ledger, wallets, approvals })
  const priceOf = (): bigint => 100n
  const sales = countingDesk((desk) => {
    const quotes = {
      ofToken: async (_: string, units: bigint) => ({ winc: String(units), usdEquivalent: '' }),
    }
    const parts = { ledger, reservations, clock, quotes, prices: { ofItem: async () => 100n } }
    return new X402Sales(parts as never, desk)
  }, priceOf)
  const { order } = paymentOf(100n)
  const sale = { request: 'raw:digest', owner: 'owner' }
  return {
    ledger,
    reservations,
    wait: (ms: number): void => {
      aheadMs += ms
    },
    /** An item has the id that the service which signs it gives it. */
    buy: (service: string, itemId: string, notAccepted?: string) =>
      sales.pay({ ...order, service, itemId, bytes: 10, sale, ...(notAccepted && { notAccepted }) }),
    outcome: (sale: Parameters<X402Sales['outcome']>[0]) => sales.outcome(sale),
    async credits(): Promise<bigint> {
      const { wallet } = await wallets.resolveGuarded(payer)
      const account = await ledger.account(accountOf(wallet))
      return account === undefined ? 0n : availableOf(account)
    },
  }
}

t.test('what a service was paid for and never accepted becomes credits when it is gone', async (t) => {
  const { buy, wait, credits, ledger, reservations } = sellers(t)
  t.match(await buy('one', 'item1'), { paid: true })
  t.match(await buy('two', 'item2'), { status: 503, elsewhere: 'held' }, 'it may still accept it')
  wait(59_000)
  t.match(await buy('two', 'item2'), { status: 503 })
  wait(2000)
  t.equal(await credits(), 0n)
  t.match(await buy('two', 'item2'), { status: 503 }, 'nobody has looked whether it is accepted')
  t.match(await buy('two', 'item2', 'another'), { status: 503 })
  t.equal(await credits(), 0n)
  for (let times = 0; times < 2; times += 1) {
    t.match(await buy('two', `item${2 + times}`, 'item1'), { status: 402, elsewhere: undefined })
    t.equal(await credits(), 100n)
  }
  t.strictSame(await reservations.settle('item1'), { winc: '0' }, 'it comes too late')
  t.strictSame((await ledger.check()).faults, [])
})

t.test('what a service is accepting is kept for it for ten minutes', async (t) => {
  const { buy, outcome, wait, credits } = sellers(t)
  const paid = await buy('one', 'item1')
  if (isRefusal(paid) || !('paid' in paid)) throw new Error('it is not paid')
  const sale = { payment: paid.payment, itemId: 'item1', bytes: 10 }
  t.match(await outcome({ ...sale, service: 'one', isAccepting: true }), { paid: true, isKept: true })
  wait(30_000)
  t.match(await outcome({ ...sale, service: 'one' }), { paid: true }, 'a look shortens nothing')
  wait(570_000)
  t.match(await buy('two', 'item2'), { status: 503, elsewhere: 'held' })
  t.match(await outcome({ ...sale, service: 'two', isAccepting: true }), { state: 'open' })
  t.equal(await credits(), 0n)
  wait(61_000)
  t.match(await buy('two', 'item2', 'item1'), { status: 402 }, 'its disk is lost: nobody else refunds it')
  t.equal(await credits(), 100n)
  t.match(await outcome({ ...sale, service: 'one', isAccepting: true }), { state: 'other' })
})

t.test('what was accepted stays paid, however late it is requested again', async (t) => {
  const { buy, wait, credits, reservations } = sellers(t)
  t.match(await buy('one', 'item1'), { paid: true })
  wait(100_000)
  await reservations.settle('item1')
  t.match(await buy('two', 'item2'), { status: 409, elsewhere: 'spent', first: { itemId: 'item1' } })
  t.equal(await reservations.refundLeft('item1', systemClock.now() + 1e6), false)
  t.equal(await credits(), 0n)
})

t.test('a payment that another service has settled counts for nobody who brings it again', async (t) => {
  const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
  t.teardown(() => ledger.close())
  const clock = new Hours()
  let [isSigned, questions] = [true, 0]
  const transfer = (id: string): ReturnType<typeof ledger.transfer> => {
    questions += 1
    return ledger.transfer(id)
  }
  const { payment, order } = paymentOf(100n)
  const denial = { status: 402, body: Buffer.from('{}'), lines: '' }
  const desk = {
    most: 1000n,
    unitsOf: async () => 100n,
    requested: async () => undefined,
    x402: { look: async () => denial, isSignedByPayer: () => isSigned },
  }
  const sales = new X402Sales({ ledger: { transfer }, clock } as never, desk as never)
  const look = (bytes: number) => sales.look({ ...order, itemId: '', bytes })
  t.match(await look(10), { status: 402 }, 'nobody has')
  await ledger.commit({
    transfers: [
      {
        id: usdcTransferId(payment),
        kind: 'posted',
        debit: usdcSource,
        credit: 'x402:one',
        amount: 1n,
        reason: 'x402_payg',
        reference: '0x1',
        about: { itemId: 'item1', bytes: '10' },
      },
    ],
  })
  t.strictSame(await look(10), { good: true, units: '0' })
  t.match(await look(11), { status: 402 }, 'it has not paid for so many bytes')
  questions = 0
  isSigned = false
  for (let times = 0; times < 100; times += 1) t.match(await look(10), { status: 402 })
  t.equal(questions, 0, 'what nobody has signed costs the ledger nothing')
  isSigned = true
  const vain = Array.from({ length: 300 }, () =>
    sales.look({ ...paymentOf(100n).order, itemId: '', bytes: 10 }),
  )
  const honest = sales.look({ ...order, asker: '198.51.100.1', itemId: '', bytes: 10 })
  await clock.pass(1000)
  t.strictSame(await honest, { good: true, units: '0' }, 'clients have turns')
  t.ok(questions < 200, `${questions} questions`)
  await clock.pass(60_000)
  await Promise.all(vain)
  const lookFor = (asker: string, { order: sold } = paymentOf(100n)) =>
    sales.look({ ...sold, asker, itemId: '', bytes: 10 })
  for (let times = 0; times < 700; times += 1) {
    t.match(await lookFor('203.0.113.9'), { status: 402 })
    await clock.pass(60)
  }
  const beside = await lookFor('203.0.113.5', { payment, order })
  t.strictSame(beside, { good: true, units: '0' }, 'neighbours in its network are not its own doing')
  const crowd = Array.from({ length: 1000 }, () => lookFor('203.0.113.9', { payment, order }))
  await clock.pass(60_000)
  for (const answer of await Promise.all(crowd)) {
    const isGood = 'good' in answer
    t.match(answer, isGood ? { units: '0' } : { status: 503 }, 'no offer to a client that has paid')
  }
})

t.test(
  'of the wallet of a contract the same signature, or the identifier, stands for its payer',
  async (t) => {
    const ledger = new EmbeddedLedger({ path: scratch('ledger'), clock: systemClock })
    t.teardown(() => ledger.close())
    const { payment, order } = paymentOf(100n)
    const plain = readPayment(order.header, order.version)
    if (isUnreadable(plain)) throw new Error(plain.unreadable)
    const read = { ...plain, signature: `0x${'22'.repeat(162)}` }
    const forged = { ...read, signature: `0x${'33'.repeat(162)}` }
    const sale = { request: 'raw:digest', owner: 'owner' }
    const about = { itemId: 'item1', bytes: '10', signed: signatureDigest(read.signature), ...sale }
    const facts = { kind: 'posted', amount: 1n, reason: 'x402_payg', reference: '0x1' } as const
    const id = usdcTransferId(payment)
    await ledger.commit({ transfers: [{ id, debit: usdcSource, credit: 'x402:one', ...facts, about }] })
    const identifier = 'order-0123456789'
    const desk = {
      network: 'base-sepolia',
      requested: async () => undefined,
      identified: async (_: string, name: string) =>
        name === identifier ? { payment, itemId: 'item1', request: sale.request } : undefined,
      x402: { isSignedByPayer: () => false, receipt: () => '' },
    }
    const parts = { ledger, reservations: { refundLeft: async () => false }, clock: systemClock }
    const first = new FirstSales(parts, desk as never)
    const again = { ...order, itemId: 'item2', bytes: 10, sale }
    t.match(await first.answerTo(again, read), { elsewhere: 'spent', first: { itemId: 'item1' } })
    t.equal(await first.isSold(read, again), true)
    t.equal(await first.isSold(read, { ...again, bytes: 11 }), false)
    for (const other of [plain, forged]) {
      t.equal(await first.answerTo(again, other), undefined)
      t.equal(await first.isSold(other, again), false, 'its name is public')
    }
    const isOther = { ...again, sale: { ...sale, request: 'raw:other' } }
    t.equal(await first.answerTo(isOther, read), undefined, 'it is no offer of a receipt for other bytes')

    const nonce = `0x${'44'.repeat(32)}`
    const fresh = { ...forged, authorization: { ...read.authorization, nonce } }
    t.equal(await first.answerTo(again, fresh), undefined, 'another payment')
    const named = { ...fresh, identifier }
    t.match(await first.answerTo(again, named), { elsewhere: 'spent', first: { itemId: 'item1' } })
    t.match(await first.answerTo(isOther, named), { status: 409 }, 'the identifier of another request')
    t.equal(await first.answerTo(again, { ...named, signature: plain.signature }), undefined)
  },
)
