import { hearsBlockNews } from '../../actor/block-news.js'
import { systemClock, withinTime } from '../../actor/clock.js'
import { createLog } from '../../actor/log.js'
import { addressOf } from '../../actor/mailbox-address.js'
import type { OpenThread } from '../../actor/run-thread.js'
import { Clients } from '../../admission/clients.js'
import { Broadcast } from '../../chain/broadcast.js'
import { DataWitnesses } from '../../chain/data-witnesses.js'
import { getHead } from '../../devnet/get-head.js'
import { shaped } from '../../http/openapi.js'
import type { IngestReply, IngestRequest } from '../../ingest/ingest-messages.js'
import { permanentEvent } from '../../ingest/webhook-events.js'
import { listedAddress, normalizedAddress } from '../../proof/owner-address.js'
import { AdminKey } from '../../routes/admin/admin-key.js'
import { adminRoute } from '../../routes/admin/admin-route.js'
import { uploadOrders } from '../../routes/admin/service-orders.js'
import { serviceMetricsRoutes } from '../../routes/service-metrics.js'
import { serviceHost } from '../../serving/service-host.js'
import { Bundles, unseenWarnings } from '../../upload/bundling/bundle-records.js'
import { Bundler } from '../../upload/bundling/bundler.js'
import type { Height } from '../../upload/intake/height.js'
import { announceLogged } from '../../upload/news/read-announcement.js'
import { Sandbox } from '../../upload/news/upload-sandbox.js'
import { uploadSecret } from '../../upload/parts/upload-secret.js'
import { itemKey } from '../../upload/records/item-key.js'
import { uploadHostRoutes } from '../../upload/requests/upload-route.js'
import { DiskRoom } from '../../upload/room/disk-room.js'
import { serviceInfo, servicePage } from '../../upload/routes/service-page.js'
import { uploadPage } from '../../upload/routes/upload-page.js'
import { uploadParameters, uploadShapes } from '../../upload/routes/upload-shapes.js'
import { UploadsDesk } from '../../upload/uploads-desk.js'
import { chainOptions, isEmbedded } from '../chain-options.js'
import { clientsOf, paceOf } from '../client-options.js'
import { itemKeyPath } from '../key-paths.js'
import { logsThrows, type ServiceListeners, serviceListeners } from '../service-listeners.js'
import type { ThreadNews } from '../thread-news.js'
import {
  bundlingRules,
  freeRules,
  itemMaxBytes,
  sandboxRules,
  uploadFolders,
  uploadMailboxMax,
} from '../upload-options.js'
import { openSharedParts, type SharedParts } from './open-shared-parts.js'
import { gatewaysOf, openUploadAccepting, type UploadAccepting } from './upload-accepting.js'
import { openUploadEndpoints, type UploadEndpoints } from './upload-endpoints.js'
import type { UploadGiven, UploadReady } from './upload-given.js'
import { openUploadRecords, type UploadRecords, type UploadTools, uploadTools } from './upload-records.js'

/** At its end the service does not wait longer for sales that are being continued. */
const drivingMs = 5000

/** What the parts of the upload service stand on. */
interface UploadParts {
  readonly given: UploadGiven
  readonly tools: UploadTools
  readonly records: UploadRecords
  readonly accepting: UploadAccepting
  readonly bundles: Bundles
  readonly diskRoom: DiskRoom
  readonly clients: Clients
  /** Wallets whose items are refused. */
  readonly blockedOwners: Set<string>
  readonly adminKey: AdminKey
  /** Address of the service's wallet. */
  readonly address: string
  /** Undefined: uploads in parts belong to this machine. */
  readonly shared: SharedParts | undefined
}

/** Follows the height of the chain. */
function startHeight(height: Height, settings: UploadGiven['settings']): Promise<void> {
  if (isEmbedded(settings)) return height.start(15_000, hearsBlockNews)
  return height.start(settings.server.network === 'devnet' ? 2000 : 15_000)
}

