import { randomBytes } from 'node:crypto'
import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/read.js'
import { isProvider } from '../../config/x402.js'
import type { Part } from '../actor/supervise.js'
import { Kinds } from '../admission/cashier-messages.js'
import { readSmall } from '../store/folder.js'
import type { EdgePorts, EdgeSales } from '../threads/edge-given.js'
import { type CdpKey, offerOptions } from '../threads/payment/cashier-options.js'
import type { CashierGiven } from '../threads/payment/open-cashier.js'
import { settingsOf } from '../threads/thread-settings.js'
import type { limitsOf } from './bucket-limits.js'
import { privateSecret } from './private-secret.js'

/** The threads of the program, as far as the cashier needs them. */
interface Threads {
  line(name: string): MessagePort
  part(name: string, file: string, data: () => object): Part
}

/**
 * The thread of the cashier, which settles the payments for answers of the gateway (x402), and how edge threads reach it. Nothing
 * of both where no payments are taken.
 */
export function cashierOf(
  config: Config,
  threads: Threads,
  limits: ReturnType<typeof limitsOf>,
  isPaymentHere: boolean,
): { readonly parts: Part[]; readonly sales: EdgeSales | undefined; ports(): Pick<EdgePorts, 'cashier'> } {
  if (offerOptions(config) === undefined) return { parts: [], sales: undefined, ports: () => ({}) }
  const sales = { kinds: new SharedArrayBuffer(Kinds.bytes), sealKey: randomBytes(32) }
  const data = (): CashierGiven => {
    const place = limits.limits()
    const { admission } = limits.ports()
    // The configuration has refused payments without limits.
    if (place === undefined || admission === undefined) throw new Error('payments need the rate limiter')
    const { paymentUrl: url } = config.services
    const cdp = cdpKey(config)
    return {
      settings: settingsOf(config, 'cashier'),
      limits: place,
      kinds: sales.kinds,
      // It may have the same wallet: one of the two decides who takes a payment.
      ports: {
        admission,
        ...(url === undefined && isPaymentHere ? { payment: threads.line('payment') } : {}),
      },
      ...(url === undefined ? {} : { paymentService: { url, secret: privateSecret(config) } }),
      ...(cdp === undefined ? {} : { cdp }),
    }
  }
  return {
    parts: [threads.part('cashier', 'cashier', data)],
    sales,
    ports: () => ({ cashier: threads.line('cashier') }),
  }
}

/**
 * The provider's key, for the provider's facilitator alone: no other one gets tokens signed by it. The file has
 * priority over the setting.
 */
export function cdpKey({ x402 }: Config): CdpKey | undefined {
  const { cdpKeyId: keyId, cdpKeySecret, cdpKeySecretFile, facilitatorUrl } = x402
  if (keyId === undefined || facilitatorUrl === undefined || !isProvider(facilitatorUrl)) return undefined
  const secret = cdpKeySecretFile === undefined ? cdpKeySecret : readSmall(cdpKeySecretFile)
  return secret === undefined ? undefined : { keyId, secret }
}
