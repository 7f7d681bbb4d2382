import { parentPort, workerData } from 'node:worker_threads'
import { answer } from '../src/actor/address.js'
import { systemClock } from '../src/actor/clock.js'
import { keepHeartbeat } from '../src/actor/heartbeats.js'
import { createLog } from '../src/actor/log.js'
import { Meters } from '../src/actor/meter.js'
import { meterTable } from '../src/actor/meters.js'
import type { ThreadOrder } from '../src/actor/thread.js'
import { Clients } from '../src/admission/clients.js'
import { RemoteChain } from '../src/chain/remote.js'
import { serviceHost } from '../src/gateway/service-host.js'
import type { Request } from '../src/http/exchange.js'
import { serve } from '../src/http/listen.js'
import { shaped } from '../src/http/openapi.js'
import { openLedger } from '../src/ledger/open.js'
import { moveApprovals } from '../src/payment/approval-migration.js'
import { CreditsDesk, statementCsv } from '../src/payment/desk.js'
import { devnetWallet } from '../src/payment/devnet-wallet.js'
import { HttpOracle } from '../src/payment/http-oracle.js'
import { LocalCards } from '../src/payment/local-cards.js'
import { LocalNameRegistry } from '../src/payment/name-registry.js'
import { nameShapes } from '../src/payment/name-shapes.js'
import { noCards } from '../src/payment/no-cards.js'
import { fixedOracle, ledgerMemory } from '../src/payment/oracle.js'
import { paymentParameters } from '../src/payment/parameters.js'
import { type CreditsReply, type CreditsRequest, creditsAnswering } from '../src/payment/protocol.js'
import { chainReaders } from '../src/payment/readers.js'
import { RemoteFreeTier } from '../src/payment/remote-free-tier.js'
import { PaymentService } from '../src/payment/service.js'
import { orderShapes, serviceShapes } from '../src/payment/service-shapes.js'
import { paymentShapes, usdcShapes } from '../src/payment/shapes.js'
import { SmtpMailer } from '../src/payment/smtp-mailer.js'
import { StripeCards } from '../src/payment/stripe-cards.js'
import { Wallets } from '../src/payment/wallets.js'
import type { PaymentThread, PaymentThreadSaid } from '../src/payment/wiring.js'
import { AdminRoute } from '../src/routes/admin/admin-route.js'
import { AdminKey } from '../src/routes/admin/key.js'
import { creditOrders } from '../src/routes/admin/service-orders.js'
import { serviceMetricsRoutes } from '../src/routes/service-metrics.js'
import { FreePools } from '../src/upload/free-pools.js'
import { openUploadTables } from '../src/upload/uploads.js'

/** The thread of the payment service: the one writer of the ledger, and the sockets of its port. */
if (parentPort === null) throw new Error('this file runs as a thread')
const parent = parentPort
const options = workerData as PaymentThread
const log = createLog(options.logLevel, 'payment')
const meters = new Meters(meterTable, options.meters, options.row)
const ledger = await openLedger(options, systemClock)
// Before anybody spends.
await moveApprovals(ledger, new Wallets(ledger), log)
const chain = new RemoteChain(options.chain, systemClock)
const { devnetWalletPath, stripe, oracleUrls } = options
// Prices change by some percent an hour: a minute is new enough, and ten are too old to sell by.
const asked = { urls: oracleUrls, askEveryMs: 60_000, staleMs: 600_000, limitMs: 10_000 }
const oracle =
  oracleUrls.length === 0 ? fixedOracle() : new HttpOracle(asked, systemClock, log, ledgerMemory(ledger))
const made = devnetWalletPath === undefined ? {} : { arweave: await devnetWallet(devnetWalletPath) }
const base = (): string => `http://${options.serve.host}:${server.port}`
const cards =
  stripe !== undefined ? new StripeCards(stripe) : options.localCards ? new LocalCards(ledger, base) : noCards
const { free, uploadUrl } = options
const uploads = free === undefined ? undefined : openUploadTables(free.tablesPath)
const pools = free === undefined || uploads === undefined ? undefined : new FreePools(uploads, free.rules)
const elsewhere = uploadUrl === undefined ? undefined : new RemoteFreeTier(uploadUrl, systemClock)
const counted = elsewhere ?? (pools && { remaining: async (address: string) => pools.leftNow(address) })
const clients = new Clients(options.clients, { low: 0, high: 0 })
const clientOf = (request: Request): string => clients.of(request).address
const service = new PaymentService({
  ...(counted === undefined ? {} : { free: counted }),
  ledger,
  oracle,
  networkPrice: (bytes) => chain.price(bytes),
  readers: chainReaders(options.readers, chain, systemClock),
  cards,
  ...(options.names === undefined ? {} : { names: new LocalNameRegistry(options.names, systemClock.now) }),
  ...(options.mail === undefined ? {} : { mailer: new SmtpMailer(options.mail) }),
  ...(options.x402 === undefined ? {} : { x402: { options: options.x402, meters } }),
  meters,
  clientOf,
  clock: systemClock,
  log,
  options: {
    ...options,
    addresses: { ...made, ...options.addresses },
    giftUrl: options.giftUrl ?? `http://${options.serve.host}:${options.serve.port}/gift`,
  },
})
await service.promotions.count()
const desk = new CreditsDesk({
  ledger,
  oracle,
  meters,
  clock: systemClock,
  reconciler: service.reconciler,
  balanceOf: (address) => service.balanceOf(address),
})
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
      ...(options.names === undefined ? {} : nameShapes),
      ...(service.usdc === undefined ? {} : { ...usdcShapes, ...orderShapes }),
    }),
    ...serviceMetricsRoutes(['/metrics'], meters, options.release),
    new AdminRoute('', new AdminKey(options.adminKey), operated, log, (asked) => clients.of(asked).address),
  ],
  service: {
    title: 'Sluice payments',
    description: 'Credits for permanent storage: balances, prices, top-ups.',
    release: options.release,
    parameters: paymentParameters,
    securitySchemes: { service: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
  },
  family: 'payment',
  meters,
  log,
  clock: systemClock,
})
const onThrow = (error: unknown): void => log.error({ err: error }, 'a flow threw: its socket was closed')
const server = serve(host, { ...options.serve, clientOf, onThrow })
const answering = creditsAnswering(service.credits, service.usdc)

async function stop(): Promise<void> {
  await server.close(options.drainMs)
  desk.close()
  await service.close()
  await uploads?.close()
  await elsewhere?.close()
  oracle.close()
  await chain.close()
  process.exit(0)
}

parent.on('message', (order: ThreadOrder) => {
  if ('stop' in order) void stop()
  else answer<CreditsRequest, CreditsReply>(order.connect, answering)
})
keepHeartbeat()
await server.listening
// Stripe keeps events for a month; those of three days are told again by it.
const missed = service.catchUp(systemClock.now() - 3 * 24 * 3600_000)
void missed.catch((error: unknown) =>
  log.error({ err: error }, 'missed events of card payments could not be fetched'),
)
parent.postMessage({ ready: { port: server.port } satisfies PaymentThreadSaid })
