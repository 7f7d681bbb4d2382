import t from 'tap'
import { ProofBudget } from '../../src/ingest/proof-budget.js'
import { HandClock } from '../names/hand-clock.js'

const options = { share: 0.05, leastMsPerSecond: 10, burstMs: 100, requestsPerSecond: 10, requestMs: 0.5 }

t.test('proofs get a share of what everything else takes, and some besides', async (t) => {
  const clock = new HandClock()
  let processorMs = 0
  const budget = new ProofBudget(options, clock, () => processorMs)
  const use = (ms: number): void => {
    processorMs += ms
    budget.spend(ms)
  }
  t.equal(budget.waitMs, 0, 'a first burst')
  use(150)
  t.ok(budget.waitMs > 4900 && budget.waitMs < 5100, `${budget.waitMs} ms until the debt is paid`)
  processorMs += 2000
  t.equal(budget.waitMs, 0, 'a twentieth of 2 s of others pays it, too')
  use(1000)
  await clock.turn(50_000)
  t.ok(budget.waitMs > 0)
  await clock.turn(60_000)
  t.equal(budget.waitMs, 0)
  await clock.turn(3_600_000)
  use(100.5)
  t.ok(budget.waitMs > 0, 'what was not used in an hour is not used at once')
})

t.test('what proofs use gives them no share', async (t) => {
  const clock = new HandClock()
  let processorMs = 0
  const budget = new ProofBudget(options, clock, () => processorMs)
  let used = 0
  for (let second = 0; second < 1000; second += 1) {
    while (budget.waitMs === 0) {
      processorMs += 3
      used += 3
      budget.spend(3)
    }
    await clock.turn(1000)
  }
  t.ok(used <= 100 + 1000 * 10 + 3, `${used} ms of 10,100`)
  t.ok(used >= 9900, `${used} ms are used where there is enough to do`)
})

t.test('requests go in order, at their rate, with a second of them at once', async (t) => {
  const clock = new HandClock()
  let spent = 0
  let requests = 0
  const budget = new ProofBudget(
    options,
    clock,
    () => 0,
    (ms) => {
      spent += ms
    },
    () => {
      requests += 1
    },
  )
  const order: number[] = []
  for (let at = 0; at < 50; at += 1) void budget.request().then(() => order.push(at))
  await clock.turn(0)
  const first = order.length
  t.ok(first >= 10 && first <= 11, `${first} at once`)
  await clock.turn(1000)
  t.equal(order.length, first + 10)
  await clock.turn(2000)
  t.equal(order.length, first + 30)
  t.same(
    order,
    order.map((_, at) => at),
  )
  budget.close()
  await clock.turn(0)
  t.equal(order.length, 50, 'who waits at the end is let go')
  t.equal(clock.waiting, 0)
  t.equal(requests, 50)
  t.equal(spent, 25)
})
