import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import { runningServices, servicePorts } from '../../config/services.js'
import type { Part } from '../actor/supervise.js'
import { chainOptions } from '../threads/chain-options.js'
import { clientsOf, paceOf } from '../threads/client-options.js'
import { folders } from '../threads/folders.js'
import { itemKeyPath, uploadWalletPath } from '../threads/key-paths.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import type { UploadThread, UploadThreadSaid } from '../upload/wiring.js'
import { diskShares } from './disk-shares.js'
import { found, urlOf } from './ports.js'
import { privateSecret } from './private-secret.js'
import { webhookOptions } from './webhooks.js'

/** The threads of the program, as far as this service needs them. */
interface UploadCrew {
  said<Said>(name: string): Said
  line(name: string): MessagePort
  part(name: string, file: string, data: () => object): Part
}

/** The upload service where it runs: what finds its port and what starts its thread, and how it is reached. */
export interface UploadPlace {
  readonly ports: Part[]
  readonly parts: Part[]
  urls(): Readonly<Record<string, string>>
  /** Where it will listen: known before it does. */
  address(): { readonly upload?: string }
}

/** Folders of the upload service: its tables, the log of accepted items, and parts of those that are not whole yet. */
export function uploadFolders(config: Config): {
  readonly tables: string
  readonly log: string
  readonly parts: string
} {
  const { root } = folders(config)
  return {
    tables: join(root, 'uploads'),
    log: join(root, 'uploads', 'log'),
    parts: join(root, 'upload-parts'),
  }
}

/** Whether the upload service runs in this program. */
export function hasUploads({ services, server }: Config): boolean {
  return runningServices(services, server.network).has('upload')
}

/** What is free, and where it is counted; undefined where the upload service does not run here. */
export function freeTierOf(
  config: Config,
): { readonly tablesPath: string; readonly rules: UploadThread['free'] } | undefined {
  return hasUploads(config)
    ? { tablesPath: uploadFolders(config).tables, rules: freeRules(config) }
    : undefined
}

/** What a sandbox takes, and gives for free. */
const sandboxSizes = { item: 10 * 2 ** 20, freeItem: 5 * 2 ** 20, freeWallet: 100 * 2 ** 20 }

function freeRules({ uploads }: Config): UploadThread['free'] {
  if (uploads.sandbox)
    return {
      itemMaxBytes: sandboxSizes.freeItem,
      walletBytes: sandboxSizes.freeWallet,
      rangeBytes: sandboxSizes.freeWallet,
      exemptWallets: uploads.freeWallets,
    }
  return {
    itemMaxBytes: uploads.freeItemBytes,
    walletBytes: uploads.freeWalletBytes,
    rangeBytes: uploads.freeRangeBytes,
    exemptWallets: uploads.freeWallets,
  }
}

export function uploadServiceOf(
  config: Config,
  shared: SharedMemory,
  crew: UploadCrew,
  given: {
    readonly host: string
    readonly nodes: () => readonly string[]
    readonly gateway: () => string
    readonly adminKey: () => string
  },
): UploadPlace {
  const { server, services } = config
  if (!hasUploads(config)) return { ports: [], parts: [], urls: () => ({}), address: () => ({}) }
  const running = runningServices(services, server.network)
  const { host, nodes, gateway, adminKey } = given
  let port = servicePorts(services, server.port).upload
  const data = (): UploadThread => ({
    ...uploadThread(config, gateway()),
    adminKey: adminKey(),
    row: shared.rows.upload,
    meters: shared.meters,
    serve: { host, port, ...paceOf(config) },
    chain: chainOptions(nodes(), config),
    ...(running.has('gateway')
      ? {
          catalogPort: crew.line('catalog'),
          ingestPort: crew.line('ingest'),
          pendingItems: shared.pendingItems,
        }
      : {}),
    ...(isEmbedded(config) ? { mintAt: nodes()[0] ?? '' } : {}),
    ...(services.paymentUrl !== undefined
      ? { credits: { url: services.paymentUrl, secret: privateSecret(config) } }
      : running.has('payment')
        ? { creditsPort: crew.line('payment') }
        : {}),
  })
  return {
    ports: [
      found(host, port, 'UPLOAD_PORT', (free) => {
        port = free
      }),
    ],
    parts: [crew.part('upload', 'upload', data)],
    address: () => ({ upload: urlOf(host, port) }),
    urls: () => ({ upload: urlOf(host, crew.said<UploadThreadSaid>('upload').port) }),
  }
}

