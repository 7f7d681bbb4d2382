import t from 'tap'
import { type Clock, systemClock, type Timer } from '../../src/actor/clock.js'
import { Deadlines } from '../../src/actor/deadlines.js'

/** A clock that is moved by hand, and counts the timers that were set. */
function handClock(): { clock: Clock; pass(untilMs: number): void; timers(): number } {
  let nowMs = 0
  let timers = 0
  const waiting = new Set<{ readonly atMs: number; readonly act: () => void }>()
  const clock: Clock = {
    ...systemClock,
    monotonic: () => nowMs,
    after(ms, act) {
      timers += 1
      const one = { atMs: nowMs + ms, act }
      waiting.add(one)
      return { cancel: () => void waiting.delete(one) }
    },
  }
  const pass = (untilMs: number): void => {
    for (;;) {
      const [next] = [...waiting].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)
      if (next === undefined) break
      waiting.delete(next)
      nowMs = next.atMs
      next.act()
    }
    nowMs = untilMs
  }
  return { clock, pass, timers: () => timers }
}

t.test('each deadline comes at its own time, with few timers for all', async (t) => {
  const { clock, pass, timers } = handClock()
  const deadlines = new Deadlines(clock)
  const ended: string[] = []
  const waits = new Map<string, Timer>()
  const add = (name: string, ms = 1000): void => {
    waits.set(
      name,
      deadlines.after(ms, () => ended.push(`${name} ${clock.monotonic()}`)),
    )
  }
  for (let at = 0; at < 100; at += 1) {
    add(`quick ${at}`)
    waits.get(`quick ${at}`)?.cancel()
  }
  t.equal(timers(), 1)
  pass(100)
  add('a')
  pass(300)
  add('b')
  add('c')
  pass(400)
  waits.get('b')?.cancel()
  pass(1099)
  t.same(ended, [])
  pass(1299)
  t.same(ended, ['a 1100'])
  pass(5000)
  t.same(ended, ['a 1100', 'c 1300'])
  t.ok(timers() <= 4, `${timers()} timers`)
  waits.get('c')?.cancel()
  add('d')
  pass(6000)
  t.same(ended.slice(2), ['d 6000'])
})

t.test('a shorter one that was set later comes first', async (t) => {
  const { clock, pass } = handClock()
  const deadlines = new Deadlines(clock)
  const ended: string[] = []
  deadlines.after(1000, () => ended.push('long'))
  deadlines.after(10, () => ended.push('short'))
  pass(10)
  t.same(ended, ['short'])
  pass(1000)
  t.same(ended, ['short', 'long'])
})

t.test(
  'one that another of the same moment cancels does not come, and one that is set then does',
  async (t) => {
    const { clock, pass } = handClock()
    const deadlines = new Deadlines(clock)
    const ended: string[] = []
    deadlines.after(10, () => {
      ended.push('first')
      second.cancel()
      deadlines.after(5, () => ended.push('third'))
    })
    const second = deadlines.after(10, () => ended.push('second'))
    deadlines.after(1000, () => ended.push('last'))
    pass(15)
    t.same(ended, ['first', 'third'])
    pass(1000)
    t.same(ended, ['first', 'third', 'last'])
  },
)
