import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import { isProvider } from '../../config/payments.js'
import type { Config } from '../../config/read.js'
import type { Part } from '../actor/supervise.js'
import type { EdgePayments, PaymentsThread } from '../admission/payments-wiring.js'
import { cashierDefaults, Kinds } from '../admission/settlement-protocol.js'
import type { Limits } from '../admission/wiring.js'
import { readSmall } from '../store/folder.js'
import { folders } from './folders.js'
import type { LimitsLines } from './limits.js'
import { hostProtocol } from './names-thread.js'
import { privateSecret } from './private-secret.js'

/** What an edge thread is told. */
export interface PaymentsLines {
  readonly payments?: EdgePayments
  readonly paymentsPort?: MessagePort
}

/** The threads of the program, as far as payments need them. */
interface Threads {
  line(name: string): MessagePort
  part(name: string, file: string, data: () => object): Part
}

/** The part that settles payments, and what each edge thread is told of it; nothing of both where none are taken. */
export function paymentsOf(
  config: Config,
  threads: Threads,
  limitsLines: () => LimitsLines,
  isPaymentHere: boolean,
): { readonly parts: Part[]; lines(): PaymentsLines } {
  const payments = edgePayments(config)
  if (payments === undefined) return { parts: [], lines: () => ({}) }
  const data = (): object => {
    const { limits, admissionPort } = limitsLines()
    // The configuration has refused payments without limits.
    if (limits === undefined) throw new Error('payments need the rate limiter')
    const { paymentUrl: url } = config.services
    // It may have the same wallet: one of the two decides who takes a payment.
    const service =
      url !== undefined
        ? { paymentService: { url, secret: privateSecret(config) } }
        : isPaymentHere
          ? { creditsPort: threads.line('payment') }
          : {}
    return { ...paymentsThread(config, payments, limits), admissionPort, ...service }
  }
  return {
    parts: [threads.part('payments', 'payments', data)],
    lines: () => ({ payments, paymentsPort: threads.line('payments') }),
  }
}

/** What payments are to edge threads, made once; undefined where none are taken. */
function edgePayments(config: Config): EdgePayments | undefined {
  const { payments } = config
  const { enabled, network, wallet, facilitatorUrl, appName, appLogo, cdpClientKey } = payments
  const { sessionTokenEndpoint } = payments
  if (!enabled || network === undefined || wallet === undefined || facilitatorUrl === undefined)
    return undefined
  const { perBytePrice: perByte, minPrice: minimum, maxPrice: maximum, multiplier } = payments
  return {
    offer: {
      network,
      wallet,
      facilitatorUrl,
      tariff: { perByte, minimum, maximum, multiplier },
      protocol: hostProtocol(config),
    },
    paywall: {
      appName,
      // New at each start. Pages of an earlier run then show the lowest price, and must be loaded again.
      sealKey: randomBytes(32),
      ...(appLogo === undefined ? {} : { appLogo }),
      ...(cdpClientKey === undefined ? {} : { onrampKey: cdpClientKey }),
      ...(sessionTokenEndpoint === undefined ? {} : { sessionsAt: sessionTokenEndpoint }),
    },
    kinds: new SharedArrayBuffer(Kinds.bytes),
    ledgerPath: paymentsFolder(config),
  }
}

/** Folder of the records of payments. */
export function paymentsFolder(config: Config): string {
  return join(folders(config).root, 'payments')
}

/** What the thread that settles payments is started with. Throws where a key's file cannot be read. */
function paymentsThread(config: Config, { offer, kinds }: EdgePayments, limits: Limits): PaymentsThread {
  const { payments, server } = config
  const { network, facilitatorUrl, wallet } = offer
  const cdp = cdpKey(config)
  return {
    limits,
    network,
    facilitatorUrl,
    wallet,
    kinds,
    ledgerPath: paymentsFolder(config),
    ...rpcOf(config, network),
    verifyMs: payments.settleTimeoutMs,
    // A facilitator may answer only when the block is mined; the request is not kept waiting that long.
    settleMs: Math.max(30_000, payments.settleTimeoutMs),
    // More than all payments of contracts' wallets together can take: made-up ones leave connections to plain keys.
    connectionsMax: 2 * cashierDefaults.contractsMax,
    cashier: {
      ...cashierDefaults,
      waitMs: payments.settleTimeoutMs,
    },
    ...(cdp === undefined ? {} : { cdp }),
    mailboxMax: 1024,
    logLevel: server.logLevel,
  }
}

/** Public nodes of the chain. */
const publicNodes = { base: 'https://mainnet.base.org', 'base-sepolia': 'https://sepolia.base.org' } as const

/** The node that decides about doubtful payments. On devnet no machine outside is asked unless it is set. */
export function rpcOf(
  { payments, server }: Config,
  network: keyof typeof publicNodes,
): { readonly rpcUrl?: string } {
  const url = payments.rpcUrl ?? (server.network === 'devnet' ? 'none' : publicNodes[network])
  return url === 'none' ? {} : { rpcUrl: url }
}

/**
 * The provider's key, for the provider's facilitator alone: no other one gets tokens signed by it. The file has
 * priority over the setting.
 */
export function cdpKey({ payments }: Config): PaymentsThread['cdp'] {
  const { cdpKeyId: keyId, cdpKeySecret, cdpKeySecretFile, facilitatorUrl } = payments
  if (keyId === undefined || facilitatorUrl === undefined || !isProvider(facilitatorUrl)) return undefined
  const secret = cdpKeySecretFile === undefined ? cdpKeySecret : readSmall(cdpKeySecretFile)
  return secret === undefined ? undefined : { keyId, secret }
}
