import t from 'tap'
import { silentLog } from '../../src/actor/log.js'
import { draining, leavingReason, sayStopping, shareStopping } from '../../src/actor/stopping.js'
import { Drain } from '../../src/cluster/drain.js'
import { HandClock } from '../http/hand-clock.js'

shareStopping()

t.test('health answers say it first, then nothing is taken, and then nothing is owed', async (t) => {
  const clock = new HandClock()
  const owed = { items: 2, bundles: 1 }
  const drain = new Drain(() => owed, clock, silentLog)
  t.equal(drain.hear(undefined, 0), undefined)
  t.equal(draining(), 'no')
  t.equal(leavingReason(), undefined)
  t.match(drain.hear(100, 0), { state: 'draining', items: 2, bundles: 1 })
  t.equal(draining(), 'noted')
  t.match(leavingReason(), /being drained/)
  clock.jump(10_000)
  drain.hear(10_100, 0)
  t.equal(draining(), 'closed')
  clock.jump(20_000)
  t.match(drain.hear(30_100, 0), { state: 'draining' })
  Object.assign(owed, { items: 0, bundles: 0 })
  t.match(drain.hear(30_200, 3), { state: 'draining', changes: 3 }, 'changes of lists are owed, too')
  t.match(drain.hear(30_300, 0), { state: 'drained' })
  Object.assign(owed, { items: 1 })
  t.match(drain.hear(30_400, 0), { state: 'draining' }, 'the body of an upload took long')
  t.equal(drain.hear(undefined, 0), undefined)
  t.equal(draining(), 'no')
  Object.assign(owed, { items: 0 })
  // After a restart: nothing is counted yet.
  const again = new Drain(() => owed, clock, silentLog)
  t.match(again.hear(3_600_000, 0), { state: 'draining' })
  t.equal(draining(), 'closed', 'but it is closed at once')
  clock.jump(15_000)
  t.match(again.hear(3_615_000, 0), { state: 'drained' })
  sayStopping()
  t.match(leavingReason(), /stopping/)
})