/** Whether the chain is one of this program, where coins cost nothing. */
function isEmbedded({ server }: Config): boolean {
  return server.network === 'devnet' && server.trustedNodeUrls === undefined
}

/** What the settings say. */
function uploadThread(
  config: Config,
  gateway: string,
): Omit<UploadThread, 'adminKey' | 'row' | 'meters' | 'serve' | 'chain'> {
  const { server, uploads } = config
  const { root } = folders(config)
  const { tables, log, parts } = uploadFolders(config)
  return {
    drainMs: server.drainMs,
    tablesPath: tables,
    logFolder: log,
    keyFile: uploadWalletPath(config),
    itemKeyFile: itemKeyPath(config),
    mayMakeKey: uploads.walletFile === undefined,
    mailboxMax: 4096,
    heightEveryMs: server.network === 'devnet' ? 1000 : 15_000,
    clients: clientsOf(config),
    itemMaxBytes: uploads.sandbox ? sandboxSizes.item : uploads.itemMaxBytes,
    partsFolder: parts,
    partsMaxBytes: uploads.partsMaxBytes,
    blockedOwners: uploads.blockedOwners,
    free: freeRules(config),
    ...newsOf(config),
    protocol: server.network === 'devnet' ? 'http' : 'https',
    gateway,
    release: server.release,
    proofThreads: Math.max(1, server.edgeThreads >> 1),
    signThreads: server.edgeThreads,
    diskMinBytes: uploads.diskMinBytes ?? diskShares(root).freeMinBytes,
    bundling: bundlingRules(config),
    ...sandboxOf(config),
    ...webhooksOf(config),
    broadcast: { successesMin: 2, concurrency: 2, abortMs: 5000, responseMs: 30_000, perNodeMax: 16 },
    logLevel: server.logLevel,
  }
}

function sandboxOf({ uploads }: Config): Pick<UploadThread, 'sandbox'> {
  const keepMs = uploads.sandboxKeepSeconds * 1000
  return uploads.sandbox
    ? { sandbox: { keepMs, everyMs: Math.min(600_000, Math.max(250, keepMs / 10)) } }
    : {}
}

function webhooksOf(config: Config): Pick<UploadThread, 'webhooks'> {
  const { root, keys } = folders(config)
  const options = webhookOptions(config, keys)
  return options?.uploads === true ? { webhooks: { path: join(root, 'webhooks-uploads'), options } } : {}
}

/** A gateway elsewhere is told where both its address and its key are set. */
function newsOf({ uploads }: Config): Pick<UploadThread, 'news'> {
  const { gatewayAdminUrl: url, gatewayAdminKey: key } = uploads
  return url === undefined || key === undefined ? {} : { news: { url: url.replace(/\/$/, ''), key } }
}

/** How items are bundled. On devnet nobody waits for minutes. */
function bundlingRules({ server, uploads, indexing }: Config): UploadThread['bundling'] {
  const isDevnet = server.network === 'devnet'
  return {
    itemsMax: uploads.bundleItemsMax,
    bytesMax: uploads.bundleMaxBytes,
    waitMs: 1000 * (uploads.bundleWaitSeconds ?? (isDevnet ? 1 : 300)),
    everyMs: isDevnet ? 250 : 5000,
    depth: indexing.forkDepthMax,
    lookMs: isDevnet ? 500 : 60_000,
  }
}
