import type { Config } from '../../config/read.js'
import { missingAddons } from '../../native/addon.js'
import { keepOpen } from '../../native/mapped/mapped.js'
import { systemClock } from '../actor/clock.js'
import { giveMemoryBack } from '../actor/idle-memory.js'
import type { Log } from '../actor/log.js'
import { Meters } from '../actor/meter.js'
import { meterTable } from '../actor/meter-table.js'
import { stepEngineBack } from '../actor/priority.js'
import { Readiness, Tip } from '../actor/shared.js'
import { shareStopping } from '../actor/stopping.js'
import { type Part, type RunningPart, supervise } from '../actor/supervise.js'
import { Generations } from '../catalog/generations.js'
import type { Examples } from '../devnet/seed.js'
import { boundSockets, socketUsage } from '../http/listen.js'
import { SocketWatch } from '../http/socket-watch.js'
import { shareDiskErrors } from '../store/disk-errors.js'
import { isEmbedded } from '../threads/chain-options.js'
import { folders } from '../threads/folders.js'
import { isSeeding } from '../threads/host-names.js'
import { needsSwarm } from '../threads/index/bands-options.js'
import type { Descriptors } from '../threads/resources.js'
import type { CertificateNews } from '../threads/service-listeners.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { adminKey } from './admin-key-file.js'
import { sharedMemory } from './allocate-memory.js'
import { claimDataFolder } from './data-folder.js'
import { descriptorLimit, shareDescriptors, withinDescriptors } from './descriptors.js'
import type { SeededSite, seedSite } from './devnet-site.js'
import { diskShares, sayShares, withinDisk } from './disk-shares.js'
import { keepHistory } from './history.js'
import { lyingGateways } from './lying-gateways.js'
import { announcedGateway, networkOf } from './network.js'
import { found } from './ports.js'
import { type ReloadOutcome, reloading } from './reload.js'
import { ResourceWatch } from './resource-watch.js'
import { RunningThreads } from './running-threads.js'
import { clusterOf } from './start-cluster.js'
import { type GatewayPlace, gatewayServiceOf } from './start-gateway.js'
import { type PaymentPlace, paymentServiceOf } from './start-payment.js'
import { type UploadPlace, uploadServiceOf } from './start-upload.js'
import { devnetThread, tryKey } from './thread-options.js'
import { type TlsPlaces, tlsPlaces } from './tls-place.js'
import { watchdogPart } from './watch.js'

export interface Program {
  /** Name to base URL. */
  readonly urls: Readonly<Record<string, string>>
  /** Ids to try, by name; each is in the cache already. */
  readonly examples: Examples
  /** Names to try: label to the address of its content. */
  readonly names: Readonly<Record<string, string>>
  /** Resolves with a reason when a part is lost. */
  readonly lost: Promise<string>
  /** Takes up what may change while the program runs: certificates, and some of the settings as they were read now. */
  reload(settings: Config | readonly string[]): ReloadOutcome
  /** Drains and stops everything, last started first. */
  stop(): Promise<void>
}

/**
 * Starts every part in order. Rejects, after everything was stopped again, when one cannot start or when `end` fires
 * before all have started.
 */
