import type { Reply, Request } from '../http/exchange.js'
import { lifeOf } from '../http/life.js'
import type { Operation } from '../http/operation.js'
import { iconSvg } from '../http/page.js'
import { answerSmall, htmlType, jsonType, publicShortly, takesPages } from '../http/small-answer.js'
import type { Route } from '../serving/route.js'
import { aboutGateway, type InfoParts } from './about-gateway.js'
import { type HealthParts, healthOf } from './health.js'
import { landingPage } from './landing-page.js'
import { metricsText } from './metrics-text.js'
import { sharedText } from './shared-text.js'

/** Facts about the gateway: its identity, its health, and its metrics. Never signed, never metered. */
export function infoRoutes(parts: InfoParts): Route[] {
  const { vocabulary } = parts
  const prefix = vocabulary.pathPrefix
  const numbers = sharedText(parts.clock, () => metricsText(parts))
  const info = (): { readonly body: string } => ({ body: line(aboutGateway(parts)) })
  return [
    rootRoute(parts, info),
    iconRoute,
    route(`${prefix}/info`, jsonType, 30, info, 'This gateway'),
    route(
      `${prefix}/healthcheck`,
      jsonType,
      0,
      () => health(parts),
      'Whether it is well, and if not why',
      [503],
    ),
    route(`${prefix}/livez`, jsonType, 0, () => ({ body: line(lifeOf(parts)) }), 'Whether it answers at all'),
    {
      ...route(
        `${prefix}/__gateway_metrics`,
        'text/plain; version=0.0.4; charset=utf-8',
        0,
        () => ({ body: numbers() }),
        'Its numbers, for Prometheus',
      ),
      isForOperators: true,
    },
  ]
}

/** `/`: a page for browsers, JSON for all others. */
function rootRoute(parts: InfoParts, info: () => InfoAnswer): Route {
  const lines = `${publicShortly}\r\nVary: Accept`
  return {
    family: 'info',
    path: '/',
    methods: ['GET', 'HEAD'],
    about: [{ path: '/', summary: 'This gateway: a page for browsers, JSON for programs', statuses: [200] }],
    handle(request, reply, first) {
      if (!takesPages(request)) {
        const { body } = info()
        return answerSmall(request, reply, first, { status: 200, type: jsonType, lines, body })
      }
      const page = landingPage(parts, request)
      answerSmall(request, reply, first, {
        status: 200,
        type: htmlType,
        lines: `${lines}${page.lines}`,
        body: page.html,
      })
    },
  }
}

/** Browsers request it beside every page without an icon of its own. */
const iconRoute: Route = {
  family: 'info',
  path: '/favicon.ico',
  yields: true,
  methods: ['GET', 'HEAD'],
  about: [{ path: '/favicon.ico', summary: 'The icon', statuses: [200], type: 'image/svg+xml' }],
  handle(request, reply, first) {
    const lines = '\r\nCache-Control: public, max-age=86400\r\nX-Content-Type-Options: nosniff'
    answerSmall(request, reply, first, { status: 200, type: 'image/svg+xml', lines, body: iconSvg })
  },
}

interface InfoAnswer {
  readonly body: string | Uint8Array
  /** Absent: 200. */
  readonly status?: number
}

/** 503 where it is unhealthy, for programs that look at the status only: load balancers, containers, monitors. */
function health(parts: HealthParts): InfoAnswer {
  const report = healthOf(parts)
  return { body: line(report), status: report.status === 'ok' ? 200 : 503 }
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`
}

function route(
  path: string,
  type: string,
  maxAgeSeconds: number,
  answerNow: () => InfoAnswer,
  summary: Operation['summary'],
  otherStatuses: readonly number[] = [],
): Route {
  const caching = maxAgeSeconds === 0 ? 'no-store' : `public, max-age=${maxAgeSeconds}`
  const statuses = [200, ...otherStatuses]
  return {
    family: 'info',
    path,
    methods: ['GET', 'HEAD'],
    about: [{ path, summary, statuses, type: type.split(';')[0] ?? type }],
    handle(request: Request, reply: Reply, lines: string): void {
      const { body, status = 200 } = answerNow()
      const head = { status, block: `${lines}\r\nContent-Type: ${type}\r\nCache-Control: ${caching}` }
      if (request.method === 'HEAD') reply.endEmpty(head, Buffer.byteLength(body))
      else reply.end(head, body)
    },
  }
}
