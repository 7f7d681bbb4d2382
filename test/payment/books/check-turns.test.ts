import t from 'tap'
import { systemClock } from '../../../src/actor/clock.js'
import { isRefusal } from '../../../src/format/refusal.js'
import { CheckTurns } from '../../../src/payment/books/check-turns.js'

t.test('a few checks at a time, and none for somebody who does not wait any more', async (t) => {
  const timers: { readonly act: () => void; isCancelled: boolean }[] = []
  const turns = new CheckTurns({
    after: (_, act) => {
      const timer = { act, isCancelled: false }
      timers.push(timer)
      return {
        cancel: () => {
          timer.isCancelled = true
        },
      }
    },
  })
  let begun = 0
  const ends: (() => void)[] = []
  const check = async (): Promise<number> => {
    begun += 1
    await new Promise<void>((resolve) => ends.push(resolve))
    return begun
  }
  const checks = Array.from({ length: 10 }, () => turns.run(check))
  await new Promise(setImmediate)
  t.equal(begun, 4)
  // The first ones have hung for too long: those behind them are answered without a question.
  for (const { act } of timers) act()
  const late = await Promise.all(checks.slice(4))
  t.ok(late.every((one) => isRefusal(one) && one.refused === 'late'))
  for (const end of ends.splice(0)) end()
  await Promise.all(checks.slice(0, 4))
  t.equal(begun, 4, 'they were never begun')
  const next = [turns.run(check), turns.run(check)]
  await new Promise(setImmediate)
  for (const end of ends.splice(0)) end()
  t.strictSame(await Promise.all(next), [6, 6])
})

t.test('a check that fails makes room; too many are refused at once', async (t) => {
  const turns = new CheckTurns(systemClock)
  for (let at = 0; at < 20; at += 1)
    await t.rejects(turns.run(async () => Promise.reject(new Error('the ledger is gone'))))
  const gate: { open?: () => void } = {}
  const opened = new Promise<void>((resolve) => {
    gate.open = resolve
  })
  const many = Array.from({ length: 600 }, () => turns.run(() => opened))
  const refused = await Promise.all(many.slice(516))
  t.ok(refused.every((one) => isRefusal(one) && one.refused === 'busy'))
  gate.open?.()
  t.notOk((await Promise.all(many.slice(0, 516))).some((one) => isRefusal(one)))
})

t.test('a flood of questions, or of one client, does not keep the checks of others waiting', async (t) => {
  const turns = new CheckTurns(systemClock)
  const ends: (() => void)[] = []
  const begun: string[] = []
  const check = (name: string) => async (): Promise<void> => {
    begun.push(name)
    await new Promise<void>((resolve) => ends.push(resolve))
  }
  const checks: Promise<unknown>[] = []
  for (let at = 0; at < 400; at += 1)
    checks.push(turns.run(check('question'), { asker: `198.51.100.${at & 255}`, isQuestion: true }))
  checks.push(turns.run(check('upload'), { asker: '203.0.113.5' }))
  await new Promise(setImmediate)
  t.ok(begun.includes('upload'), 'an upload is checked at once while strangers ask')
  for (let at = 0; at < 400; at += 1)
    checks.push(turns.run(check('flood'), { asker: `198.51.100.${at & 255}` }))
  checks.push(turns.run(check('newcomer'), { asker: '203.0.113.6' }))
  for (const end of ends.splice(0)) end()
  await new Promise(setImmediate)
  t.ok(begun.slice(0, 12).includes('newcomer'), 'and before those of who asks most')
  for (let at = 0; at < 900; at += 1) {
    for (const end of ends.splice(0)) end()
    await new Promise(setImmediate)
  }
  await Promise.all(checks)
})