export async function startProgram(given: Config, log: Log, end: AbortSignal): Promise<Program> {
  const { config, shared } = prepared(given, log)
  const { server } = config
  const network = networkOf(config)
  const readiness = new Readiness(shared.readiness)
  const embedded = isEmbedded(config)
  const threads = threadsOf(config, shared, log)
  const nodes = (): readonly string[] => (embedded ? [devnetUrl(threads)] : network.nodes)
  const tls = tlsOf(config, shared, threads, log)
  const live = { config, key: '' }
  const gateway = gatewayServiceOf(config, shared, threads, {
    network: () => ({ ...network, nodes: nodes() }),
    startedMs: systemClock.now(),
    tls,
    adminKey: () => live.key,
    current: () => live.config,
    services: () => ({ ...uploads.address(), ...payments.address(), ...liars.address() }),
  })
  const liars = lyingGateways(config, () => gateway.url())
  const links = { gateway: () => announcedGateway(config, gateway.url()), adminKey: () => live.key }
  const beside = { host: network.host, nodes, ...links, tls }
  const payments = paymentServiceOf(config, shared, threads, beside)
  const uploads = uploadServiceOf(config, shared, threads, { ...beside, payment: payments.address })
  const cluster = clusterOf(config, shared, threads)
  const supervised = await supervise(
    [
      { name: 'data folder', start: () => claimed(folders(config).root, log) },
      keysStep(config, live, log),
      ...tls.parts,
      ...(embedded ? devnetSteps(config, threads) : []),
      // Before sources and edges: what others have blocked must not be served.
      cluster.parts,
      ...gateway.steps,
      ...(gateway.edges.length === 0 ? [] : liars.parts),
      ...payments.ports,
      ...uploads.ports,
      ...servingSteps(gateway, payments, uploads, readiness),
      [...watches(config, shared, log), ...tls.watches],
      watchdogPart(threads, server, ownMeters(shared), log),
    ],
    log,
    end,
  )
  const stop = () => supervised.stop()
  try {
    const [node = ''] = nodes()
    const shown = await seeded(config, gateway.url(), { node, log, end }, gateway.port())
    end.throwIfAborted()
    readiness.add('site')
    liars.seeded(shown.examples)
    const chain = embedded ? { devnet: node } : {}
    const urls = { ...gateway.urls(), ...uploads.urls(), ...payments.urls(), ...chain }
    cluster.announce(urls)
    const reload = reloading({ started: given, live, threads, tls, log })
    return { urls, ...shown, lost: supervised.lost, reload, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function threadsOf({ server }: Config, shared: SharedMemory, log: Log): RunningThreads {
  return new RunningThreads({
    stopMs: server.drainMs + 2000,
    log,
    onEnded: () => ownMeters(shared).of('watchdog_reports_total', { cause: 'ended' }).add(1),
  })
}

/** Each thread that signs reads its key itself; what is wrong with it is reported before any of them is started. */
function keysStep(config: Config, live: { key: string }, log: Log): Part {
  return step('keys', () => {
    live.key = adminKey(config, log)
    tryKey(config)
  })
}

function devnetUrl(threads: RunningThreads): string {
  return threads.reported<{ url: string }>('devnet').url
}

/** What listeners of HTTPS have in common; their threads hear of new certificates. */
function tlsOf(config: Config, shared: SharedMemory, threads: RunningThreads, log: Log): TlsPlaces {
  return tlsPlaces(config, networkOf(config).host, {
    meters: ownMeters(shared),
    log,
    onPairs: (certificates) => {
      for (const file of ['edge', 'upload', 'payment'])
        threads.tell(file, 'certificates', { certificates } satisfies CertificateNews)
    },
  })
}

/** The base-layer node of this machine; its port is looked at before any thread starts. */
function devnetSteps(config: Config, threads: RunningThreads): (Part | Part[])[] {
  return [
    found('127.0.0.1', config.server.devnetPort, 'DEVNET_PORT'),
    threads.part('devnet', 'devnet', () => devnetThread(config)),
  ]
}

/** Who sells bytes for USDC asks the payment service, and edges ask who sells; without sales nobody waits for the other. */
function sellingSteps(
  { sellers, edges }: Pick<GatewayPlace, 'sellers' | 'edges'>,
  { parts }: Pick<PaymentPlace, 'parts'>,
): Part[][] {
  return sellers.length === 0 ? [[...edges, ...parts]] : [parts, sellers, edges]
}

/** Edges and the services; the gateway states a service after its thread has come up. */
function servingSteps(
  gateway: Pick<GatewayPlace, 'sellers' | 'edges'>,
  payments: Pick<PaymentPlace, 'parts'>,
  uploads: Pick<UploadPlace, 'parts'>,
  readiness: Readiness,
): (Part | readonly Part[])[] {
  const there = (part: 'upload' | 'payment'): Part => step(`${part} is there`, () => readiness.add(part))
  return [...sellingSteps(gateway, payments), there('payment'), ...uploads.parts, there('upload')]
}

const nothingSeeded: SeededSite = { examples: {}, names: {} }

/** Puts the site of a devnet onto its chain, by way of the gateway at `url`; its code is loaded where there is one to seed. */
async function seeded(
  config: Config,
  url: string | undefined,
  given: Omit<Parameters<typeof seedSite>[1], 'gateway'>,
  port: number,
): Promise<SeededSite> {
  if (url === undefined || !isSeeding(config)) return nothingSeeded
  return (await import('./devnet-site.js')).seedSite(config, { gateway: url, ...given }, port)
}

/** The steps before any thread starts: settings are reduced to what this machine allows, and shared memory is allocated. */
function prepared(given: Config, log: Log): { readonly config: Config; readonly shared: SharedMemory } {
  warnOfMissingAddons(log)
  shareDiskErrors()
  shareStopping()
  stepEngineBack(log)
  giveMemoryBack(given.server.idleMemorySeconds)
  const descriptors = descriptorsOf(given, log)
  const { root } = folders(given)
  const config = withinDisk(withinDescriptors(given, descriptors), diskShares(root))
  const shared = sharedMemory(config, descriptors)
  sayShares(root, shared.disk, shared.segments?.shape.segmentBytes ?? 0, log)
  return { config, shared }
}

/** What each part may have open; and no more sockets than that are accepted. */
function descriptorsOf(config: Config, log: Log): Descriptors | undefined {
  const limit = descriptorLimit()
  if (limit === undefined) return undefined
  const shares = shareDescriptors({ ...config, usesSwarm: needsSwarm(config) }, limit)
  boundSockets(shares.socketsMax)
  keepOpen(shares.sentFilesMax)
  log.info({ limit, ...shares }, 'limits of open files and connections')
  return shares
}

function warnOfMissingAddons(log: Log): void {
  const say =
    'a native addon is missing: install a C++17 compiler (Debian: g++), then npm run build, or npm rebuild sluice'
  for (const missing of missingAddons()) log.warn(missing, say)
}

/** A part that only runs `act` when its turn comes. */
function step(name: string, act: () => void): Part {
  return {
    name,
    start: async () => {
      act()
      return { stop: () => Promise.resolve() }
    },
  }
}

/** Parts of the main thread that look at the whole process. */
function watches(config: Config, shared: SharedMemory, log: Log): Part[] {
  return [
    { name: 'watches', start: () => watching(config, shared, log) },
    { name: 'history', start: () => historyOf(config, shared, log) },
  ]
}

/** Watches the whole process, and logs when clients must wait for a free connection. */
async function watching(config: Config, shared: SharedMemory, log: Log): Promise<RunningPart> {
  const meters = ownMeters(shared)
  const sockets = new SocketWatch(socketUsage, meters, log, systemClock)
  meters.of('cache_max_bytes').set(config.retrieval.cacheMaxBytes)
  const { freeMinBytes, segmentBytes = 0 } = { ...shared.segments, ...shared.segments?.shape }
  meters.of('cache_disk_free_min_bytes').set((freeMinBytes ?? shared.disk.freeMinBytes) + segmentBytes)
  const resources = new ResourceWatch(
    folders(config).root,
    meters,
    log,
    systemClock,
    new Generations(shared.generations),
  )
  return {
    stop: async () => {
      sockets.close()
      resources.close()
    },
  }
}

/** Keeps what happens for the console. */
function historyOf(config: Config, shared: SharedMemory, log: Log): Promise<RunningPart> {
  const tip = new Tip(shared.tip)
  return keepHistory(folders(config).history, ownMeters(shared), tip, log)
}

/** The main thread's own cells of the fetcher's row: the main thread and the fetcher write different cells. */
function ownMeters({ meters }: SharedMemory): Meters {
  return new Meters(meterTable, meters, 0)
}

async function claimed(folder: string, log: Log): Promise<RunningPart> {
  const claim = await claimDataFolder(folder, log)
  return { stop: () => claim.release() }
}
