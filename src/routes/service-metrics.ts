import type { Clock } from '../actor/clock.js'
import type { Meters } from '../actor/meter.js'
import { answerSmall } from '../http/small-answer.js'
import type { Route } from '../serving/route.js'
import { serviceMetricsText } from './metrics-text.js'
import { sharedText } from './shared-text.js'

/** `/metrics` of a service beside the gateway, under all of its names. In one program all services have the same numbers. */
export function serviceMetricsRoutes(
  paths: readonly string[],
  meters: Meters,
  release: string,
  clock: Pick<Clock, 'monotonic'>,
): Route[] {
  const text = sharedText(clock, () => serviceMetricsText(meters, release))
  const type = 'text/plain; version=0.0.4; charset=utf-8'
  return paths.map((path) => ({
    family: 'info',
    isForOperators: true,
    path,
    methods: ['GET', 'HEAD'],
    about: [{ path, summary: 'Numbers of the program, for Prometheus', statuses: [200], type: 'text/plain' }],
    handle(request, reply, first) {
      answerSmall(request, reply, first, { status: 200, type, body: text() })
    },
  }))
}
