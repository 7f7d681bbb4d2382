import type { Following, Tip } from '../actor/shared.js'
import type { SigningKey } from '../attest/keys.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import { encodeBase64url } from '../format/base64url.js'
import type { Route } from '../gateway/parts.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Operation } from '../http/operation.js'
import { type HealthParts, healthOf, lifeOf } from './health.js'
import { type MetricsParts, metricsText } from './metrics-text.js'

export interface InfoParts extends HealthParts, MetricsParts {
  readonly vocabulary: Vocabulary
  readonly network: string
  readonly wallet?: string
  /** Addresses of upload services. */
  readonly bundlers?: readonly string[]
  /** Which bundles are opened and which items indexed. */
  readonly filters?: Readonly<Record<'ans104UnbundleFilter' | 'ans104IndexFilter', object>>
  /** Parts of the info answer that other rooms know about. */
  readonly sections?: Readonly<Record<string, unknown>>
  /** Absent: answers are not signed. */
  readonly key?: SigningKey
}

/** What the gateway says about itself: who it is, whether it is well, and its numbers. Never signed, never metered. */
export function infoRoutes(parts: InfoParts): Route[] {
  const { vocabulary } = parts
  const prefix = vocabulary.pathPrefix
  const json = 'application/json; charset=utf-8'
  const info = (): Said => ({ body: line(aboutGateway(parts)) })
  return [
    route('/', json, 30, info, 'This gateway'),
    route(`${prefix}/info`, json, 30, info, 'This gateway'),
    route(`${prefix}/healthcheck`, json, 0, () => health(parts), 'Whether it is well, and if not why', [503]),
    route(`${prefix}/livez`, json, 0, () => ({ body: line(lifeOf(parts)) }), 'Whether it answers at all'),
    route(
      `${prefix}/__gateway_metrics`,
      'text/plain; version=0.0.4; charset=utf-8',
      0,
      () => ({ body: metricsText(parts) }),
      'Its numbers, for Prometheus',
    ),
  ]
}

interface Said {
  readonly body: string
  /** Absent: 200. */
  readonly status?: number
}

/** 503 where it is unhealthy, for those who look at the status alone: load balancers, containers, monitors. */
function health(parts: HealthParts): Said {
  const said = healthOf(parts)
  return { body: line(said), status: said.status === 'ok' ? 200 : 503 }
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`
}

function route(
  path: string,
  type: string,
  maxAgeSeconds: number,
  say: () => Said,
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
      const { body, status = 200 } = say()
      const head = { status, block: `${lines}\r\nContent-Type: ${type}\r\nCache-Control: ${caching}` }
      if (request.method === 'HEAD') reply.endEmpty(head, Buffer.byteLength(body))
      else reply.end(head, body)
    },
  }
}

/** Who this gateway is and how far it is. */
export function aboutGateway({
  wallet,
  bundlers,
  release,
  network,
  vocabulary,
  tip,
  following,
  key,
  filters,
  sections,
}: InfoParts): Record<string, unknown> {
  return {
    ...(wallet === undefined ? {} : { wallet }),
    release,
    network,
    vocabulary: vocabulary.name,
    ...filters,
    supportedManifestVersions: ['0.1.0', '0.2.0'],
    ...(bundlers === undefined ? {} : { services: { bundlers: bundlers.map((url) => ({ url })) } }),
    ...(tip.height < 0 ? {} : { height: tip.height }),
    index: progress(tip, following),
    ...(key === undefined ? {} : { httpsig: signing(key) }),
    ...sections,
  }
}

/** How far the index is. `etaSeconds` at the rate of the last seconds, where there is one. */
function progress(tip: Tip, following: Following): Record<string, unknown> {
  const { state, height, blocksPerSecond, bundlesWaiting, missing } = following
  const lag = Math.max(tip.height - height, 0)
  const isMoving = state === 'importing' && blocksPerSecond > 0
  return {
    state,
    ...(height < 0 ? {} : { height, lag }),
    ...(isMoving ? { blocksPerSecond, etaSeconds: Math.round(lag / blocksPerSecond) } : {}),
    bundlesWaiting,
    missingTransactions: missing,
  }
}

function signing({ keyId, publicKey, solanaAddress }: SigningKey): Record<string, string> {
  return { algorithm: 'ed25519', keyId, publicKey: encodeBase64url(publicKey), solanaAddress }
}
