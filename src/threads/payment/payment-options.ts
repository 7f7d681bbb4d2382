import { join } from 'node:path'
import { facilitatorPath } from '../../devnet/devnet-facilitator.js'
import type { LedgerPlace } from '../../ledger/open.js'
import type { StripeOptions } from '../../payment/cards/stripe-cards.js'
import type { SmtpOptions } from '../../payment/letters/smtp-mailer.js'
import type { PaymentServiceOptions } from '../../payment/service-parts.js'
import type { X402Options } from '../../payment/usdc/x402-processor.js'
import { folders } from '../folders.js'
import { namesFolder } from '../host-names.js'
import { headKeyPath } from '../key-paths.js'
import type { Settings } from '../thread-settings.js'
import { rpcOf } from './cashier-options.js'
import type { PaymentGiven } from './payment-given.js'
import { paymentAddresses } from './top-up-options.js'

/** Three that know nothing of each other; the last knows neither AR nor what only the first two list. */
const publicOracles = [
  'https://api.coingecko.com/api/v3/simple/price',
  'https://min-api.cryptocompare.com/data/pricemulti',
  'https://api.coinbase.com/v2/exchange-rates',
]

/** Sources of prices; none: a fixed table. */
export function oracleUrls({ server, credits }: Settings<'server' | 'credits'>): readonly string[] {
  return credits.oracleUrls ?? (server.network === 'devnet' ? [] : publicOracles)
}

/** Where the ledger is kept. */
export function ledgerPlace(config: Settings<'server' | 'credits'>): LedgerPlace {
  const { databaseUrl } = config.credits
  return {
    ledgerPath: join(folders(config).root, 'ledger'),
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
    headKeyPath: headKeyPath(config),
  }
}

/** The provider of card payments; undefined where none is set. */
export function stripeOptions({ cards }: Settings<'cards'>): StripeOptions | undefined {
  const { stripeKey: secretKey, stripeWebhookSecret: webhookSecret, stripeUrl: apiUrl } = cards
  if (secretKey === undefined || webhookSecret === undefined) return undefined
  return { secretKey, webhookSecret, ...(apiUrl === undefined ? {} : { apiUrl }) }
}

/** File of a wallet to be made, where payments in AR have no address: on devnet. */
export function devnetWalletPath(config: Settings<'server' | 'chains'>): string | undefined {
  const isMissing = config.server.network === 'devnet' && config.chains.arweaveAddress === undefined
  return isMissing ? join(folders(config).keys, 'devnet-payments.jwk') : undefined
}

/** Folders of the names that are sold on this machine: on devnet. */
export function soldNames(
  config: Settings<'server'>,
): { readonly list: string; readonly leases: string } | undefined {
  const { root } = folders(config)
  return config.server.network === 'devnet'
    ? { list: namesFolder(root), leases: join(root, 'name-leases') }
    : undefined
}

const mailMs = 30_000

/** The mail server; undefined: letters stay in the outbox. */
export function mailOptions({ mail }: Settings<'mail'>): SmtpOptions | undefined {
  const { smtpUrl: url, smtpFrom: from } = mail
  return url === undefined || from === undefined ? undefined : { url, from, limitMs: mailMs }
}

/** `made`: addresses of wallets that this program has made. */
export function serviceOptions(
  { settings, serve, gateway, privateSecret }: PaymentGiven,
  made: Readonly<Record<string, string>>,
): PaymentServiceOptions {
  const { credits, chains, exclusions, mail, server } = settings
  return {
    privateSecret,
    feePermille: credits.feePermille,
    itemMicroUsd: credits.itemMicroUsd,
    release: server.release,
    addresses: { ...made, ...paymentAddresses(settings) },
    gateway,
    excluded: exclusions.excludedSenders,
    recheckMs: chains.recheckSeconds * 1000,
    chainQuestionsPerSecond: chains.questionsPerSecond,
    lostMs: chains.lostSeconds * 1000,
    giftUrl: mail.giftUrl ?? `http://${serve.host}:${serve.port}/gift`,
  }
}

/** A wallet that nobody has a key of: the USDC that it is paid on devnet is worth nothing. */
const devnetUsdcWallet = '0x0000000000000000000000000000000000000402'

/**
 * Credits and uploads are sold for USDC where the operator has set receiver and facilitator. They are also sold on the embedded
 * devnet, whose node settles test payments. Undefined: nothing is sold for USDC.
 */
export function x402Options({ settings, nodes, cdp }: PaymentGiven): X402Options | undefined {
  const { x402, server } = settings
  const isOwn = server.network === 'devnet' && server.trustedNodeUrls === undefined
  const isUnset = x402.network === undefined && x402.facilitatorUrl === undefined
  const embedded =
    isOwn && isUnset
      ? {
          network: 'base' as const,
          wallet: devnetUsdcWallet,
          facilitatorUrl: `${nodes[0]}/${facilitatorPath}`,
        }
      : {}
  const { network, wallet, facilitatorUrl, settleTimeoutMs } = { ...x402, ...embedded }
  if (network === undefined || wallet === undefined || facilitatorUrl === undefined) return undefined
  return {
    network,
    wallet,
    facilitatorUrl,
    protocol: server.network === 'devnet' ? 'http' : 'https',
    recordsPath: join(folders(settings).root, 'ledger-x402'),
    verifyMs: settleTimeoutMs,
    settleMs: Math.max(30_000, settleTimeoutMs),
    ...rpcOf(settings, network),
    ...(cdp === undefined ? {} : { cdp }),
  }
}

/** Few clients at once: a share of what the gateway may have. */
export function connectionsMax({ descriptors }: PaymentGiven['memory']): {
  readonly connectionsMax?: number
} {
  return descriptors === undefined
    ? {}
    : { connectionsMax: Math.max(16, Math.min(4096, descriptors.socketsMax >> 2)) }
}
