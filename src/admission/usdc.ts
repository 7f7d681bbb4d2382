/** USDC on the chains where payments are taken, under the names of protocol 1 (short) and 2 (CAIP-2). */
export interface Usdc {
  readonly network: 'base' | 'base-sepolia'
  readonly caip2: string
  readonly chainId: number
  /** The token's contract. */
  readonly address: string
  /** Name in its EIP-712 domain; the two chains differ. */
  readonly name: string
  readonly version: string
}

/** Facts of the deployments; with a wrong name no signature would verify. */
export const usdcOf: Readonly<Record<Usdc['network'], Usdc>> = {
  base: {
    network: 'base',
    caip2: 'eip155:8453',
    chainId: 8453,
    address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    name: 'USD Coin',
    version: '2',
  },
  'base-sepolia': {
    network: 'base-sepolia',
    caip2: 'eip155:84532',
    chainId: 84532,
    address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    name: 'USDC',
    version: '2',
  },
}

/** The chain that a payment names, in the words of either protocol. */
export function usdcNamed(network: string): Usdc | undefined {
  const chains: readonly Usdc[] = Object.values(usdcOf)
  return chains.find((one) => one.network === network || one.caip2 === network)
}

/** Topic of Transfer(address,address,uint256), an event of ERC-20: Keccak-256, as of the next one. */
export const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
/** Topic of AuthorizationUsed(address,bytes32), of ERC-3009. The event of the transfer that it authorizes is the next one. */
export const authorizationUsedTopic = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5'
