import t from 'tap'
import { RateWindow } from '../../src/actor/rate-window.js'
import { HandClock } from '../http/hand-clock.js'

t.test('so many in a window for each, and for all', async (t) => {
  const clock = new HandClock()
  const window = new RateWindow({ windowMs: 1000, each: 2, all: 4 }, clock)
  const take = (...names: string[]): boolean[] => names.map((name) => window.take(name))
  t.same(take('a', 'a', 'a', 'b', 'b'), [true, true, false, true, false])
  clock.turn(1000)
  t.same(take('a', 'b', 'c', 'd', 'e'), [true, true, true, true, false])
})

t.test('so do all networks of one provider', async (t) => {
  for (const network of [(at: number) => `2001:db8:${at.toString(16)}::1`, (at: number) => `45.33.${at}.1`]) {
    const window = new RateWindow({ windowMs: 1000, each: 100, all: 1000 }, new HandClock())
    for (let at = 0; at < 200; at += 1) for (let time = 0; time < 200; time += 1) window.take(network(at))
    t.ok(window.take('198.51.100.7'), 'a newcomer of another one')
  }
})

t.test('sources that take all they can leave some for a newcomer', async (t) => {
  const window = new RateWindow({ windowMs: 1000, each: 100, all: 1000 }, new HandClock())
  for (let source = 0; source < 40; source += 1)
    for (let time = 0; time < 200; time += 1) window.take(`s${source}`)
  t.ok(window.take('newcomer'))
})
