import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import { claimFolder, findPort } from '../actor/claim.js'
import { systemClock } from '../actor/clock.js'
import type { Log } from '../actor/log.js'
import { stepEngineBack } from '../actor/priority.js'
import { ownIdlers, Ration } from '../actor/ration.js'
import { type Part, type RunningPart, supervise } from '../actor/supervise.js'
import { startThread, type Thread } from '../actor/thread.js'
import type { Examples } from '../devnet/seed.js'
import { portsShared } from '../http/listen.js'
import { adminKey } from './admin-key.js'
import { needsSwarm } from './bands-thread.js'
import type { SeededSite, seedSite } from './devnet-site.js'
import { ingestThread, openingAbout } from './ingest-thread.js'
import { limitsOf } from './limits.js'
import { type Network, networkOf } from './network.js'
import { paymentsOf } from './payments-thread.js'
import { sourceThread } from './source-thread.js'
import {
  catalogThread,
  devnetThread,
  edgeThread,
  folders,
  type Lines,
  moderationThread,
  publishingThread,
  type SharedTables,
  sharedTables,
} from './threads.js'

export interface Program {
  /** Name to base URL. */
  readonly urls: Readonly<Record<string, string>>
  /** Ids to try, by name; each is in the cache already. */
  readonly examples: Examples
  /** Names to try: label to the address of its content. */
  readonly names: Readonly<Record<string, string>>
  /** Resolves with a reason when a part is lost. */
  readonly lost: Promise<string>
  /** Drains and leaves, last started first. */
  stop(): Promise<void>
}

/**
 * Starts every part in order. Rejects, with everything taken down again, when one cannot start or when `end` fires before all
 * is up.
 */
