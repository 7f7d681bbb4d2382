import t from 'tap'
import { Following, Tip } from '../../src/actor/shared.js'
import { storeStates } from '../../src/actor/store-meters.js'
import type { Health } from '../../src/http/life.js'
import { infoRoutes } from '../../src/routes/gateway-info-routes.js'
import { healthOf } from '../../src/routes/health.js'
import { caller } from '../gateway/caller.js'
import { stage } from '../gateway/rig.js'
import { HandClock } from '../names/hand-clock.js'
import { metricsParts } from './shown-metrics.js'

t.test(
  'the health check counts the time since the last new data item, where the operator wants it',
  async (t) => {
    const clock = new HandClock()
    const [tip, following] = [new Tip(), new Following()]
    tip.move(7)
    const startedMs = clock.now()
    const health = (itemsSilentMs?: number): Health =>
      healthOf({
        clock,
        meters: metricsParts().meters,
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

t.test(
  'what is wrong with the object store or the look-up of roots is a warning, and nothing of what is well',
  async (t) => {
    const { meters } = metricsParts()
    const tip = new Tip()
    tip.move(7)
    const health = (): Health =>
      healthOf({ clock: new HandClock(), meters, startedMs: 0, tip, following: new Following() })
    for (const state of storeStates) {
      const meter = meters.of('content_store_state', { state })
      meter.set(1)
      const { status, warnings } = health()
      t.equal(status, 'ok', state)
      t.equal(warnings?.length ?? 0, state === 'well' || state === 'opening' ? 0 : 1, state)
      meter.set(0)
    }
    const failing = meters.of('root_lookup_gateways_failing')
    failing.set(1)
    t.match(health(), { status: 'ok', warnings: [/^1 of the gateways/] })
    failing.set(0)
    t.equal(health().warnings, undefined, 'without one there is nothing to say')
  },
)

t.test(
  'the health check is 503 with its reasons while unhealthy; what says that it lives is not',
  async (t) => {
    const parts = metricsParts()
    const on = await stage({ routes: infoRoutes({ ...parts, network: 'devnet' }) })
    t.teardown(() => on.close())
    const ask = caller(t, on)
    const statusOf = async (path: string, more: object = {}): Promise<[number, string]> => {
      const { status, headers, body } = await ask(path, more)
      t.equal(headers['cache-control'], 'no-store')
      t.equal(headers['content-type'], 'application/json; charset=utf-8')
      return [status, body.length === 0 ? '' : JSON.parse(body.toString()).status]
    }
    t.same(await statusOf('/gateway/healthcheck'), [503, 'unhealthy'])
    t.same(await statusOf('/gateway/healthcheck', { method: 'HEAD' }), [503, ''])
    t.same(await statusOf('/gateway/livez'), [200, 'ok'])
    parts.tip.move(3)
    t.same(await statusOf('/gateway/healthcheck'), [200, 'ok'])
    parts.meters.of('data_disk_size_bytes').set(2 ** 40)
    t.same(await statusOf('/gateway/healthcheck'), [503, 'unhealthy'])
    t.match((await ask('/gateway/healthcheck')).body.toString(), 'the disk of DATA_PATH is full')
    parts.meters.of('data_disk_free_bytes').set(2 ** 30)
    t.same(await statusOf('/gateway/healthcheck'), [200, 'ok'])
    parts.meters.of('catalog_damaged').set(1)
    t.same(await statusOf('/gateway/healthcheck'), [503, 'unhealthy'])
    parts.meters.of('catalog_damaged').set(0)
    parts.following.state = 'halted'
    t.same(await statusOf('/gateway/healthcheck'), [503, 'unhealthy'])
    t.same(await statusOf('/gateway/livez'), [200, 'ok'])
  },
)
