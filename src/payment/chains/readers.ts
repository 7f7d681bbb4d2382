import type { Clock } from '../../actor/clock.js'
import type { Chain } from '../../chain/chain.js'
import type { TokenName } from '../prices/rates.js'
import { ArweaveReader } from './arweave-reader.js'
import { EvmReader } from './evm-reader.js'
import { KyveReader } from './kyve-reader.js'
import type { ChainReader } from './seen-payment.js'
import { SolanaReader } from './solana-reader.js'

/** Which chains are read. Plain: it is cloned into a thread. */
export interface ReaderOptions {
  readonly arweaveDepth: number
  readonly evm: readonly {
    readonly chain: string
    readonly url: string
    readonly wallet: string
    readonly coins: readonly TokenName[]
    readonly contracts: Readonly<Partial<Record<TokenName, string>>>
    readonly confirmations: number
  }[]
  readonly solana?: {
    readonly url: string
    readonly wallet: string
    readonly mints: Readonly<Partial<Record<TokenName, string>>>
  }
  readonly kyve?: { readonly url: string }
}

/** A failed answer of a node; the request is repeated later. */
const limitMs = 10_000

/** A reader for each chain whose payments are taken. */
export function chainReaders(options: ReaderOptions, nodes: Chain, clock: Clock): ChainReader[] {
  const { arweaveDepth, evm, solana, kyve } = options
  return [
    new ArweaveReader(nodes, arweaveDepth),
    ...evm.map((one) => new EvmReader({ ...one, limitMs }, clock)),
    ...(solana === undefined ? [] : [new SolanaReader({ ...solana, limitMs }, clock)]),
    ...(kyve === undefined ? [] : [new KyveReader({ ...kyve, limitMs }, clock)]),
  ]
}