export async function startProgram(config: Config, log: Log, end: AbortSignal): Promise<Program> {
  const { server } = config
  stepEngineBack(log)
  const network = networkOf(config)
  const shared = sharedTables(config)
  const startedMs = systemClock.now()
  const embedded = server.network === 'devnet' && server.trustedNodeUrls === undefined
  const crew = new Crew(server.drainMs + 2000)
  const nodes = (): readonly string[] =>
    embedded ? [crew.said<{ url: string }>('devnet').url] : network.nodes
  const limits = limitsOf(config, crew)
  const payments = paymentsOf(config, crew, limits.lines)
  let port = server.port
  let key = ''

  const edges = Array.from({ length: portsShared ? server.edgeThreads : 1 }, (_, index) =>
    crew.part(`edge-${index + 1}`, 'edge', () => {
      const own = { row: index + 1, port, startedMs, adminKey: key, filters: openingAbout(config) }
      const lines = { ...crew.lines(), ...limits.lines(), ...payments.lines() }
      return edgeThread(config, { ...network, nodes: nodes() }, shared, { ...lines, ...own })
    }),
  )
  const supervised = await supervise(
    [
      { name: 'data folder', start: () => claimed(folders(config).root) },
      step('admin key', () => {
        key = adminKey(config, log)
      }),
      ...(embedded ? [found('127.0.0.1', server.devnetPort, 'DEVNET_PORT')] : []),
      [
        ...(embedded ? [crew.part('devnet', 'devnet', () => devnetThread(config))] : []),
        ...keepers(config, shared, crew),
        ...limits.parts,
      ],
      ...payments.parts,
      fetchers(config, () => ({ ...network, nodes: nodes() }), shared, crew),
      ...publishing(config, shared, crew),
      found(network.host, server.port, 'PORT', (free) => {
        port = free
      }),
      edges,
      { name: 'ration', start: () => rationed(log) },
    ],
    log,
  )
  const gateway = urlOf(network.host, port)
  const stop = () => supervised.stop()
  try {
    const isSeeded = embedded && server.devnetSeed && server.devnetReplayPath === undefined
    const [node = ''] = nodes()
    const shown = isSeeded ? await seeded(config, { gateway, node, log, end }, port) : nothingSeeded
    end.throwIfAborted()
    const urls = { gateway, ...(embedded ? { devnet: node } : {}) }
    return { urls, ...shown, lost: supervised.lost, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The threads that are up, by name. */
class Crew {
  readonly #threads = new Map<string, Thread>()

  constructor(private readonly stopMs: number) {}

  /** What a thread said when it came up. */
  said<Said>(name: string): Said {
    return this.#thread(name).said as Said
  }

  /** A new line to a thread's actor. */
  line(name: string): MessagePort {
    return this.#thread(name).connect()
  }

  /** Lines from an edge thread to the actors that it asks. */
  lines(): Lines {
    const [catalogPort, sourcePort] = [this.line('catalog'), this.line('source')]
    const swarm = this.#threads.has('swarm') ? { swarmPort: this.line('swarm') } : {}
    const [moderationPort, ingestPort] = [this.line('moderation'), this.line('ingest')]
    return { catalogPort, sourcePort, moderationPort, ingestPort, ...swarm }
  }

  /** A thread of `workers/<file>` as a part; what `data` returns may hold ports, which move to it. */
  part(name: string, file: string, data: () => object | Promise<object>): Part {
    return {
      name,
      start: async () => {
        const thread = await startThread(name, file, await data())
        this.#threads.set(name, thread)
        return {
          lost: thread.gone.then((code) => `ended with code ${code}`),
          stop: () => thread.stop(this.stopMs),
        }
      },
    }
  }

  #thread(name: string): Thread {
    const thread = this.#threads.get(name)
    if (thread === undefined) throw new Error(`no thread ${name} is up`)
    return thread
  }
}

const nothingSeeded: SeededSite = { examples: {}, names: {} }

/** Loaded where there is a site to seed. */
async function seeded(...given: Parameters<typeof seedSite>): Promise<SeededSite> {
  return (await import('./devnet-site.js')).seedSite(...given)
}

/** Something that is done once, in its turn. */
function step(name: string, act: () => void): Part {
  return {
    name,
    start: async () => {
      act()
      return { stop: () => Promise.resolve() }
    },
  }
}

/** The threads that write what all others read. */
function keepers(config: Config, shared: SharedTables, crew: Crew): Part[] {
  return [
    crew.part('catalog', 'catalog', () => catalogThread(config, shared)),
    crew.part('moderation', 'moderation', () => moderationThread(config, shared)),
  ]
}

/** The threads that bring content and make the index grow; the catalog's keeper is up before them. */
function fetchers(config: Config, network: () => Network, shared: SharedTables, crew: Crew): Part[] {
  return [
    crew.part('source', 'source', () => sourceThread(config, network(), shared, crew.line('catalog'))),
    crew.part('ingest', 'ingest', () => {
      return ingestThread(config, network().nodes, shared, crew.line('catalog'))
    }),
  ]
}

/** The threads for bands: one builds and publishes, where the operator gives any away; one seeds and fetches. */
function publishing(config: Config, shared: SharedTables, crew: Crew): Part[] {
  const told = publishingThread(config, shared)
  const swarm = async () => (await import('./swarm-thread.js')).swarmThread(config, shared)
  return [
    ...(told === undefined ? [] : [crew.part('bands', 'bands', () => told)]),
    ...(needsSwarm(config) ? [crew.part('swarm', 'swarm', swarm)] : []),
  ]
}

/** Threads that run only where no other wants to are not forgotten for hours. */
async function rationed(log: Log): Promise<RunningPart> {
  const timer = new Ration(ownIdlers, log).keep(systemClock)
  return { stop: async () => timer.cancel() }
}

async function claimed(folder: string): Promise<RunningPart> {
  const claim = await claimFolder(folder)
  return { stop: () => claim.release() }
}

function found(host: string, port: number, setting: string, tell?: (port: number) => void): Part {
  return {
    name: setting,
    start: async () => {
      const free = await findPort(host, port, setting)
      tell?.(free)
      return { stop: () => Promise.resolve() }
    },
  }
}

/** What to open in a browser on this machine. */
function urlOf(host: string, port: number): string {
  const name =
    host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}
