import type { ReaderOptions } from '../../payment/chains/readers.js'
import type { Settings } from '../thread-settings.js'

/** The contracts of USDC that the networks' own makers have published. */
const usdc = {
  ethereum: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  polygon: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
  solana: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkZwyTDt1v',
} as const

/** Which chains are read, by the nodes that are set. */
export function readerOptions({ chains }: Settings<'chains'>): ReaderOptions {
  const { ethereumUrl, baseUrl, polygonUrl, solanaUrl, solanaAddress, kyveUrl, kyveAddress } = chains
  const wallet = chains.ethereumAddress
  const evm: ReaderOptions['evm'][number][] = []
  if (ethereumUrl !== undefined && wallet !== undefined) {
    const names = { chain: 'ethereum', coins: ['ethereum'], contracts: { usdc: usdc.ethereum } } as const
    evm.push({ ...names, wallet, url: ethereumUrl, confirmations: chains.ethereumDepth })
  }
  if (baseUrl !== undefined && wallet !== undefined) {
    const ario = chains.baseArio === undefined ? {} : { 'base-ario': chains.baseArio }
    const contracts = { 'base-usdc': chains.baseUsdc, ...ario }
    const names = { chain: 'base', coins: ['base-eth'], contracts } as const
    evm.push({ ...names, wallet, url: baseUrl, confirmations: chains.baseDepth })
  }
  if (polygonUrl !== undefined && wallet !== undefined) {
    const names = {
      chain: 'polygon',
      coins: ['matic', 'pol'],
      contracts: { 'polygon-usdc': usdc.polygon },
    } as const
    evm.push({ ...names, wallet, url: polygonUrl, confirmations: chains.polygonDepth })
  }
  const mints = {
    'solana-usdc': usdc.solana,
    ...(chains.arioMint === undefined ? {} : { ario: chains.arioMint }),
  }
  const kyve = kyveUrl === undefined || kyveAddress === undefined ? {} : { kyve: { url: kyveUrl } }
  const solana =
    solanaUrl === undefined || solanaAddress === undefined
      ? {}
      : { solana: { url: solanaUrl, wallet: solanaAddress, mints } }
  return { arweaveDepth: chains.arweaveDepth, evm, ...solana, ...kyve }
}

/** Token to the address that is paid, for every token that can be. */
export function paymentAddresses(config: Settings<'chains'>): Record<string, string> {
  const { arweaveAddress, ethereumAddress, solanaAddress, kyveAddress } = config.chains
  const { evm, solana, kyve } = readerOptions(config)
  const hex = evm.flatMap(({ coins, contracts }) => [...coins, ...Object.keys(contracts)])
  const onSolana = solana === undefined ? [] : ['solana', 'ed25519', ...Object.keys(solana.mints)]
  return Object.fromEntries([
    ...(arweaveAddress === undefined ? [] : [['arweave', arweaveAddress]]),
    ...(ethereumAddress === undefined ? [] : hex.map((token) => [token, ethereumAddress])),
    ...(kyve === undefined || kyveAddress === undefined ? [] : [['kyve', kyveAddress]]),
    ...(solanaAddress === undefined ? [] : onSolana.map((token) => [token, solanaAddress])),
  ])
}
