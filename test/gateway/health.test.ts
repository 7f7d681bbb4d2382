import t from 'tap'
import { Following, Tip } from '../../src/actor/shared.js'
import { healthOf } from '../../src/gateway/info-routes.js'
import { HandClock } from '../names/hand-clock.js'

t.test(
  'the health check counts the time since the last new data item, where the operator wants it',
  async (t) => {
    const clock = new HandClock()
    const [tip, following] = [new Tip(), new Following()]
    tip.move(7)
    const startedMs = clock.now()
    const health = (itemsSilentMs?: number): Record<string, unknown> =>
      healthOf({
        clock,
        startedMs,
        tip,
        following,
        ...(itemsSilentMs === undefined ? {} : { itemsSilentMs }),
      })
    await clock.turn(60_000)
    t.match(health(), { status: 'ok', reasons: undefined })
    t.match(health(60_000), { status: 'ok' }, 'a start is given as long')
    await clock.turn(1000)
    t.match(health(60_000), { status: 'unhealthy', reasons: ['no data item was indexed for 61 seconds'] })
    following.itemIndexedMs = clock.now()
    t.match(health(60_000), { status: 'ok' })
  },
)
