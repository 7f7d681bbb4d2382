import { createHash, randomBytes } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { type Clock, systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { type Address, addressOf, answer, localAddress } from '../../src/actor/mailbox-address.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { CatalogKeeper } from '../../src/catalog/catalog-keeper.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { Generations } from '../../src/catalog/generations.js'
import { LmdbCatalog } from '../../src/catalog/reader.js'
import { type Id, idOfBytes } from '../../src/format/id.js'
import type { ManifestLimits } from '../../src/format/manifest.js'
import { isRefusal, type Refusal } from '../../src/format/refusal.js'
import type { BlobCache, Kept } from '../../src/source/keeping/blob-cache.js'
import type { ManifestCache, ManifestOptions } from '../../src/source/keeping/manifest-cache.js'
import { InlinePacker, type ManifestPacker } from '../../src/source/keeping/manifest-packer.js'
import { InlineProver } from '../../src/source/proving/prover.js'
import { ProgressReader, ProgressTable, progressBytes } from '../../src/source/reading/progress-table.js'
import { TransferClient } from '../../src/source/reading/transfer-client.js'
import { BlobRoots } from '../../src/source/roots/blob-roots.js'
import type { Source } from '../../src/source/source.js'
import type { SourceProgress, SourceReply, SourceRequest, Window } from '../../src/source/source-messages.js'
import type { Fetcher, FetcherOptions } from '../../src/source/transfer/fetcher.js'
import type { Forbidden } from '../../src/source/transfer/transfer-parts.js'
import { GatewaySource } from '../../src/source/upstream/gateway-source.js'
import { BlobStore } from '../../src/store/blobs.js'
import type { Content } from '../../src/store/content.js'
import { openFetcher } from '../../src/threads/source/open-fetcher.js'
import { HandClock } from '../names/hand-clock.js'
import { scratch } from '../scratch.js'

export const someId = (): Id => idOfBytes(randomBytes(32))
export const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

export interface Upstream {
  readonly url: string
  readonly requests: IncomingMessage[]
  close(): Promise<void>
}

/** A real HTTP server on the loopback address. */
export async function upstream(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Upstream> {
  const requests: IncomingMessage[] = []
  const server: Server = createServer((request, response) => {
    requests.push(request)
    handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

export type Opened = Extract<SourceReply, { kind: 'opened' }>

/** One edge thread's view of the fetcher, over a real port. */
export interface Edge {
  readonly address: Address<SourceRequest, SourceReply>
  open(
    id: Id,
    window?: Window,
    more?: Partial<Extract<SourceRequest, { kind: 'open' }>>,
  ): Promise<Opened | Refusal>
  /** What the gateway asks. */
  readonly transfers: TransferClient
  grow(opened: Opened): Content
  port: MessagePort
}

export interface Rig {
  readonly path: string
  readonly meters: Meters
  readonly catalog: LmdbCatalog
  readonly keeper: Address<CatalogRequest, CatalogReply>
  readonly store: BlobStore
  readonly blobCache: BlobCache
  readonly manifests: ManifestCache
  readonly fetcher: Fetcher
  readonly kept: Kept[]
  edge(): Edge
  /** Names of the files in the drafts' folder. */
  drafts(): Promise<string[]>
  close(): Promise<void>
}

export interface RigOptions {
  readonly source: Source
  readonly fetcher?: Partial<FetcherOptions>
  readonly fetch?: Partial<{ digestBufferMaxBytes: number; finishBytes: number; finishShare: number }>
  readonly slots?: number
  readonly path?: string
  readonly forbidden?: Forbidden
  readonly clock?: Clock
  /** A store on a disk that is not as it should be, below `path`/blobs. */
  readonly store?: BlobStore
  readonly packer?: ManifestPacker
  readonly manifests?: Partial<ManifestOptions>
}

export const manifestLimits: ManifestLimits = { sizeBytes: 2 ** 24, pathsMax: 10_000, pathMaxBytes: 4096 }

export const trail = { hops: 0, via: [], forward: true }
export const hopRules = { hopsMax: 3, ownHosts: ['gateway.example'] }

/** The source of these gateways with short patience. */
export function gateways(
  urls: readonly string[],
  trusted = true,
  stallMs = 30_000,
  headMs = 10_000,
  clock: Clock = systemClock,
): GatewaySource {
  const options = {
    gateways: urls.map((url, index) => ({ url, priority: index, trusted })),
    headMs,
    stallMs,
    ...hopRules,
    release: 'test',
    connectionsMax: 16,
  }
  return new GatewaySource(options, clock)
}

/** The same where each request waits for its answer, however late: no other gateway gets it meanwhile. */
export function patientGateways(urls: readonly string[]): GatewaySource {
  return gateways(urls, true, 30_000, 10_000, new HandClock())
}

/** A fetcher with everything around it, in one thread, on a folder of its own. */
export async function rig(options: RigOptions): Promise<Rig> {
  const path = options.path ?? scratch('source')
  const generations = new Generations()
  const keeperActor = new CatalogKeeper(
    { path: join(path, 'catalog'), touchEveryMs: 0 },
    generations,
    options.clock ?? systemClock,
  )
  const keeper = localAddress<CatalogRequest, CatalogReply>((message) => keeperActor.handle(message))
  const catalog = new LmdbCatalog(join(path, 'catalog'), generations)
  const store = options.store ?? new BlobStore(join(path, 'blobs'))
  await store.prepare()
  const kept: Kept[] = []
  const table = new ProgressTable(new SharedArrayBuffer(progressBytes(options.slots ?? 256)))
  const roots = new BlobRoots(catalog, store, systemClock)
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const { fetcher, blobCache, manifests } = await openFetcher({
    source: options.source,
    progress: table,
    store,
    catalog,
    keeper,
    roots,
    prover: new InlineProver(),
    packer: options.packer ?? new InlinePacker(),
    manifestsPath: join(path, 'manifests'),
    manifests: { limits: manifestLimits, cacheMaxBytes: 2 ** 26, flightsMax: 64, ...options.manifests },
    ...(options.forbidden === undefined ? {} : { forbidden: options.forbidden }),
    meters,
    log: silentLog,
    fetch: { digestBufferMaxBytes: 1024, finishBytes: 1024, finishShare: 0.75, ...options.fetch },
    rules: {
      fetchesMax: 64,
      joinBytes: 4096,
      wholeForWindowMaxBytes: 1_048_576,
      trail: hopRules,
      ...options.fetcher,
    },
    onKept: (one) => kept.push(one),
  })
  await manifests.takeOver((digest) => catalog.blobSize(digest) !== undefined)
  const ports: MessagePort[] = []
  return {
    path,
    meters,
    catalog,
    keeper,
    store,
    blobCache,
    manifests,
    fetcher,
    kept,
    edge() {
      const { port1, port2 } = new MessageChannel()
      ports.push(port1, port2)
      const progressReader = new ProgressReader(new ProgressTable(table.memory))
      const caller = answer<SourceRequest, SourceReply, SourceProgress>(port2, (message, caller) =>
        fetcher.handle(message, caller),
      )
      port2.on('close', () => fetcher.forget(caller))
      const address = addressOf<SourceRequest, SourceReply, SourceProgress>(port1, 1024, {
        hear: progressReader.hear,
      })
      const transfers = new TransferClient(address, progressReader, systemClock)
      return {
        address,
        transfers,
        port: port1,
        async open(id, window, more) {
          const reply = await address.ask({
            kind: 'open',
            id,
            hints: {},
            provenance: trail,
            ...(window === undefined ? {} : { window }),
            ...more,
          })
          if (isRefusal(reply)) return reply
          if (reply.kind === 'refused') return reply.refusal
          if (reply.kind !== 'opened') throw new Error(reply.kind)
          return reply
        },
        grow: (opened) => transfers.grow(opened),
      }
    },
    drafts: () => readdir(join(path, 'blobs', 'tmp')),
    async close() {
      await fetcher.stop()
      roots.close()
      for (const port of ports) port.close()
      await catalog.close()
      await keeperActor.close()
      if (options.path === undefined) await rm(path, { recursive: true, force: true })
    },
  }
}

/** Reads content from `start` to `end`; short where the source broke. */
export async function drain(content: Content, start: number, end: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let at = start
  while (at < end) {
    const piece = content.read(at, end)
    if (piece !== undefined) {
      pieces.push(Buffer.from(piece))
      at += piece.length
    } else if (!(await content.ready(at, end))) break
  }
  return Buffer.concat(pieces)
}

/** Insists that an open succeeded. */
export function sure(opened: Opened | Refusal): Opened {
  if (isRefusal(opened)) throw new Error(`refused: ${opened.refused}, ${opened.message}`)
  return opened
}
