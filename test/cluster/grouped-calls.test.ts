import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { systemClock, type Timer } from '../../src/actor/clock.js'
import { DatabaseCalls } from '../../src/cluster/database-calls.js'
import { HandClock } from '../http/hand-clock.js'

t.test('orders that come together are one call, each with its own outcome', async (t) => {
  const calls = new DatabaseCalls({ clock: systemClock, limitMs: 5000, restMs: 1000 })
  const groups: (readonly number[])[] = []
  const doubled = calls.grouped(async (orders: readonly number[]) => {
    groups.push(orders)
    return orders.map((order) => 2 * order)
  }, 3)
  t.strictSame(await Promise.all([1, 2, 3, 4, 5].map(doubled)), [2, 4, 6, 8, 10])
  t.strictSame(groups, [
    [1, 2, 3],
    [4, 5],
  ])
})

t.test('who waits for too long in the line is refused, and the database has not failed', async (t) => {
  const timers = new Set<() => void>()
  const after = (_: number, act: () => void): Timer => {
    timers.add(act)
    return { cancel: () => timers.delete(act) }
  }
  const failed: Error[] = []
  const clock = { ...systemClock, after }
  const calls = new DatabaseCalls({
    clock,
    limitMs: 60,
    restMs: 60_000,
    onFailed: (error) => failed.push(error),
  })
  let answer: () => void = () => undefined
  const one = calls.grouped(async ([order]: readonly number[]) => {
    await new Promise<void>((resolve) => {
      answer = resolve
    })
    return [order]
  }, 1)
  const outcomes = [one(0), one(1)]
  await turn()
  // The time of the second order is over, while the call of the first one runs.
  for (const late of [...timers].slice(1, 2)) late()
  t.equal(await outcomes[1], undefined)
  answer()
  t.equal(await outcomes[0], 0)
  t.strictSame(failed, [])
  t.notOk(calls.isPaused)
  await turn()
  answer()
})

t.test('a failure is the outcome of its group alone, and pauses all calls', async (t) => {
  let isAway = true
  const clock = new HandClock()
  const calls = new DatabaseCalls({ clock, limitMs: 5000, restMs: 20 })
  const one = calls.grouped(async (orders: readonly number[]) => {
    if (isAway) throw new Error('away')
    return orders
  }, 10)
  t.strictSame(await Promise.all([one(1), one(2)]), [undefined, undefined])
  t.ok(calls.isPaused)
  isAway = false
  t.equal(await one(3), undefined)
  clock.jump(20)
  t.notOk(calls.isPaused)
  t.equal(await one(4), 4)
})
