import t from 'tap'
import { RateWindow } from '../../src/actor/rate-window.js'
import { HandClock } from '../http/hand-clock.js'

t.test('so many in a window for each, and for all', async (t) => {
  const clock = new HandClock()
  const window = new RateWindow({ windowMs: 1000, each: 2, all: 3 }, clock)
  const take = (...names: string[]): boolean[] => names.map((name) => window.take(name))
  t.same(take('a', 'a', 'a', 'b', 'b'), [true, true, false, true, false])
  clock.turn(1000)
  t.same(take('a', 'b', 'c', 'd'), [true, true, true, false])
})
