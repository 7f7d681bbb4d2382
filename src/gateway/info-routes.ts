import type { Clock } from '../actor/clock.js'
import type { Meters } from '../actor/meter.js'
import type { Following, Tip } from '../actor/shared.js'
import type { SigningKey } from '../attest/keys.js'
import type { Vocabulary } from '../attest/vocabulary.js'
import { encodeBase64url } from '../format/base64url.js'
import type { Reply, Request } from '../http/exchange.js'
import type { Route } from './parts.js'

export interface InfoParts {
  readonly vocabulary: Vocabulary
  readonly meters: Meters
  readonly tip: Tip
  readonly following: Following
  readonly clock: Clock
  readonly startedMs: number
  readonly release: string
  readonly network: string
  readonly wallet?: string
  /** Addresses of upload services. */
  readonly bundlers?: readonly string[]
  /** So long without a new data item the gateway is not well. Absent: for ever. */
  readonly itemsSilentMs?: number
  /** Which bundles are opened and which items indexed. */
  readonly filters?: Readonly<Record<'ans104UnbundleFilter' | 'ans104IndexFilter', object>>
  /** Parts of the info answer that other rooms know about. */
  readonly sections?: Readonly<Record<string, unknown>>
  /** Absent: answers are not signed. */
  readonly key?: SigningKey
}

/** What the gateway says about itself: who it is, whether it is well, and its numbers. Never signed, never metered. */
export function infoRoutes(parts: InfoParts): Route[] {
  const { vocabulary, meters } = parts
  const prefix = vocabulary.pathPrefix
  const info = (): string => `${JSON.stringify(aboutGateway(parts))}\n`
  return [
    route('/', 'application/json; charset=utf-8', 30, info),
    route(`${prefix}/info`, 'application/json; charset=utf-8', 30, info),
    route(
      `${prefix}/healthcheck`,
      'application/json; charset=utf-8',
      0,
      () => `${JSON.stringify(healthOf(parts))}\n`,
    ),
    route(`${prefix}/__gateway_metrics`, 'text/plain; version=0.0.4; charset=utf-8', 0, () => {
      return `${meters.text()}${processText()}`
    }),
  ]
}

function route(path: string, type: string, maxAgeSeconds: number, text: () => string): Route {
  const caching = maxAgeSeconds === 0 ? 'no-store' : `public, max-age=${maxAgeSeconds}`
  return {
    family: 'info',
    path,
    methods: ['GET', 'HEAD'],
    handle(request: Request, reply: Reply, lines: string): void {
      const head = { status: 200, block: `${lines}\r\nContent-Type: ${type}\r\nCache-Control: ${caching}` }
      const body = text()
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

type HealthParts = Pick<InfoParts, 'clock' | 'startedMs' | 'tip' | 'following' | 'itemsSilentMs'>

/** Whether the gateway is well, and if not why. */
export function healthOf({
  clock,
  startedMs,
  tip,
  following,
  itemsSilentMs,
}: HealthParts): Record<string, unknown> {
  const now = clock.now()
  const silentMs = now - Math.max(following.itemIndexedMs, startedMs)
  const reasons = [
    ...(tip.height < 0 ? ['no base-layer node has answered yet'] : []),
    ...(following.state === 'halted'
      ? ['a fork is too deep: the index stands still, content is served']
      : []),
    ...(itemsSilentMs !== undefined && silentMs > itemsSilentMs
      ? [`no data item was indexed for ${Math.floor(silentMs / 1000)} seconds`]
      : []),
  ]
  return {
    status: reasons.length === 0 ? 'ok' : 'unhealthy',
    uptime: (now - startedMs) / 1000,
    date: new Date(now).toISOString(),
    ...(reasons.length === 0 ? {} : { reasons }),
  }
}

/** The process as a whole, in the names that dashboards know. */
function processText(): string {
  const { user, system } = process.cpuUsage()
  return [
    '# HELP process_resident_memory_bytes Memory of the whole process, files mapped into it included.',
    '# TYPE process_resident_memory_bytes gauge',
    `process_resident_memory_bytes ${process.memoryUsage.rss()}`,
    '# HELP process_cpu_seconds_total Processor time of all threads.',
    '# TYPE process_cpu_seconds_total counter',
    `process_cpu_seconds_total ${(user + system) / 1e6}`,
    '',
  ].join('\n')
}
