import {
  choice,
  custom,
  flag,
  list,
  maybeText,
  maybeWhole,
  type Parsed,
  readRedis,
  readWholeUrl,
  secret,
  whole,
} from './setting.js'

const id = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/
const name = /^[a-z0-9-]+(_[a-z0-9-]+)*$/
const host = /^(?=.{1,200}$)[a-z0-9-]+(\.[a-z0-9-]+)*$/i
/** An address that stays one when a name is put in. */
function readTemplate(text: string): Parsed<string> {
  const read = readWholeUrl(text.replaceAll('__NAME__', 'name'))
  return 'wrong' in read ? read : { value: text }
}

/** Which hosts are ours, what they mean, and who knows. */
export const names = {
  rootHosts: list({
    env: 'ARNS_ROOT_HOST',
    default: [],
    shape: host,
    allowed: 'host names',
    why: 'Hosts of this gateway; names stand in front of them. Other gateways get the first. Unset on devnet: localhost.',
  }),
  sandboxProtocol: maybeText({
    env: 'SANDBOX_PROTOCOL',
    allowed: 'http or https',
    shape: /^https?$/,
    why: 'Of addresses that clients are sent to. Unset: https; on devnet http.',
  }),
  apexId: maybeText({
    env: 'APEX_TX_ID',
    allowed: 'an id',
    shape: id,
    why: 'Content shown on the root hosts. Excludes APEX_ARNS_NAME.',
  }),
  apexNames: list({
    env: 'APEX_ARNS_NAME',
    default: [],
    shape: name,
    allowed: 'names',
    why: 'Name shown on the root hosts: one for all, or as many as ARNS_ROOT_HOST has hosts, in the same order.',
  }),
  apexMaxAge: whole({
    env: 'CACHE_APEX_MAX_AGE',
    default: 3600,
    min: 0,
    max: 10 ** 9,
    why: 'Seconds, content of APEX_TX_ID at most: the operator may choose another.',
  }),
  notFoundId: maybeText({
    env: 'ARNS_NOT_FOUND_TX_ID',
    allowed: 'an id',
    shape: id,
    why: 'Shown for a name that does not exist.',
  }),
  notFoundName: maybeText({
    env: 'ARNS_NOT_FOUND_ARNS_NAME',
    allowed: 'a name',
    shape: name,
    why: 'Shown where nobody knows a name and ARNS_NOT_FOUND_TX_ID is unset; unregistered_arns.',
  }),
  order: list({
    env: 'ARNS_RESOLVER_PRIORITY_ORDER',
    default: ['local', 'gateway', 'on-demand'],
    shape: /^(local|gateway|on-demand)$/,
    allowed: 'local, gateway or on-demand',
    why: 'Who resolves a name: names of this machine (sluice names), the trusted gateway, the registry.',
  }),
  gatewayUrl: custom<string | undefined>({
    env: 'TRUSTED_ARNS_GATEWAY_URL',
    allowed: 'an http(s) address with __NAME__ where the name goes',
    defaultText: '',
    default: undefined,
    read: readTemplate,
    why: 'Gateway that resolves names. Unset: https://__NAME__.turbo-gateway.com; on devnet nobody.',
  }),
  gatewayHostHeader: maybeText({
    env: 'TRUSTED_ARNS_RESOLVER_HOST_HEADER',
    allowed: 'a host, __NAME__ where the name goes',
    shape: /^[A-Za-z0-9._:-]{1,200}$/,
    why: "Host header of these questions instead of the address's own.",
  }),
  registryUrl: custom<string | undefined>({
    env: 'ARNS_REGISTRY_URL',
    allowed: 'an http(s) address',
    defaultText: '',
    default: undefined,
    read: readWholeUrl,
    why: 'Registry that answers on-demand, by JSON-RPC (src/names/json-rpc-registry.ts). Unset: it is skipped.',
  }),
  enforceUndernameLimit: flag({
    env: 'ARNS_RESOLVER_ENFORCE_UNDERNAME_LIMIT',
    default: true,
    why: 'Undernames beyond what their base name has paid for are answered 402.',
  }),
  overrideTtlSeconds: maybeWhole({
    env: 'ARNS_RESOLVER_OVERRIDE_TTL_SECONDS',
    min: 0,
    max: 2_592_000,
    why: 'TTL of names, whatever their records say.',
  }),
  staleSeconds: whole({
    env: 'ARNS_CACHE_TTL_SECONDS',
    default: 86_400,
    min: 0,
    max: 2_592_000,
    why: 'How old the last known meaning of a name may be that is served while no resolver answers.',
  }),
  namesMax: whole({
    env: 'ARNS_CACHE_MAX_KEYS',
    default: 10_000,
    min: 1,
    max: 10_000_000,
    why: 'Names remembered on each edge thread, of about 1 KiB, and as many that do not exist.',
  }),
  memory: choice({
    env: 'ARNS_CACHE_TYPE',
    default: 'node',
    of: ['node', 'redis'],
    why: 'Answers of resolvers are remembered in this process, or also in Redis: shared by gateways, and there after a restart.',
  }),
  redisUrl: secret(
    custom({
      env: 'REDIS_CACHE_URL',
      allowed: 'host:port or a redis:// or rediss:// address',
      defaultText: 'redis://localhost:6379',
      default: 'redis://localhost:6379',
      read: readRedis,
      why: 'Redis for ARNS_CACHE_TYPE=redis; it may lose everything.',
    }),
  ),
  redisTls: flag({ env: 'REDIS_USE_TLS', default: false, why: 'TLS to it, whatever its address says.' }),
  resolversAtOnce: whole({
    env: 'ARNS_MAX_CONCURRENT_RESOLUTIONS',
    default: 1,
    min: 1,
    max: 100,
    why: 'Remote resolvers that get a request at the same time for one name: more is faster where the first is slow. 1: in turn.',
  }),
  preferred: list({
    env: 'PREFERRED_ARNS_NAMES',
    default: [],
    shape: name,
    allowed: 'names',
    why: 'Kept fresh from the start on, so that nobody waits for them; each costs every edge thread a question in its lifetime.',
  }),
  preferredBases: list({
    env: 'PREFERRED_ARNS_BASE_NAMES',
    default: [],
    shape: /^[a-z0-9-]+$/,
    allowed: 'names without undernames',
    why: 'These and all their undernames are kept fresh once somebody requested them.',
  }),
  fallbackMs: whole({
    env: 'ARNS_CACHED_RESOLUTION_FALLBACK_TIMEOUT_MS',
    default: 250,
    min: 0,
    max: 60_000,
    why: 'How long a new answer is waited for where an old one is known.',
  }),
  timeoutMs: whole({
    env: 'ARNS_COMPOSITE_RESOLVER_TIMEOUT_MS',
    default: 3000,
    min: 1,
    max: 600_000,
    why: 'For one answer of a resolver, where another one comes after it.',
  }),
  lastTimeoutMs: whole({
    env: 'ARNS_COMPOSITE_LAST_RESOLVER_TIMEOUT_MS',
    default: 30_000,
    min: 1,
    max: 600_000,
    why: 'For one answer of the last resolver.',
  }),
}

