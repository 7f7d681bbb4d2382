import { systemClock } from '../../actor/clock.js'
import { createLog, type Log } from '../../actor/log.js'
import { answer } from '../../actor/mailbox-address.js'
import { Meters } from '../../actor/meter.js'
import { meterTable } from '../../actor/meter-table.js'
import type { OpenThread } from '../../actor/run-thread.js'
import { Clients } from '../../admission/clients.js'
import { RemoteChain } from '../../chain/remote-chain.js'
import type { Request } from '../../http/exchange.js'
import { shaped } from '../../http/openapi.js'
import type { MoneyLedger } from '../../ledger/ledger-port.js'
import { openLedger } from '../../ledger/open.js'
import { moveAliases } from '../../payment/books/alias-migration.js'
import { moveApprovals } from '../../payment/books/approval-migration.js'
import { Wallets } from '../../payment/books/wallets.js'
import type { CardProvider } from '../../payment/cards/card-provider.js'
import { LocalCards } from '../../payment/cards/local-cards.js'
import { noCards } from '../../payment/cards/no-cards.js'
import { StripeCards } from '../../payment/cards/stripe-cards.js'
import { devnetWallet } from '../../payment/chains/devnet-wallet.js'
import { chainReaders } from '../../payment/chains/readers.js'
import { SmtpMailer } from '../../payment/letters/smtp-mailer.js'
import {
  answersCredits,
  type CreditsReply,
  type CreditsRequest,
} from '../../payment/links/credits-messages.js'
import { RemoteFreeTier } from '../../payment/links/remote-free-tier.js'
import { LocalNameRegistry } from '../../payment/names/name-registry.js'
import { nameShapes } from '../../payment/names/name-shapes.js'
import { CreditsDesk, statementCsv } from '../../payment/operator/credits-desk.js'
import { PaymentService } from '../../payment/payment-service.js'
import { HttpOracle } from '../../payment/prices/http-oracle.js'
import { fixedOracle, ledgerMemory, type Oracle } from '../../payment/prices/oracle.js'
import { paymentParameters } from '../../payment/requests/payment-parameters.js'
import { paymentShapes, usdcShapes } from '../../payment/requests/payment-shapes.js'
import { orderShapes, serviceShapes } from '../../payment/requests/service-shapes.js'
import type { PaymentServiceParts } from '../../payment/service-parts.js'
import { AdminKey } from '../../routes/admin/admin-key.js'
import { adminRoute } from '../../routes/admin/admin-route.js'
import { creditOrders } from '../../routes/admin/service-orders.js'
import { serviceMetricsRoutes } from '../../routes/service-metrics.js'
import { serviceHost } from '../../serving/service-host.js'
import { FreePools } from '../../upload/records/free-pools.js'
import { openUploadTables } from '../../upload/records/uploads.js'
import { uploaderAddress } from '../../upload/requests/uploader.js'
import { chainOptions } from '../chain-options.js'
import { clientsOf, paceOf } from '../client-options.js'
import { logsThrows, type ServiceListeners, serviceListeners } from '../service-listeners.js'
import type { ThreadNews } from '../thread-news.js'
import { openSharedFree } from '../upload/open-shared-free.js'
import { freeRules, uploadFolders } from '../upload-options.js'
import type { PaymentGiven, PaymentReady } from './payment-given.js'
import {
  connectionsMax,
  devnetWalletPath,
  ledgerPlace,
  mailOptions,
  oracleUrls,
  serviceOptions,
  soldNames,
  stripeOptions,
  x402Options,
} from './payment-options.js'
import { readerOptions } from './top-up-options.js'

/** Stripe keeps events for a month; those of three days are delivered again. */
const catchUpMs = 3 * 24 * 3600_000

/** What earlier versions have kept otherwise. Before anybody spends. */
async function moveOldRecords(ledger: MoneyLedger, log: Log): Promise<void> {
  const wallets = new Wallets(ledger)
  await moveApprovals(ledger, wallets, log)
  await moveAliases(ledger, wallets, log)
}

