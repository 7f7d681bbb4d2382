import type { Config } from '../../config/read.js'
import { runningServices } from '../../config/services.js'
import type { Part } from '../actor/supervise.js'
import { portsShared } from '../http/listen.js'
import type { EdgeGiven } from '../threads/edge-given.js'
import { folders } from '../threads/folders.js'
import { needsSwarm } from '../threads/index/bands-options.js'
import type { IngestGiven } from '../threads/index/ingest-options.js'
import type { BandsGiven } from '../threads/index/open-bands.js'
import type { PushGiven } from '../threads/index/open-push.js'
import type { SwarmGiven } from '../threads/index/swarm-options.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import type { SourceGiven } from '../threads/source/source-given.js'
import { settingsOf } from '../threads/thread-settings.js'
import { limitsOf } from './bucket-limits.js'
import { cashierOf } from './cashier-thread.js'
import { consoleOf } from './console-place.js'
import { type Network, networkOf } from './network.js'
import { nodeLine } from './node-line.js'
import { found, urlOf } from './ports.js'
import { queryThreads } from './query-threads.js'
import type { RunningThreads } from './running-threads.js'
import { hasUploads } from './start-upload.js'
import { catalogThread, moderationThread } from './thread-options.js'
import { gatewayTls, type TlsPlaces } from './tls-place.js'
import { webhookOptions } from './webhook-options.js'

/** The gateway where it runs: everything that it takes, in order; nothing where it does not. */
export interface GatewayPlace {
  /** Before any socket. */
  readonly steps: (Part | readonly Part[])[]
  /** Behind the payment service, before the edges. */
  readonly sellers: Part[]
  readonly edges: Part[]
  /** Undefined where it does not run. */
  url(): string | undefined
  port(): number
  urls(): Readonly<Record<string, string>>
}

/** What the gateway is given by the rest of the program. */
export interface GatewayServiceGiven {
  readonly network: () => Network
  readonly startedMs: number
  readonly adminKey: () => string
  /** The settings as they are now, for edge threads that take the place of others. */
  readonly current: () => Config
  readonly tls: TlsPlaces
  /** Where the services beside the gateway are, in this program. */
  readonly services: () => EdgeGiven['services']
}

const noGateway: GatewayPlace = {
  steps: [],
  sellers: [],
  edges: [],
  url: () => undefined,
  port: () => 0,
  urls: () => ({}),
}

/** The gateway as a part of the program: its threads and ports. Where it does not run: an empty one. */
export function gatewayServiceOf(
  config: Config,
  shared: SharedMemory,
  threads: RunningThreads,
  given: GatewayServiceGiven,
): GatewayPlace {
  const { server } = config
  const running = runningServices(config.services, server.network)
  if (!running.has('gateway')) return noGateway
  const { network, startedMs, adminKey, current, services } = given
  const limits = limitsOf(config, threads)
  const cashier = cashierOf(config, threads, limits, running.has('payment'))
  const queries = queryThreads(config, () => network().nodes, shared, threads)
  const page = consoleOf(config, given.tls)
  const { host } = networkOf(config)
  const tls = gatewayTls(config, given.tls)
  let port = server.port
  const edges = Array.from({ length: portsShared ? server.edgeThreads : 1 }, (_, index) =>
    threads.replaceable(`edge-${index + 1}`, 'edge', (): EdgeGiven => {
      const { queries: queryPorts, left } = queries.lines()
      const limited = limits.limits()
      return {
        settings: settingsOf(current(), 'edge'),
        memory: shared,
        row: index + 1,
        serve: { host, port, lines: nodeLine(config) },
        ...page.place(index),
        ...tls.place(index),
        nodes: network().nodes,
        startedMs,
        adminKey: adminKey(),
        services: services(),
        ports: { ...threads.edgePorts(), queries: queryPorts, ...limits.ports(), ...cashier.ports() },
        queryLeft: left,
        ...(limited === undefined ? {} : { limits: limited }),
        ...(cashier.sales === undefined ? {} : { sales: cashier.sales }),
      }
    }),
  )
  return {
    steps: [
      [...keepers(config, shared, threads), ...limits.parts],
      [fetcher(config, network, shared, threads), ...queries.parts],
      [follower(config, network, shared, threads), ...publishing(config, shared, threads)],
      found(host, server.port, 'PORT', (free) => {
        port = free
      }),
      ...page.parts,
      ...tls.parts,
    ],
    sellers: cashier.parts,
    edges,
    url: () => urlOf(host, port),
    port: () => port,
    urls: () => ({ gateway: urlOf(host, port), ...tls.urls(), ...page.urls() }),
  }
}

/** The threads that write what all others read. */
function keepers(config: Config, shared: SharedMemory, threads: RunningThreads): Part[] {
  return [
    threads.part('catalog', 'catalog', () => catalogThread(config, shared)),
    threads.part('moderation', 'moderation', () => moderationThread(config, shared)),
  ]
}

/** The thread that brings content; the catalog's keeper is up before it. */
function fetcher(
  config: Config,
  network: () => Network,
  shared: SharedMemory,
  threads: RunningThreads,
): Part {
  return threads.part('source', 'source', (): SourceGiven => {
    const { nodes, gateways } = network()
    const webhooks = webhookOptions(config, folders(config).keys)
    return {
      settings: settingsOf(config, 'source'),
      memory: shared,
      nodes,
      gateways,
      ports: { catalog: threads.line('catalog') },
      ...(webhooks?.cached === true ? { webhooks } : {}),
      hasUploads: hasUploads(config),
    }
  })
}

/** The thread that makes the index grow; what keeps the catalog and what brings content are up before it. */
function follower(
  config: Config,
  network: () => Network,
  shared: SharedMemory,
  threads: RunningThreads,
): Part {
  return threads.part('ingest', 'ingest', (): IngestGiven => {
    const webhooks = webhookOptions(config, folders(config).keys)
    return {
      settings: settingsOf(config, 'ingest'),
      memory: shared,
      nodes: network().nodes,
      ports: { catalog: threads.line('catalog'), source: threads.line('source') },
      ...(webhooks === undefined ? {} : { webhooks }),
    }
  })
}

/**
 * The threads that give the index to others. One builds and publishes bands, where the operator gives any away; one seeds and
 * fetches them; one writes into ClickHouse.
 */
function publishing(config: Config, shared: SharedMemory, threads: RunningThreads): Part[] {
  const bands = (): BandsGiven => ({ settings: settingsOf(config, 'bands'), memory: shared })
  const { host } = networkOf(config)
  const swarm = (): SwarmGiven => ({ settings: settingsOf(config, 'swarm'), memory: shared, host })
  return [
    ...(config.bands.publish ? [threads.part('bands', 'bands', bands)] : []),
    ...(needsSwarm(config) ? [threads.part('swarm', 'swarm', swarm)] : []),
    ...pushing(config, shared, threads),
  ]
}

/** The thread that writes the index into ClickHouse, where the operator has this machine do that. */
function pushing(config: Config, memory: SharedMemory, threads: RunningThreads): Part[] {
  if (!config.clickhouse.push) return []
  const push = (): PushGiven => ({ settings: settingsOf(config, 'push'), memory })
  return [threads.replaceable('push', 'push', push)]
}
