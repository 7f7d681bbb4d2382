import t from 'tap'
import { type Clock, systemClock } from '../../../src/actor/clock.js'
import { HeadWatch } from '../../../src/source/upstream/head-watch.js'

t.test('each wait ends at its own time, with one timer for all', async (t) => {
  let nowMs = 0
  let timers = 0
  let due: { readonly atMs: number; readonly act: () => void } | undefined
  const clock: Clock = {
    ...systemClock,
    monotonic: () => nowMs,
    after(ms, act) {
      timers += 1
      due = { atMs: nowMs + ms, act }
      return { cancel: () => undefined }
    },
  }
  const pass = (untilMs: number): void => {
    while (due !== undefined && due.atMs <= untilMs) {
      const { atMs, act } = due
      nowMs = atMs
      due = undefined
      act()
    }
    nowMs = untilMs
  }
  const watch = new HeadWatch(1000, clock)
  const ended: string[] = []
  const waits = new Map<string, () => void>()
  const add = (name: string): void => {
    waits.set(
      name,
      watch.watch(() => ended.push(`${name} ${nowMs}`)),
    )
  }
  for (let at = 0; at < 100; at += 1) {
    add(`quick ${at}`)
    waits.get(`quick ${at}`)?.()
  }
  t.equal(timers, 1)
  pass(100)
  add('a')
  pass(300)
  add('b')
  add('c')
  pass(400)
  waits.get('b')?.()
  pass(1099)
  t.same(ended, [])
  pass(1299)
  t.same(ended, ['a 1100'])
  pass(5000)
  t.same(ended, ['a 1100', 'c 1300'])
  t.ok(timers <= 4, `${timers} timers`)
  waits.get('c')?.()
  add('d')
  pass(6000)
  t.same(ended.slice(2), ['d 6000'])
})