/** The upload service: its sockets, the log of accepted items, and what becomes of them. */
export async function openUpload(given: UploadGiven): Promise<OpenThread> {
  const { settings, mintAt } = given
  const { server, uploads: rules } = settings
  const log = createLog(server.logLevel, 'upload')
  const tools = await uploadTools(given, log)
  const records = await openUploadRecords(given, tools)
  const blockedOwners = new Set(rules.blockedOwners.map(listedAddress))
  const accepting = openUploadAccepting(given, tools, records, blockedOwners)
  const { intake, announcer, openSales, height, credits } = accepting
  const { closing } = tools
  const logFolder = uploadFolders(settings).log
  await startHeight(height, settings)
  announceLogged(records.lost, logFolder, announcer)
  const parts: UploadParts = {
    given,
    tools,
    records,
    accepting,
    bundles: new Bundles(records.uploads.environment, records.uploads),
    diskRoom: diskRoomOf(given),
    // Its keys name no bucket: any secret will do.
    clients: new Clients(clientsOf(settings), { low: 0, high: 0 }),
    blockedOwners,
    adminKey: new AdminKey(given.adminKey),
    address: normalizedAddress(Buffer.from(tools.modulus, 'base64url')),
    shared: await openSharedParts(given, tools, accepting.signing),
  }
  const endpoints = openEndpoints(parts)
  // The first price is requested from a node: no uploader waits for that.
  void credits?.price(1)
  // A chain of this program alone: what is spent there is worth nothing.
  if (mintAt !== undefined) await getHead(`${mintAt}/mint/${parts.address}/${10n ** 18n}`)
  const bundling = openBundling(parts, endpoints)
  bundling.start()
  const telling = startTelling(records, intake)
  const driving = openSales.drive((sale) => intake.resumeIdle(sale), closing.signal)
  const listener = listen(parts, endpoints, bundling.desk)
  await listener.listening
  return {
    ready: { port: listener.port } satisfies UploadReady,
    log,
    onMessage: (news) => tell(parts, listener, news as ThreadNews<'upload'>),
    async close() {
      await listener.close(server.drainMs)
      // Before what is waited for: a disk that is full would be waited for, too.
      closing.abort()
      await endpoints.open.close()
      await parts.shared?.close()
      await bundling.close()
      await records.webhooks?.stop()
      // A sale between two steps writes to log and tables. One that waits for others longer goes on after the next start.
      await Promise.all([telling, withinTime(systemClock, drivingMs, driving, undefined)])
      await records.itemLog.close()
      await accepting.closePayment()
      await accepting.close()
      await Promise.all([records.sharedFree?.close(), records.sharedItems?.close()])
      await records.uploads.environment.close()
    },
  }
}

/** Room for uploads on the disk of the log. */
function diskRoomOf({ settings, memory }: UploadGiven): DiskRoom {
  const freeMinBytes = settings.uploads.diskMinBytes ?? memory.disk.freeMinBytes
  return new DiskRoom(uploadFolders(settings).log, freeMinBytes, systemClock)
}

/** Takes up certificates, or settings that were read again. */
function tell(
  { clients, blockedOwners, records, adminKey }: UploadParts,
  listener: ServiceListeners,
  news: ThreadNews<'upload'>,
): void {
  if ('certificates' in news) {
    listener.onMessage(news)
    return
  }
  const { settings, adminKey: key } = news
  clients.use(clientsOf(settings))
  blockedOwners.clear()
  for (const one of settings.uploads.blockedOwners) blockedOwners.add(listedAddress(one))
  records.pools.exempt(freeRules(settings).exemptWallets)
  if (key !== undefined) adminKey.use(key)
}

/** Starts to notify webhooks and a gateway elsewhere; resolves after the last notification of the gateway. */
async function startTelling(
  { webhooks, receiptNews, news }: UploadRecords,
  intake: UploadAccepting['intake'],
): Promise<void> {
  void webhooks?.run()
  void receiptNews?.catchUp((item) => intake.receipt(item))
  await news?.run()
}

/** What pages and `/info` show. */
function shownOf({ given: { settings, gateway } }: UploadParts) {
  const { itemMaxBytes: freeItemBytes, walletBytes: freeWalletBytes } = freeRules(settings)
  return { gateway, itemMaxBytes: itemMaxBytes(settings), freeItemBytes, freeWalletBytes }
}

function openEndpoints(parts: UploadParts): UploadEndpoints {
  const { given, tools, records, accepting, diskRoom, clients, blockedOwners, address, shared } = parts
  const { settings } = given
  const { uploads: rules, server } = settings
  const { uploads, pools, sales, itemLog } = records
  const { credits, usdc, service, height } = accepting
  const shown = shownOf(parts)
  const sandbox = sandboxRules(settings)
  const info = { ...shown, free: freeRules(settings), ...(sandbox === undefined ? {} : { sandbox }) }
  return openUploadEndpoints({
    uploads,
    pools,
    sales,
    intake: accepting.intake,
    itemLog,
    late: records.late,
    ...(credits === undefined ? {} : { credits }),
    ...(usdc === undefined ? {} : { usdc }),
    ...(service === undefined ? {} : { service }),
    noRoomFor: (bytes = 0) => diskRoom.noRoomFor(bytes),
    storeRefusal: () => accepting.stored?.refusal,
    storeFault: () => accepting.stored?.fault,
    warnings: () => [...unseenWarnings(parts.bundles), ...(accepting.stored?.warnings ?? [])],
    disk: diskRoom,
    itemMaxBytes: shown.itemMaxBytes,
    blockedOwners,
    partsFolder: uploadFolders(settings).parts,
    partsMaxBytes: rules.partsMaxBytes,
    ...(shared === undefined ? {} : { shared }),
    ...(records.sharedItems === undefined ? {} : { machines: records.sharedItems }),
    secret: shared?.secret ?? uploadSecret(uploads),
    signer: itemKey(itemKeyPath(settings)),
    protocol: server.network === 'devnet' ? 'http' : 'https',
    clients,
    height: () => height.known,
    startedMs: systemClock.now(),
    page: servicePage({ ...shown, address, release: server.release }),
    uploadPage: uploadPage({ ...shown, paymentUrl: given.publicPaymentUrl }),
    info: () => serviceInfo(info, address, gatewaysOf(given)),
    clock: systemClock,
    logger: tools.log,
  })
}

