import { join } from 'node:path'
import type { EdgePayments } from '../../admission/open-selling.js'
import type { OfferOptions } from '../../admission/payment-offer.js'
import type { EdgeSales } from '../edge-given.js'
import { folders } from '../folders.js'
import { hostProtocol } from '../host-names.js'
import type { Settings } from '../thread-settings.js'

/** Folder of the records of payments. */
export function paymentsFolder(config: Settings<'server'>): string {
  return join(folders(config).root, 'payments')
}

/** What answers are sold for, and by whom; undefined where the gateway sells nothing. */
export function offerOptions(config: Settings<'names' | 'server' | 'x402'>): OfferOptions | undefined {
  const { enabled, network, wallet, facilitatorUrl } = config.x402
  if (!enabled || network === undefined || wallet === undefined || facilitatorUrl === undefined)
    return undefined
  const { perBytePrice: perByte, minPrice: minimum, maxPrice: maximum, multiplier } = config.x402
  const tariff = { perByte, minimum, maximum, multiplier }
  return { network, wallet, facilitatorUrl, tariff, protocol: hostProtocol(config) }
}

/** The payments of an edge thread. Throws where the settings sell nothing. */
export function edgePayments(
  config: Settings<'names' | 'server' | 'x402'>,
  { kinds, sealKey }: EdgeSales,
): EdgePayments {
  const offer = offerOptions(config)
  if (offer === undefined) throw new Error('nothing is sold by these settings')
  const { appName, appLogo, cdpClientKey, sessionTokenEndpoint } = config.x402
  return {
    offer,
    paywall: {
      appName,
      sealKey,
      ...(appLogo === undefined ? {} : { appLogo }),
      ...(cdpClientKey === undefined ? {} : { onrampKey: cdpClientKey }),
      ...(sessionTokenEndpoint === undefined ? {} : { sessionsAt: sessionTokenEndpoint }),
    },
    kinds,
    recordsPath: paymentsFolder(config),
  }
}

/** Signs requests to the facilitator, where it is the provider's own. */
export interface CdpKey {
  readonly keyId: string
  readonly secret: string
}

/** Public nodes of the chain. */
const publicNodes = { base: 'https://mainnet.base.org', 'base-sepolia': 'https://sepolia.base.org' } as const

/** The node that decides about doubtful payments. On devnet no machine outside is queried unless it is set. */
export function rpcOf(
  { chains, server, x402 }: Settings<'chains' | 'server' | 'x402'>,
  network: keyof typeof publicNodes,
): { readonly rpc?: { readonly url: string; readonly confirmations: number } } {
  const url = x402.rpcUrl ?? (server.network === 'devnet' ? 'none' : publicNodes[network])
  return url === 'none' ? {} : { rpc: { url, confirmations: chains.baseDepth } }
}