/** The payment service: the one writer of the ledger, and the sockets of its port. */
export async function openPayment(given: PaymentGiven): Promise<OpenThread> {
  const { settings, memory, nodes } = given
  const { server } = settings
  const log = createLog(server.logLevel, 'payment')
  const meters = new Meters(meterTable, memory.meters, memory.rows.payment)
  const ledger = await openLedger(ledgerPlace(settings), systemClock)
  await moveOldRecords(ledger, log)
  const chain = new RemoteChain(chainOptions(nodes, settings), systemClock)
  const urls = oracleUrls(settings)
  // Prices change by some percent an hour: a minute is new enough, and ten are too old to sell by.
  const source = { urls, askEveryMs: 60_000, staleMs: 600_000, limitMs: 10_000 }
  const oracle =
    urls.length === 0 ? fixedOracle() : new HttpOracle(source, systemClock, log, ledgerMemory(ledger))
  const walletPath = devnetWalletPath(settings)
  const made = walletPath === undefined ? {} : { arweave: await devnetWallet(walletPath) }
  const free = openFreeTier(given, log)
  const clients = new Clients(clientsOf(settings), { low: 0, high: 0 })
  const clientOf = (request: Request): string => clients.of(request).address
  const base = (): string => `http://${given.serve.host}:${listener.port}`
  const service = new PaymentService({
    ...soldThings(given, meters),
    ...free.parts,
    ledger,
    oracle,
    networkPrice: (bytes) => chain.price(bytes),
    readers: chainReaders(readerOptions(settings), chain, systemClock),
    cards: cardsOf(given, ledger, base),
    meters,
    clientOf,
    clock: systemClock,
    log,
    options: serviceOptions(given, made),
  })
  await service.promotions.count()
  const desk = deskOf(service, { ledger, oracle, meters })
  const adminKey = new AdminKey(given.adminKey)
  const tools = { log, meters, clientOf, adminKey }
  const listener = listen(given, service, desk, tools)
  const answering = answersCredits(service.credits, service.usdc)
  await listener.listening
  const missed = service.catchUp(systemClock.now() - catchUpMs)
  void missed.catch((error: unknown) =>
    log.error({ err: error }, 'missed events of card payments could not be fetched'),
  )
  return {
    ready: { port: listener.port } satisfies PaymentReady,
    connect: (port) => answer<CreditsRequest, CreditsReply>(port, answering),
    onMessage: (news) => tell({ clients, service, free, adminKey, listener }, news as ThreadNews<'payment'>),
    async close() {
      await listener.close(server.drainMs)
      desk.close()
      await service.close()
      await free.close()
      oracle.close()
      await chain.close()
    },
  }
}

/** Takes up certificates, or settings that were read again. */
function tell(
  {
    clients,
    service,
    free,
    adminKey,
    listener,
  }: {
    readonly clients: Clients
    readonly service: PaymentService
    readonly free: ReturnType<typeof openFreeTier>
    readonly adminKey: AdminKey
    readonly listener: ServiceListeners
  },
  news: ThreadNews<'payment'>,
): void {
  if ('certificates' in news) {
    listener.onMessage(news)
    return
  }
  clients.use(clientsOf(news.settings))
  service.exclude(news.settings.exclusions.excludedSenders)
  free.exempt(freeRules(news.settings).exemptWallets)
  if (news.adminKey !== undefined) adminKey.use(news.adminKey)
}

async function remainingOf(pools: FreePools, address: string, client: string): Promise<number | null> {
  const range = uploaderAddress(client)
  await pools.refresh(address, range)
  return pools.leftNow(address, range)
}

