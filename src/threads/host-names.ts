import { join } from 'node:path'
import { parseId } from '../format/id.js'
import type { HostOptions } from '../gateway/gateway-parts.js'
import { parseName } from '../names/name.js'
import { namesDefaults } from '../names/names-defaults.js'
import type { NamesThread } from '../names/open-names.js'
import { folders } from './folders.js'
import type { Settings } from './thread-settings.js'

/** Name whose page the network shows for unregistered names. */
const usualStranger = 'unregistered_arns'

/** Timeout of Redis: a look-up there must not take longer than asking a resolver. */
const redisMs = 250

const usualGateway = 'https://__NAME__.turbo-gateway.com'

/** Protocol of addresses that clients are sent to. */
export function hostProtocol({ names, server }: Settings<'names' | 'server'>): 'http' | 'https' {
  const protocol = names.sandboxProtocol ?? (server.network === 'devnet' ? 'http' : 'https')
  return protocol === 'http' ? 'http' : 'https'
}

/** Hosts of this gateway that the operator named, lower case. The first is sent to other gateways. */
export function ownHosts({ names }: Settings<'names'>): string[] {
  return names.rootHosts.map((host) => host.toLowerCase())
}

/**
 * This gateway's address as everybody reaches it, by the first of its hosts, whatever host a request names. On devnet the port
 * belongs to it. Undefined where there is no host, or a port that is not known yet (0).
 */
export function publicOrigin(config: Settings<'names' | 'server'>, port: number): string | undefined {
  const [host] = ownHosts(config)
  const isDevnet = config.server.network === 'devnet'
  if (host === undefined || (isDevnet && port === 0)) return undefined
  return `${hostProtocol(config)}://${host}${isDevnet ? `:${port}` : ''}`
}

/** The same for whoever is on this machine: on devnet also where the operator set no host. */
export function nearOrigin(config: Settings<'names' | 'server'>, port: number): string | undefined {
  const isBare = config.server.network === 'devnet' && config.names.rootHosts.length === 0
  // By number: the tracker knows under which address its own peer is reached from the one that it is called by.
  return isBare ? `http://127.0.0.1:${port}` : publicOrigin(config, port)
}

/** Folder of the names of this machine. */
export function namesFolder(root: string): string {
  return join(root, 'names')
}

/** How an edge thread resolves names. */
export function namesOptions(config: Settings<'names' | 'server'>): NamesThread {
  const { names, server } = config
  const { absentMs, failedMs, refreshMs, flightsMax, guard } = namesDefaults
  const url = names.gatewayUrl ?? (server.network === 'devnet' ? undefined : usualGateway)
  const [ownHost] = ownHosts(config)
  const gateway = {
    release: server.release,
    ...(ownHost === undefined ? {} : { ownHost }),
    ...(names.gatewayHostHeader === undefined ? {} : { hostHeader: names.gatewayHostHeader }),
  }
  const { overrideTtlSeconds, namesMax, fallbackMs, resolversAtOnce, preferred, preferredBases } = names
  const staleMs = names.staleSeconds * 1000
  return {
    registryPath: namesFolder(folders(config).root),
    order: names.order as NamesThread['order'],
    ...(url === undefined ? {} : { gateway: { ...gateway, url } }),
    ...(names.registryUrl === undefined ? {} : { registryUrl: names.registryUrl }),
    timeoutMs: names.timeoutMs,
    lastTimeoutMs: names.lastTimeoutMs,
    guard,
    ...(names.memory === 'node'
      ? {}
      : { memory: { url: names.redisUrl, tls: names.redisTls, timeoutMs: redisMs, keptMs: staleMs } }),
    cache: {
      absentMs,
      failedMs,
      refreshMs,
      flightsMax,
      namesMax,
      fallbackMs,
      staleMs,
      resolversAtOnce,
      preferred: preferred.flatMap((one) => parseName(one) ?? []),
      preferredBases: new Set(preferredBases),
      ...(overrideTtlSeconds === undefined ? {} : { overrideTtlSeconds }),
    },
  }
}

/** What host names mean. Undefined: the operator named no host, and everything is answered by its path. */
export function hostOptions(config: Settings<'names' | 'server'>, ownPort: number): HostOptions | undefined {
  const { names, server } = config
  const named = ownHosts(config)
  const rootHosts = named.length === 0 && server.network === 'devnet' ? ['localhost'] : named
  if (rootHosts.length === 0) return undefined
  const apexId = parseId(names.apexId ?? '')
  const notFoundId = parseId(names.notFoundId ?? '')
  const notFoundName = parseName(names.notFoundName ?? usualStranger)
  return {
    rootHosts,
    protocol: hostProtocol(config),
    ownPort,
    // On a developer's machine tools use localhost or 127.0.0.1, and few of them can resolve names below localhost.
    sandboxBareHosts: named.length > 0,
    ...(apexId === undefined ? {} : { apexId }),
    apexNames: names.apexNames.flatMap((one) => parseName(one) ?? []),
    apexMaxSeconds: names.apexMaxAge,
    ...(notFoundId === undefined ? {} : { notFoundId }),
    ...(notFoundName === undefined ? {} : { notFoundName }),
    enforceUndernameLimit: names.enforceUndernameLimit,
  }
}

/** The seeded site has this name, unless the operator gave it to something else. */
export const siteName = 'site'

/** Whether a site is put onto the embedded chain. */
export function isSeeding({ server }: Settings<'server'>): boolean {
  return (
    server.network === 'devnet' &&
    server.trustedNodeUrls === undefined &&
    server.devnetSeed &&
    server.devnetReplayPath === undefined
  )
}
