import type { Config } from '../../config/read.js'
import type { TrustedGatewayEntry } from '../../config/trusted-gateways.js'
import { publicGateways } from '../threads/public-gateways.js'

/** What NETWORK decides where the operator did not. */
export interface Network {
  /** Address to listen on. */
  readonly host: string
  /** Base-layer nodes; empty: the embedded node, whose address is known when it is up. */
  readonly nodes: readonly string[]
  readonly gateways: readonly TrustedGatewayEntry[]
}

/** The defaults of the network, replaced by the operator's settings where these are set. */
export function networkOf({ server, retrieval }: Config): Network {
  const mainnet = server.network === 'mainnet'
  const first = (retrieval.trustedGatewayUrl ?? []).map((url, index) => ({
    url,
    priority: index - 1000,
    trusted: true,
  }))
  const named = retrieval.trustedGateways ?? (mainnet && first.length === 0 ? publicGateways : [])
  return {
    host: server.listenAddress ?? (mainnet ? '0.0.0.0' : '127.0.0.1'),
    nodes: server.trustedNodeUrls ?? (mainnet ? ['https://arweave.net'] : []),
    gateways: [...first, ...named],
  }
}

/**
 * Address of the gateway for clients: its public one, where the operator has set it, else that of its listener (`here`).
 * Without a gateway in this program it is the one that gets news of uploads, or the first trusted one; '' where there is none.
 */
export function announcedGateway(config: Config, here: string | undefined): string {
  const { names, server, uploads } = config
  const [host] = server.network === 'mainnet' ? names.rootHosts : []
  if (host !== undefined) return `${names.sandboxProtocol ?? 'https'}://${host.toLowerCase()}`
  const news = uploads.gatewayAdminUrl?.replace(/(\/(gateway|ar-io)\/admin)?\/?$/, '')
  return here ?? news ?? networkOf(config).gateways[0]?.url ?? ''
}