/** Who counts what is free: the tables of the upload service of this program, or a service elsewhere. */
function openFreeTier(
  { settings, isUploadHere }: PaymentGiven,
  log: Log,
): {
  readonly parts: Pick<PaymentServiceParts, 'free'>
  exempt(wallets: readonly string[]): void
  close(): Promise<void>
} {
  const { uploadUrl } = settings.services
  const tables = isUploadHere ? openUploadTables(uploadFolders(settings).tables) : undefined
  const pools = tables && new FreePools(tables, freeRules(settings))
  const elsewhere = uploadUrl === undefined ? undefined : new RemoteFreeTier(uploadUrl, systemClock)
  const shared =
    pools && elsewhere === undefined ? openSharedFree(settings, pools, log, { isReading: true }) : undefined
  const free =
    elsewhere ??
    (pools && { remaining: (address: string, client: string) => remainingOf(pools, address, client) })
  return {
    parts: free === undefined ? {} : { free },
    exempt: (wallets) => pools?.exempt(wallets),
    async close() {
      await (await shared)?.close()
      await tables?.close()
      await elsewhere?.close()
    },
  }
}

/** Names, letters and payments in USDC, as far as there are any. */
function soldThings(
  given: PaymentGiven,
  meters: Meters,
): Pick<PaymentServiceParts, 'names' | 'mailer' | 'x402'> {
  const names = soldNames(given.settings)
  const mail = mailOptions(given.settings)
  const x402 = x402Options(given)
  return {
    ...(names === undefined ? {} : { names: new LocalNameRegistry(names, systemClock.now) }),
    ...(mail === undefined ? {} : { mailer: new SmtpMailer(mail) }),
    ...(x402 === undefined ? {} : { x402: { options: x402, meters } }),
  }
}

/** Card payments: by the provider; on devnet by a page on this machine at `base`. */
function cardsOf({ settings }: PaymentGiven, ledger: MoneyLedger, base: () => string): CardProvider {
  const stripe = stripeOptions(settings)
  if (stripe !== undefined) return new StripeCards(stripe)
  return settings.server.network === 'devnet' ? new LocalCards(ledger, base) : noCards
}

/** What the operator sees and corrects. */
function deskOf(
  service: PaymentService,
  parts: { readonly ledger: MoneyLedger; readonly oracle: Oracle; readonly meters: Meters },
): CreditsDesk {
  return new CreditsDesk({
    ...parts,
    clock: systemClock,
    reconciler: service.reconciler,
    balanceOf: (address) => service.balanceOf(address),
  })
}

/** The listener of the service. */
function listen(
  { settings, serve: place, tls, memory }: PaymentGiven,
  service: PaymentService,
  desk: CreditsDesk,
  {
    log,
    meters,
    clientOf,
    adminKey,
  }: Pick<PaymentServiceParts, 'log'> & {
    readonly meters: Meters
    readonly adminKey: AdminKey
    readonly clientOf: (request: Request) => string
  },
): ServiceListeners {
  const { release } = settings.server
  const operated = creditOrders({
    overview: () => desk.overview(),
    account: (address) => desk.account(address),
    statement: async (address) => statementCsv(await desk.statement(address)),
    correct: (correction) => desk.correct(correction),
  })
  const host = serviceHost({
    routes: [
      ...shaped(service.routes, {
        ...paymentShapes,
        ...serviceShapes,
        ...(soldNames(settings) === undefined ? {} : nameShapes),
        ...(service.usdc === undefined ? {} : { ...usdcShapes, ...orderShapes }),
      }),
      ...serviceMetricsRoutes(['/metrics'], meters, release, systemClock),
      adminRoute({ pathPrefix: '', key: adminKey, orders: operated, log, clientOf }),
    ],
    service: {
      title: 'Sluice payments',
      description: 'Credits for permanent storage: balances, prices, top-ups.',
      release,
      parameters: paymentParameters,
      securitySchemes: { service: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
    family: 'payment',
    hidesOperators: tls?.hidesOperators === true,
    meters,
    log,
    clock: systemClock,
  })
  const onThrow = logsThrows(log)
  const options = { ...paceOf(settings), ...connectionsMax(memory), ...place, clientOf, onThrow }
  return serviceListeners(host, options, tls)
}
