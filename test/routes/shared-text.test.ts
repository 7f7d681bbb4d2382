/** Numbers for Prometheus take a millisecond to write, and anybody may ask for them: they are written once a second. */
import t from 'tap'
import type { Reply, Request } from '../../src/http/exchange.js'
import { infoRoutes } from '../../src/routes/gateway-info-routes.js'
import { serviceMetricsRoutes } from '../../src/routes/service-metrics.js'
import type { Exchange } from '../../src/serving/request-exchange.js'
import type { Route } from '../../src/serving/route.js'
import { HandClock } from '../names/hand-clock.js'
import { metricsParts } from './shown-metrics.js'

/** The answer of a route, as text. */
async function answered(route: Route, method: 'GET' | 'HEAD' = 'GET'): Promise<string> {
  let text = ''
  const reply: Partial<Reply> = {
    end: (_head, body = '') => {
      text = Buffer.from(body).toString()
    },
    endEmpty: (_head, bytes) => {
      text = String(bytes)
    },
  }
  const request: Partial<Request> = { method, path: route.path, header: () => undefined }
  await route.handle(request as Request, reply as Reply, '', {} as Exchange)
  return text
}

t.test('every route to numbers writes them once a second, for all who ask', async (t) => {
  const clock = new HandClock()
  const parts = metricsParts({ clock })
  let written = 0
  const { meters } = parts
  const text = meters.text.bind(meters)
  meters.text = (...given) => {
    written += 1
    return text(...given)
  }
  const paths = ['/metrics', '/bundler_metrics', '/v1/bundler_metrics']
  const pages = [
    infoRoutes({ ...parts, network: 'devnet' }),
    serviceMetricsRoutes(paths, meters, 'r-1', clock),
  ].map((routes) => routes.filter(({ path }) => path.endsWith('metrics')))
  for (const routes of pages) {
    t.ok(routes.length > 0)
    written = 0
    const counter = meters.of('blocks_unwound_total')
    const first = await answered(routes[0] as Route)
    counter.add(1)
    for (let times = 0; times < 20; times += 1)
      for (const route of routes) t.equal(await answered(route), first)
    t.equal(await answered(routes[0] as Route, 'HEAD'), String(Buffer.byteLength(first)))
    t.equal(written, 1)
    await clock.turn(1000)
    t.not(await answered(routes[0] as Route), first)
    t.equal(written, 2)
    await clock.turn(1000)
  }
})
