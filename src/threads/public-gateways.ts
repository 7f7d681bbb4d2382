import type { TrustedGatewayEntry } from '../../config/trusted-gateways.js'

/** Gateways of the public network that content is fetched from where the operator names none. */
export const publicGateways: readonly TrustedGatewayEntry[] = [
  { url: 'https://turbo-gateway.com', priority: 1, trusted: true },
  { url: 'https://arweave.net', priority: 2, trusted: false },
]

/** Queried on mainnet for where items lie. */
export const publicRoots: readonly TrustedGatewayEntry[] = [
  { url: 'https://turbo-gateway.com', priority: 1, trusted: true },
]