interface Given {
  readonly rootHosts: readonly string[]
  readonly apexId: string | undefined
  readonly apexNames: readonly string[]
  readonly order: readonly string[]
}

/** What contradicts itself. `isDevnet`: there are root hosts without a setting. */
export function nameContradictions(given: Given, isDevnet: boolean): string[] {
  const { rootHosts, apexId, apexNames, order } = given
  const wrong: string[] = []
  const hasApex = apexId !== undefined || apexNames.length > 0
  if (apexId !== undefined && apexNames.length > 0) {
    wrong.push('APEX_TX_ID and APEX_ARNS_NAME exclude each other: set one')
  }
  if (hasApex && rootHosts.length === 0 && !isDevnet) {
    wrong.push('APEX_TX_ID and APEX_ARNS_NAME need ARNS_ROOT_HOST')
  }
  if (apexNames.length > 1 && apexNames.length !== rootHosts.length) {
    wrong.push('APEX_ARNS_NAME must be one name, or one for each host of ARNS_ROOT_HOST')
  }
  if (new Set(rootHosts.map((one) => one.toLowerCase())).size !== rootHosts.length) {
    wrong.push('ARNS_ROOT_HOST names a host twice')
  }
  if (new Set(order).size !== order.length) wrong.push('ARNS_RESOLVER_PRIORITY_ORDER names a resolver twice')
  return wrong
}
