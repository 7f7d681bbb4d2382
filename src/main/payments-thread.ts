import { randomBytes } from 'node:crypto'
import type { MessagePort } from 'node:worker_threads'
import { isProvider } from '../../config/payments.js'
import type { Config } from '../../config/read.js'
import type { Part } from '../actor/supervise.js'
import type { OfferOptions } from '../admission/offer.js'
import type { PaymentsThread } from '../admission/payments-wiring.js'
import { cashierDefaults, Kinds } from '../admission/settlement-protocol.js'
import type { Limits } from '../admission/wiring.js'
import { readSmall } from '../store/folder.js'
import { clientsOf } from '../threads/client-options.js'
import type { EdgePorts, EdgeSales } from '../threads/edge-given.js'
import { type CdpKey, offerOptions, paymentsFolder, rpcOf } from '../threads/payments-options.js'
import type { limitsOf } from './limits.js'
import { privateSecret } from './private-secret.js'

/** The threads of the program, as far as payments need them. */
interface Threads {
  line(name: string): MessagePort
  part(name: string, file: string, data: () => object): Part
}

/** The part that settles payments, and how edge threads reach it; nothing of both where none are taken. */
export function paymentsOf(
  config: Config,
  threads: Threads,
  limits: ReturnType<typeof limitsOf>,
  isPaymentHere: boolean,
): { readonly parts: Part[]; readonly sales: EdgeSales | undefined; ports(): Pick<EdgePorts, 'payments'> } {
  const offer = offerOptions(config)
  if (offer === undefined) return { parts: [], sales: undefined, ports: () => ({}) }
  const sales = { kinds: new SharedArrayBuffer(Kinds.bytes), sealKey: randomBytes(32) }
  const data = (): object => {
    const place = limits.limits()
    // The configuration has refused payments without limits.
    if (place === undefined) throw new Error('payments need the rate limiter')
    const { paymentUrl: url } = config.services
    // It may have the same wallet: one of the two decides who takes a payment.
    const service =
      url !== undefined
        ? { paymentService: { url, secret: privateSecret(config) } }
        : isPaymentHere
          ? { creditsPort: threads.line('payment') }
          : {}
    const buckets = { ...place, clients: clientsOf(config), exemptNames: config.limits.exemptNames }
    const { admission: admissionPort } = limits.ports()
    return { ...paymentsThread(config, offer, sales.kinds, buckets), admissionPort, ...service }
  }
  return {
    parts: [threads.part('payments', 'payments', data)],
    sales,
    ports: () => ({ payments: threads.line('payments') }),
  }
}

/** What the thread that settles payments is started with. Throws where a key's file cannot be read. */
function paymentsThread(
  config: Config,
  offer: OfferOptions,
  kinds: SharedArrayBuffer,
  limits: Limits,
): PaymentsThread {
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

/**
 * The provider's key, for the provider's facilitator alone: no other one gets tokens signed by it. The file has
 * priority over the setting.
 */
export function cdpKey({ payments }: Config): CdpKey | undefined {
  const { cdpKeyId: keyId, cdpKeySecret, cdpKeySecretFile, facilitatorUrl } = payments
  if (keyId === undefined || facilitatorUrl === undefined || !isProvider(facilitatorUrl)) return undefined
  const secret = cdpKeySecretFile === undefined ? cdpKeySecret : readSmall(cdpKeySecretFile)
  return secret === undefined ? undefined : { keyId, secret }
}
