import t from 'tap'
import { GatewayHealth } from '../../../src/source/upstream/gateway-health.js'
import { HandClock } from '../../http/hand-clock.js'

t.test('who was silent comes behind, until one trial alone is answered', async (t) => {
  const clock = new HandClock()
  const health = new GatewayHealth(10_000, clock)
  const several = [health.begin(), health.begin()]
  clock.jump(10_000)
  for (const trial of several) health.silent(trial)
  t.equal(health.isBehind, true)
  t.equal(health.begin().limitMs, 2000, 'a request while it is behind is short')
  clock.jump(15_000)
  t.equal(health.isBehind, false, 'requests that failed together make one pause')
  const probe = health.begin()
  t.same([probe.isProbe, probe.limitMs, health.isBehind], [true, undefined, true])
  clock.jump(10_000)
  health.silent(probe)
  clock.jump(29_000)
  t.equal(health.isBehind, true, 'the next pause is longer')
  health.answered(health.begin())
  t.equal(health.isBehind, false, 'any answer ends it')
})

t.test('the patience follows the usual time to a head, and a slow id is no silence', async (t) => {
  const clock = new HandClock()
  const health = new GatewayHealth(10_000, clock)
  t.equal(health.patienceMs, 500)
  const slow = health.begin()
  const usual = health.begin()
  clock.jump(2000)
  health.answered(usual)
  t.equal(health.patienceMs, 4000)
  clock.jump(8000)
  health.silent(slow)
  t.equal(health.isBehind, false)
  const early = health.begin()
  clock.jump(1000)
  health.lost(early)
  t.equal(health.isBehind, false, 'it was not waited for as long as usual')
})
