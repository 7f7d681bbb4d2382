import { rmSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { addressOf } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { Meters } from '../src/actor/meter.js'
import { meterTable } from '../src/actor/meters.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { Clients } from '../src/admission/clients.js'
import type { CatalogReply, CatalogRequest } from '../src/catalog/protocol.js'
import { Broadcast } from '../src/chain/broadcast.js'
import { RemoteChain } from '../src/chain/remote.js'
import { getHead } from '../src/devnet/get-head.js'
import type { Id } from '../src/format/id.js'
import { serviceHost } from '../src/gateway/service-host.js'
import { serve } from '../src/http/listen.js'
import { shaped } from '../src/http/openapi.js'
import { ItemJudge } from '../src/ingest/item-judge.js'
import type { IngestReply, IngestRequest } from '../src/ingest/protocol.js'
import { acceptedEvent, permanentEvent } from '../src/ingest/webhook-events.js'
import { Webhooks } from '../src/ingest/webhooks.js'
import { paymentServiceLine } from '../src/payment/service-line.js'
import { normalizedAddress } from '../src/proof/address.js'
import { AdminRoute } from '../src/routes/admin/admin-route.js'
import { AdminKey } from '../src/routes/admin/key.js'
import { uploadOrders } from '../src/routes/admin/service-orders.js'
import { serviceMetricsRoutes } from '../src/routes/service-metrics.js'
import { Acceptor } from '../src/upload/acceptor.js'
import { Bundles } from '../src/upload/bundle-records.js'
import { Bundler } from '../src/upload/bundler.js'
import { FreeOnly } from '../src/upload/charging.js'
import { CreditCharging } from '../src/upload/credit-charging.js'
import { UploadsDesk } from '../src/upload/desk.js'
import { DiskRoom } from '../src/upload/disk-room.js'
import { FreePools } from '../src/upload/free-pools.js'
import { GatewayNews } from '../src/upload/gateway-news.js'
import { Height } from '../src/upload/height.js'
import { HeldRoom, sharesOfParts, sharesOfRequests } from '../src/upload/held-room.js'
import { InnerItems } from '../src/upload/inner-items.js'
import { openIntake } from '../src/upload/intake.js'
import { ItemAnnouncer } from '../src/upload/item-announcer.js'
import { itemKey } from '../src/upload/item-key.js'
import { keptItem } from '../src/upload/kept-items.js'
import { Multipart } from '../src/upload/multipart.js'
import { MultipartRecords } from '../src/upload/multipart-records.js'
import { multipartRoutes } from '../src/upload/multipart-routes.js'
import { OpenUploads } from '../src/upload/open-uploads.js'
import { PaidParts, uploadSecret } from '../src/upload/paid-parts.js'
import { PartFiles } from '../src/upload/part-files.js'
import { PendingMarks } from '../src/upload/pending-marks.js'
import { RawUpload } from '../src/upload/raw-upload.js'
import { ReceiptNews } from '../src/upload/receipt-news.js'
import { ResumableUploads } from '../src/upload/resumable.js'
import { resumableRoutes } from '../src/upload/resumable-routes.js'
import { uploadRoutes } from '../src/upload/routes.js'
import { Sales } from '../src/upload/sales.js'
import { Sandbox } from '../src/upload/sandbox.js'
import { ItemSelling } from '../src/upload/selling.js'
import { hostedUploads, serviceInfo, uploadParameters } from '../src/upload/service.js'
import { serviceKey } from '../src/upload/service-key.js'
import { servicePage } from '../src/upload/service-page.js'
import { uploadShapes } from '../src/upload/shapes.js'
import { Sharing } from '../src/upload/sharing.js'
import { PooledSigning } from '../src/upload/signing.js'
import { SingleUpload } from '../src/upload/single-upload.js'
import { UploadHealth } from '../src/upload/upload-health.js'
import { pageScripts, uploadPage } from '../src/upload/upload-page.js'
import { openUploadTables, Uploads } from '../src/upload/uploads.js'
import { usdcUploadRoutes } from '../src/upload/usdc-routes.js'
import { UsdcUploads } from '../src/upload/usdc-uploads.js'
import { Verdicts } from '../src/upload/verdicts.js'
import type { UploadThread, UploadThreadSaid } from '../src/upload/wiring.js'

/** The thread of the upload service: its sockets, the log of accepted items, and what becomes of them. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const given = workerData as UploadThread
const log = createLog(given.logLevel, 'upload')
const closing = new AbortController()
const meters = new Meters(meterTable, given.meters, given.row)
// No gateway is named where there is none.
const gateways = given.gateway === '' ? [] : [given.gateway]

const { modulus } = await serviceKey(given.keyFile, given.mayMakeKey)
const uploads = new Uploads(
  openUploadTables(given.tablesPath),
  given.pendingItems && new PendingMarks(given.pendingItems),
)
const pools = new FreePools(uploads.environment, given.free)
const sales = new Sales(uploads.environment)
const webhooks =
  given.webhooks === undefined
    ? undefined
    : new Webhooks(given.webhooks.path, given.webhooks.options, { meters, clock: systemClock, log })
const news =
  given.news === undefined
    ? undefined
    : new GatewayNews({
        environment: uploads.environment,
        uploads,
        logFolder: given.logFolder,
        ...given.news,
        publicKey: modulus,
        clock: systemClock,
        say: log,
        closing: closing.signal,
      })
const receiptNews =
  webhooks &&
  new ReceiptNews({
    environment: uploads.environment,
    uploads,
    announce: (receipt, { place }) => webhooks.announce([acceptedEvent(receipt, place.sizeBytes)]),
  })
const onLost = (ids: readonly Id[]): void => {
  receiptNews?.add(ids)
  for (const id of ids) news?.addItem(id)
}
const { log: intake, lost } = await openIntake(given.logFolder, { uploads, sales, pools, log, onLost })
const chain = new RemoteChain(given.chain, systemClock)
const height = new Height(chain, uploads, systemClock, closing.signal, log)
const judge = new ItemJudge(given.proofThreads, log)
const signing = new PooledSigning(given.keyFile, given.signThreads, log)
const catalog =
  given.catalogPort === undefined
    ? undefined
    : addressOf<CatalogRequest, CatalogReply>(given.catalogPort, given.mailboxMax)
const room = new DiskRoom(given.logFolder, given.diskMinBytes, systemClock)
const payment = paymentServiceLine(given, systemClock)
const { credits } = payment
// Nobody pays for what is gone after some days.
const usdc = given.sandbox === undefined ? payment.usdc : undefined
const selling = new ItemSelling({
  sales,
  log: intake,
  clock: systemClock,
  say: log,
  ...(usdc === undefined ? {} : { usdc }),
})
const announcer = new ItemAnnouncer(catalog, closing.signal)
const charging =
  credits === undefined
    ? new FreeOnly(pools)
    : new CreditCharging(pools, credits, uploads.environment, systemClock, closing.signal)
const acceptedItems = meters.of('upload_items_accepted_total')
const acceptedBytes = meters.of('upload_item_bytes_total')
const verdicts = new Verdicts(judge, given.proofThreads + 1)
const inner = new InnerItems({
  uploads,
  verdicts,
  announcer,
  logFolder: given.logFolder,
  say: log,
  closing: closing.signal,
  isSandbox: given.sandbox !== undefined,
  clock: systemClock,
})
const acceptor = new Acceptor({
  ...(receiptNews === undefined ? {} : { receiptNews }),
  onAccepted: (items) => {
    acceptedItems.add(items.length)
    for (const { place } of items) acceptedBytes.add(place.sizeBytes)
    if (items.some(({ isBundle }) => isBundle === true)) inner.wake()
  },
  ...(news === undefined ? {} : { news }),
  opened: (bundle) => inner.opened(bundle),
  uploads,
  verdicts,
  charging,
  ...(credits === undefined ? {} : { sharing: new Sharing(credits) }),
  announcer,
  selling,
  signing,
  terms: {
    public: modulus,
    // A gateway elsewhere has the bytes from their block on; it is told of the item before.
    dataCaches: catalog === undefined ? [] : gateways,
    fastFinalityIndexes: catalog === undefined && news === undefined ? [] : gateways,
  },
  height: () => height.known,
  clock: systemClock,
  closing: closing.signal,
  say: log,
})
const taking = {
  acceptor,
  log: intake,
  itemMaxBytes: given.itemMaxBytes,
  blockedOwners: new Set(given.blockedOwners),
  full: (bytes = 0) => room.full(bytes),
  arriving: new HeldRoom({ ...sharesOfRequests, disk: room }),
}
// Its keys name no bucket: any secret will do.
const clients = new Clients(given.clients, { low: 0, high: 0 })
await height.start(given.heightEveryMs)
// The index may not know of these: the process ended first.
for (const item of lost) {
  const announced = keptItem(given.logFolder, item)
  if (announced !== undefined) void announcer.announce(announced)
}
const single = new SingleUpload(taking)
const payments = new UsdcUploads({
  sales,
  single,
  protocol: given.protocol,
  ...(usdc === undefined ? {} : { usdc }),
})
const records = new MultipartRecords(uploads.environment, systemClock)
const { itemMaxBytes } = given
const secret = uploadSecret(uploads)
const paidParts =
  usdc === undefined || credits === undefined
    ? undefined
    : new PaidParts({ payments, usdc, credits, records, secret, itemMaxBytes, clock: systemClock })
const open = new OpenUploads({
  ...taking,
  uploads,
  records,
  ...(paidParts === undefined ? {} : { paid: paidParts }),
  files: new PartFiles(given.partsFolder),
  room: new HeldRoom({ ...sharesOfParts, maxBytes: given.partsMaxBytes, disk: room }),
  clock: systemClock,
  say: log,
})
const owner = Buffer.from(modulus, 'base64url')
// What an earlier process was reading is of no use any more.
const rawFolder = `${given.partsFolder}-raw`
rmSync(rawFolder, { recursive: true, force: true })
const raw = new RawUpload({
  ...taking,
  pools,
  payments,
  signer: itemKey(given.itemKeyFile),
  clock: systemClock,
  folder: rawFolder,
})
// The first price is asked of a node: no uploader waits for that.
void credits?.price(1)
const address = normalizedAddress(owner)
// A chain of this program alone: what is spent there is worth nothing.
if (given.mintAt !== undefined) await getHead(`${given.mintAt}/mint/${address}/${10n ** 18n}`)
const broadcast = new Broadcast(given.chain, given.broadcast, systemClock)
const ingest =
  given.ingestPort === undefined
    ? undefined
    : addressOf<IngestRequest, IngestReply>(given.ingestPort, given.mailboxMax)
const bundles = new Bundles(uploads.environment, uploads)
const bundler = new Bundler({
  meters,
  isIdle: given.sandbox !== undefined,
  onPermanent: ({ id, items }, at) => {
    for (let from = 0; from < items.length && webhooks !== undefined; from += 1000)
      webhooks.announce(items.slice(from, from + 1000).map((item) => permanentEvent(item, id, at)))
  },
  uploads,
  bundles,
  log: intake,
  logFolder: given.logFolder,
  chain,
  broadcast,
  signing,
  owner,
  address,
  height: () => height.known,
  onMined: (id) => {
    void ingest?.tell({ kind: 'queue-bundle', id })
    news?.addBundle(id)
  },
  clock: systemClock,
  say: log,
  rules: given.bundling,
})
const shown = {
  gateway: given.gateway,
  itemMaxBytes,
  freeItemBytes: given.free.itemMaxBytes,
  freeWalletBytes: given.free.walletBytes,
}
const health = new UploadHealth({
  clock: systemClock,
  startedMs: systemClock.now(),
  height: () => height.known,
  full: () => room.full(),
  ...(credits === undefined ? {} : { credits }),
})
const desk = new UploadsDesk({
  uploads,
  bundles,
  bundler,
  open,
  pools,
  chain,
  address,
  meters,
  clock: systemClock,
  height: () => height.known,
  partsMaxBytes: given.partsMaxBytes,
})
const host = serviceHost({
  routes: [
    ...shaped(
      hostedUploads([
        ...multipartRoutes(new Multipart(open, paidParts), clients),
        ...usdcUploadRoutes({
          signed: payments,
          raw,
          clients,
          ...(usdc === undefined ? {} : { usdc }),
          ...(credits === undefined ? {} : { price: (bytes: number) => credits.price(bytes) }),
        }),
        ...resumableRoutes({
          resumable: new ResumableUploads(open, single, clients),
          page: uploadPage(shown),
          script: pageScripts(),
        }),
        ...uploadRoutes({
          uploads,
          single,
          clients,
          pools,
          ...(credits === undefined ? {} : { credits }),
          health,
          page: servicePage({ ...shown, address, release: given.release }),
          info: () => serviceInfo(given, address, gateways),
        }),
      ]),
      uploadShapes,
    ),
    ...serviceMetricsRoutes(['/metrics', '/bundler_metrics', '/v1/bundler_metrics'], meters, given.release),
    new AdminRoute(
      '',
      new AdminKey(given.adminKey),
      uploadOrders(desk),
      log,
      (asked) => clients.of(asked).address,
    ),
  ],
  service: {
    title: 'Sluice uploads',
    description: 'Signed data items in, signed receipts out.',
    release: given.release,
    parameters: uploadParameters,
    securitySchemes: { admin: { type: 'http', scheme: 'bearer' } },
  },
  family: 'upload',
  meters,
  log,
  clock: systemClock,
})
const sandbox =
  given.sandbox === undefined
    ? undefined
    : new Sandbox({
        uploads,
        log: intake,
        announcer,
        clock: systemClock,
        ...given.sandbox,
        ...(news === undefined ? {} : { news }),
      })
if (sandbox === undefined) bundler.start()
void webhooks?.run()
void receiptNews?.catchUp((item) => acceptor.receipt(item))
const telling = news?.run()
void selling.drive((sale) => acceptor.resume(sale), closing.signal)
const onThrow = (error: unknown): void => log.error({ err: error }, 'a flow threw: its socket was closed')
const server = serve(host, { ...given.serve, clientOf: (request) => clients.of(request).address, onThrow })

async function stop(): Promise<void> {
  await server.close(given.drainMs)
  // Before what is waited for: a disk that is full would be waited for, too.
  closing.abort()
  await open.close()
  desk.close()
  sandbox?.close()
  await bundler.close()
  await webhooks?.stop()
  await telling
  await intake.close()
  await payment.close()
  await inner.stopped()
  await acceptor.stopped()
  await Promise.all([chain.close(), broadcast.close(), judge.close(), signing.close()])
  await uploads.environment.close()
  process.exit(0)
}

// A bug: said here, because a thread that holds sockets takes the process with it when it ends.
process.on('uncaughtException', (error) => {
  log.fatal({ err: error }, 'uncaught: ending')
  process.exit(1)
})
parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) void stop()
})
keepHeartbeat()
await server.listening
parent.postMessage({ ready: { port: server.port } satisfies UploadThreadSaid })
