import type { Clock } from '../actor/clock.js'
import { JsonPeer } from './json-peer.js'
import type { PaymentOrder } from './settlement-messages.js'
import type { Usdc } from './usdc.js'

export interface WitnessOptions {
  /** A node of the chain (Ethereum JSON-RPC over HTTP). */
  readonly url: string
  readonly usdc: Usdc
  /** Receives the payments; lower case. */
  readonly wallet: string
  readonly limitMs: number
  /** Blocks, its own included, that make a payment final: what the chain can still drop has not moved. */
  readonly confirmations: number
}

export type MovedOnChain = `0x${string}` | 'early' | 'no' | 'unknown'

/** Has this payment moved on chain? */
export interface Witness {
  /** Hash of the transaction; `early`: it is not final yet; `no`; `unknown` where the chain cannot be reached. */
  moved(order: Pick<PaymentOrder, 'payment' | 'payer' | 'units'>): Promise<MovedOnChain>
}

/** Keccak-256 of AuthorizationUsed(address,bytes32), EIP-3009, and of Transfer(address,address,uint256), ERC-20. */
const usedTopic = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5'
const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** Blocks that are searched: five hours at two seconds each, and no more than public nodes allow in one request. */
const blocksMax = 9000n

const hash = /^0x[0-9a-fA-F]{64}$/
const topicOf = (address: string): string => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`

/**
 * Searches the chain for a payment whose facilitator's answer was lost, or whose authorization was submitted by somebody else. It
 * pays this wallet in both cases. Its nonce must be used, and the next log entry of the token must be the transfer of the amount
 * to this wallet. Any other entry of the transaction may belong to another payment, so a transfer could count twice.
 */
export class ChainWitness implements Witness {
  readonly #peer: JsonPeer

  constructor(
    private readonly options: WitnessOptions,
    clock: Clock,
  ) {
    this.#peer = new JsonPeer({ url: options.url, connectionsMax: 4 }, clock)
  }

  async moved({
    payment,
    payer,
    units,
  }: Pick<PaymentOrder, 'payment' | 'payer' | 'units'>): Promise<MovedOnChain> {
    const tip = await this.#ask('eth_blockNumber', [])
    if (typeof tip !== 'string' || !/^0x[0-9a-f]{1,16}$/i.test(tip)) return 'unknown'
    const from = BigInt(tip) > blocksMax ? BigInt(tip) - blocksMax : 0n
    const topics = usedTopics({ payment, payer })
    const span = { fromBlock: `0x${from.toString(16)}`, toBlock: 'latest' }
    const used = await this.#ask('eth_getLogs', [{ address: this.options.usdc.address, topics, ...span }])
    if (!Array.isArray(used)) return 'unknown'
    const { transactionHash: transaction, blockNumber } = fieldsOf(used[0])
    if (used.length === 0) return 'no'
    if (typeof transaction !== 'string' || !hash.test(transaction)) return 'unknown'
    const paid = await this.paidBy({ payment, payer, units }, transaction)
    if (paid === 'unknown') return 'unknown'
    if (paid !== 'yes') return 'no'
    const isMined = typeof blockNumber === 'string' && /^0x[0-9a-f]{1,16}$/i.test(blockNumber)
    const depth = isMined ? BigInt(tip) - BigInt(blockNumber) + 1n : 0n
    return depth < BigInt(this.options.confirmations) ? 'early' : (transaction as `0x${string}`)
  }

  /** Whether a transaction has moved the money of a payment. `no` where the chain does not know it, too. */
  async paidBy(
    { payment, payer, units }: Pick<PaymentOrder, 'payment' | 'payer' | 'units'>,
    transaction: string,
  ): Promise<'yes' | 'no' | 'unknown'> {
    const answer = await this.#ask('eth_getTransactionReceipt', [transaction])
    if (answer === null) return 'no'
    const receipt = fieldsOf(answer)
    if (!Array.isArray(receipt.logs)) return 'unknown'
    const logs = receipt.logs.map(fieldsOf)
    const wanted = usedTopics({ payment, payer }).join().toLowerCase()
    const at = logs.findIndex((log) => this.#isOf(log, wanted))
    const isPaid = receipt.status === '0x1' && at >= 0 && this.#pays(logs[at + 1] ?? {}, payer, units)
    return isPaid ? 'yes' : 'no'
  }

  close(): Promise<void> {
    return this.#peer.close()
  }

  #pays(log: Fields, payer: string, units: string): boolean {
    const { data } = log
    const amount = typeof data === 'string' && hash.test(data) && BigInt(data) === BigInt(units)
    return amount && this.#isOf(log, [transferTopic, topicOf(payer), topicOf(this.options.wallet)].join())
  }

  /** Whether a log entry is of the token and has these topics. */
  #isOf({ address, topics }: Fields, wanted: string): boolean {
    const isToken = String(address).toLowerCase() === this.options.usdc.address.toLowerCase()
    return isToken && Array.isArray(topics) && topics.join().toLowerCase() === wanted
  }

  async #ask(method: string, params: readonly unknown[]): Promise<unknown> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const answer = await this.#peer.ask('', body, this.options.limitMs)
    return 'why' in answer ? undefined : answer.body.result
  }
}

/** Topics of the log entry for the use of a payment's nonce. */
function usedTopics({ payment, payer }: Pick<PaymentOrder, 'payment' | 'payer'>): string[] {
  const nonce = payment.slice(payment.lastIndexOf(':') + 1)
  return [usedTopic, topicOf(payer), nonce.toLowerCase()]
}

type Fields = Readonly<Record<string, unknown>>

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
