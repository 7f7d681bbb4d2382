import t from 'tap'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { Ticks } from '../../src/store/residence.js'
import { TickPace } from '../../src/store/tick-pace.js'

/** A clock whose timers fire by hand. */
function rig() {
  const timers = new Set<{ readonly ms: number; readonly act: () => void }>()
  const clock: Clock = {
    ...systemClock,
    every(ms, act) {
      const timer = { ms, act }
      timers.add(timer)
      return { cancel: () => timers.delete(timer) }
    },
  }
  const periods = (): number[] => [...timers].map(({ ms }) => ms)
  const turns = (count: number): void => {
    for (let turn = 0; turn < count; turn += 1) for (const { act } of [...timers]) act()
  }
  return { clock, periods, turns }
}

t.test('ticks of a thread that uses nothing come together, as many as before', async (t) => {
  const { clock, periods, turns } = rig()
  const ticks = new Ticks()
  let acts = 0
  const pace = new TickPace(ticks, 250, clock, () => {
    acts += 1
  })
  t.same(periods(), [250])
  turns(10)
  t.equal(ticks.now, 11)
  pace.used()
  turns(32)
  t.same(periods(), [250], 'it was used not long ago')
  turns(1)
  t.same(periods(), [1000])
  const before = ticks.now
  turns(3)
  t.equal(ticks.now, before + 12)
  t.equal(acts, 46)
  pace.used()
  pace.used()
  t.same(periods(), [250])
  turns(1)
  t.equal(ticks.now, before + 13)
  pace.cancel()
  t.same(periods(), [])
})