interface Bundling {
  readonly desk: UploadsDesk
  start(): void
  close(): Promise<void>
}

/** Posts chunks of bundles: two nodes must take each, preferred ones get it first. */
function openBroadcast({ nodes, settings }: UploadGiven): Broadcast {
  const rules = { successesMin: 2, concurrency: 2, abortMs: 5000, responseMs: 30_000, perNodeMax: 16 }
  const { preferredPostUrls } = settings.chunks
  const preferred =
    preferredPostUrls === undefined ? {} : { preferred: { nodes: preferredPostUrls, successesMin: 0 } }
  return new Broadcast(chainOptions(nodes, settings), { ...rules, ...preferred }, systemClock)
}

/** Nodes that show the data of bundles: all that may have taken it, and no gateways. */
function openWitnesses({ nodes, settings }: UploadGiven): DataWitnesses {
  const { preferredPostUrls = [] } = settings.chunks
  return new DataWitnesses([...nodes, ...preferredPostUrls], chainOptions(nodes, settings), systemClock)
}

/** Puts accepted items into bundles, and sees them into blocks; in a sandbox, removes them after some days. */
function openBundling(parts: UploadParts, { open }: UploadEndpoints): Bundling {
  const { given, tools, records, accepting, address, bundles } = parts
  const { settings, ports } = given
  const { log, meters, modulus } = tools
  const { uploads, pools, news, webhooks, itemLog } = records
  const { chain, signing, announcer } = accepting
  const height = (): number | undefined => accepting.height.known
  const sandbox = sandboxRules(settings)
  const broadcast = openBroadcast(given)
  const witnesses = openWitnesses(given)
  const ingest = ports.ingest && addressOf<IngestRequest, IngestReply>(ports.ingest, uploadMailboxMax)
  const bundler = new Bundler({
    meters,
    isIdle: sandbox !== undefined,
    fromStore: async (item) => accepting.stored?.bringAgain(item),
    isTakenOver: async (items) => (await accepting.stored?.isTakenOver(items)) === true,
    onPermanent: ({ id, items }, at) => {
      for (let from = 0; from < items.length && webhooks !== undefined; from += 1000)
        webhooks.announce(items.slice(from, from + 1000).map((item) => permanentEvent(item, id, at)))
    },
    uploads,
    bundles,
    itemLog,
    logFolder: uploadFolders(settings).log,
    chain,
    broadcast,
    witnesses,
    signing,
    owner: Buffer.from(modulus, 'base64url'),
    address,
    height,
    onMined: (id) => {
      void ingest?.tell({ kind: 'queue-bundle', id })
      news?.addBundle(id)
    },
    clock: systemClock,
    logger: log,
    rules: bundlingRules(settings),
  })
  tools.bundler.set(bundler)
  const { partsMaxBytes } = settings.uploads
  const lines = { bundler, open, pools, chain, address, meters, clock: systemClock, height, partsMaxBytes }
  const desk = new UploadsDesk({ uploads, bundles, ...lines })
  const announced = news === undefined ? {} : { news }
  const removing =
    sandbox && new Sandbox({ uploads, itemLog, announcer, clock: systemClock, ...sandbox, ...announced })
  return {
    desk,
    start: () => {
      if (removing === undefined) bundler.start()
    },
    async close() {
      desk.close()
      removing?.close()
      await bundler.close()
      await Promise.all([broadcast.close(), witnesses.close()])
    },
  }
}

/** The listener of the service. */
function listen(
  { given, tools, clients, adminKey }: UploadParts,
  { routes }: UploadEndpoints,
  desk: UploadsDesk,
): ServiceListeners {
  const { settings, tls } = given
  const { release } = settings.server
  const { log, meters } = tools
  const host = serviceHost({
    routes: [
      ...shaped(uploadHostRoutes(routes), uploadShapes),
      ...serviceMetricsRoutes(
        ['/metrics', '/bundler_metrics', '/v1/bundler_metrics'],
        meters,
        release,
        systemClock,
      ),
      adminRoute({
        pathPrefix: '',
        key: adminKey,
        orders: uploadOrders(desk),
        log,
        clientOf: (request) => clients.of(request).address,
      }),
    ],
    service: {
      title: 'Sluice uploads',
      description: 'Signed data items in, signed receipts out.',
      release,
      parameters: uploadParameters,
      securitySchemes: { admin: { type: 'http', scheme: 'bearer' } },
    },
    family: 'upload',
    hidesOperators: tls?.hidesOperators === true,
    meters,
    log,
    clock: systemClock,
  })
  const onThrow = logsThrows(log)
  const clientOf = (request: Parameters<Clients['of']>[0]): string => clients.of(request).address
  return serviceListeners(host, { ...paceOf(settings), ...given.serve, clientOf, onThrow }, tls)
}
