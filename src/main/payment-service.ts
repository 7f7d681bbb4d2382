import { join } from 'node:path'
import type { Config } from '../../config/read.js'
import { runningServices, servicePorts } from '../../config/services.js'
import type { Part } from '../actor/supervise.js'
import { facilitatorPath } from '../devnet/facilitator.js'
import type { PaymentThread, PaymentThreadSaid } from '../payment/wiring.js'
import { chainOptions } from '../threads/chain-options.js'
import { clientsOf, paceOf } from '../threads/client-options.js'
import { folders } from '../threads/folders.js'
import { namesFolder } from '../threads/host-names.js'
import { headKeyPath } from '../threads/key-paths.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { cdpKey, rpcOf } from './payments-thread.js'
import { found, urlOf } from './ports.js'
import { privateSecret } from './private-secret.js'
import { paymentAddresses, readerOptions } from './topup-options.js'

/** Three that know nothing of each other; the last knows neither AR nor what only the first two list. */
const publicOracles = [
  'https://api.coingecko.com/api/v3/simple/price',
  'https://min-api.cryptocompare.com/data/pricemulti',
  'https://api.coinbase.com/v2/exchange-rates',
]

/** The threads of the program, as far as this service needs them. */
interface PaymentCrew {
  said<Said>(name: string): Said
  part(name: string, file: string, data: () => object): Part
}

/** The payment service where it runs: what finds its port and what starts its thread, and how it is reached. */
export interface PaymentPlace {
  readonly ports: Part[]
  readonly parts: Part[]
  urls(): Readonly<Record<string, string>>
  /** Where it will listen: known before it does. */
  address(): { readonly payment?: string }
}

export function paymentServiceOf(
  config: Config,
  shared: SharedMemory,
  crew: PaymentCrew,
  given: {
    readonly host: string
    readonly nodes: () => readonly string[]
    readonly gateway: () => string
    readonly adminKey: () => string
    /** Absent: no upload service runs here. */
    readonly free: PaymentThread['free']
  },
): PaymentPlace {
  const { server, services } = config
  if (!runningServices(services, server.network).has('payment'))
    return { ports: [], parts: [], urls: () => ({}), address: () => ({}) }
  const { host, nodes, gateway, adminKey, free } = given
  let port = servicePorts(services, server.port).payment
  const { root } = folders(config)
  const data = (): PaymentThread => ({
    adminKey: adminKey(),
    row: shared.rows.payment,
    meters: shared.meters,
    serve: { host, port, ...paceOf(config), ...connections(shared) },
    clients: clientsOf(config),
    drainMs: server.drainMs,
    ledgerPath: join(root, 'ledger'),
    ...(config.topUps.databaseUrl === undefined ? {} : { databaseUrl: config.topUps.databaseUrl }),
    headKeyPath: headKeyPath(config),
    chain: chainOptions(nodes(), config),
    privateSecret: privateSecret(config),
    oracleUrls: config.topUps.oracleUrls ?? (server.network === 'devnet' ? [] : publicOracles),
    feePermille: services.feePermille,
    itemMicroUsd: services.itemMicroUsd,
    release: server.release,
    addresses: paymentAddresses(config),
    gateway: gateway(),
    ...(free === undefined ? {} : { free }),
    ...(services.uploadUrl === undefined ? {} : { uploadUrl: services.uploadUrl }),
    ...topUpsOf(config),
    ...(server.network === 'devnet' ? { names: soldNames(root) } : {}),
    ...mailOf(config),
    ...x402Of(config, nodes()),
    logLevel: server.logLevel,
  })
  return {
    ports: [
      found(host, port, 'PAYMENT_PORT', (free) => {
        port = free
      }),
    ],
    parts: [crew.part('payment', 'payment', data)],
    address: () => ({ payment: urlOf(host, port) }),
    urls: () => ({ payment: urlOf(host, crew.said<PaymentThreadSaid>('payment').port) }),
  }
}

function topUpsOf(
  config: Config,
): Pick<
  PaymentThread,
  'readers' | 'stripe' | 'localCards' | 'excluded' | 'recheckMs' | 'lostMs' | 'devnetWalletPath'
> {
  const { topUps, server } = config
  const {
    stripeKey: secretKey,
    stripeWebhookSecret: webhookSecret,
    stripeUrl: apiUrl,
    arweaveAddress,
  } = topUps
  const hasStripe = secretKey !== undefined && webhookSecret !== undefined
  const isDevnet = server.network === 'devnet'
  const wallet = join(folders(config).keys, 'devnet-payments.jwk')
  return {
    readers: readerOptions(config),
    ...(hasStripe
      ? { stripe: { secretKey, webhookSecret, ...(apiUrl === undefined ? {} : { apiUrl }) } }
      : {}),
    localCards: isDevnet,
    ...(isDevnet && arweaveAddress === undefined ? { devnetWalletPath: wallet } : {}),
    excluded: topUps.excluded,
    recheckMs: topUps.recheckSeconds * 1000,
    lostMs: topUps.lostSeconds * 1000,
  }
}

/** On devnet names are sold from the list of this machine. */
function soldNames(root: string): { readonly list: string; readonly leases: string } {
  return { list: namesFolder(root), leases: join(root, 'name-leases') }
}

const mailMs = 30_000

function mailOf({ topUps }: Config): Pick<PaymentThread, 'mail' | 'giftUrl'> {
  const { smtpUrl: url, smtpFrom: from, giftUrl } = topUps
  return {
    ...(url === undefined || from === undefined ? {} : { mail: { url, from, limitMs: mailMs } }),
    ...(giftUrl === undefined ? {} : { giftUrl }),
  }
}

/** Nobody's: what it is paid on devnet is worth nothing. */
const devnetUsdcWallet = '0x0000000000000000000000000000000000000402'

/**
 * Credits and uploads are sold for USDC where the operator has said who receives it and who settles it; and on a chain of this
 * program, whose node settles what is worth nothing.
 */
function x402Of(config: Config, nodes: readonly string[]): Pick<PaymentThread, 'x402'> {
  const { payments, server } = config
  const isOwn = server.network === 'devnet' && server.trustedNodeUrls === undefined
  const isUnset = payments.network === undefined && payments.facilitatorUrl === undefined
  const embedded =
    isOwn && isUnset
      ? {
          network: 'base' as const,
          wallet: devnetUsdcWallet,
          facilitatorUrl: `${nodes[0]}/${facilitatorPath}`,
        }
      : {}
  const { network, wallet, facilitatorUrl, settleTimeoutMs } = { ...payments, ...embedded }
  if (network === undefined || wallet === undefined || facilitatorUrl === undefined) return {}
  const cdp = cdpKey(config)
  return {
    x402: {
      network,
      wallet,
      facilitatorUrl,
      protocol: config.server.network === 'devnet' ? 'http' : 'https',
      recordsPath: join(folders(config).root, 'ledger-x402'),
      verifyMs: settleTimeoutMs,
      settleMs: Math.max(30_000, settleTimeoutMs),
      ...rpcOf(config, network),
      ...(cdp === undefined ? {} : { cdp }),
    },
  }
}

/** Few clients at once: a share of what the gateway may have. */
function connections({ descriptors }: SharedMemory): { readonly connectionsMax?: number } {
  return descriptors === undefined
    ? {}
    : { connectionsMax: Math.max(16, Math.min(4096, descriptors.socketsMax >> 2)) }
}
