import type { Clock } from '../../actor/clock.js'
import { JsonPeer } from '../../admission/json-peer.js'
import { type Refusal, refuse } from '../../format/refusal.js'
import { spelled } from '../books/wallets.js'
import type { TokenName } from '../prices/rates.js'
import {
  beneficiaryIn,
  type ChainReader,
  depthsOf,
  type NoPayment,
  type SeenPayment,
} from './seen-payment.js'

export interface EvmOptions {
  readonly chain: string
  /** A node (Ethereum JSON-RPC over HTTP). */
  readonly url: string
  /** Words for the chain's own coin. */
  readonly coins: readonly TokenName[]
  /** Contracts of ERC-20 tokens, by their names. */
  readonly contracts: Readonly<Partial<Record<TokenName, string>>>
  readonly confirmations: number
  readonly limitMs: number
}

type Fields = Readonly<Record<string, unknown>>

const hashShape = /^0x[0-9a-fA-F]{64}$/
const quantityShape = /^0x[0-9a-fA-F]{1,64}$/
/** transfer(address,uint256) of ERC-20, and its event Transfer(address,address,uint256). */
const transferCall = '0xa9059cbb'
const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const callChars = 2 + 8 + 64 + 64

/** Payments in the coin of an EVM chain, and in its ERC-20 tokens. */
export class EvmReader implements ChainReader {
  readonly chain: string
  readonly tokens: readonly TokenName[]
  readonly #peer: JsonPeer

  constructor(
    private readonly options: EvmOptions,
    clock: Clock,
  ) {
    this.chain = options.chain
    this.tokens = [...options.coins, ...(Object.keys(options.contracts) as TokenName[])]
    this.#peer = new JsonPeer({ url: options.url, connectionsMax: 8 }, clock)
  }

  async find(token: TokenName, id: string): Promise<SeenPayment | NoPayment | 'absent' | Refusal> {
    if (!hashShape.test(id)) return 'absent'
    const found = await this.#ask('eth_getTransactionByHash', [id])
    if (found === undefined) return this.#silent()
    if (found === null) return 'absent'
    const transaction = fieldsOf(found)
    if (String(transaction.hash).toLowerCase() !== id.toLowerCase()) return this.#silent()
    const receipt = await this.#ask('eth_getTransactionReceipt', [id])
    const tip = await this.#ask('eth_blockNumber', [])
    if (receipt === undefined || !isQuantity(tip)) return this.#silent()
    const contract = this.options.contracts[token]
    const paid = contract === undefined ? coinIn(transaction) : tokenIn(transaction, contract)
    if ('wrong' in paid) return paid
    const mined = fieldsOf(receipt)
    if (receipt === null || !isQuantity(mined.blockNumber)) return { ...paid, id, ...depthsOf(0, 1) }
    if (mined.status !== '0x1') return { wrong: 'The transaction has failed on its chain' }
    if (contract !== undefined && !isLogged(mined, contract, paid))
      return { wrong: 'The token was not transferred' }
    const height = Number(mined.blockNumber)
    const confirmations = Number(tip) - height + 1
    return { ...paid, id, ...depthsOf(confirmations, this.options.confirmations), height }
  }

  close(): Promise<void> {
    return this.#peer.close()
  }

  #silent(): Refusal {
    return refuse('upstream', 'upstream', `the node of ${this.chain} does not answer`)
  }

  /** The result, null where the chain has none; undefined where there is no answer. */
  async #ask(method: string, params: readonly unknown[]): Promise<unknown> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const answer = await this.#peer.ask('', body, this.options.limitMs)
    return 'why' in answer || answer.status !== 200 ? undefined : answer.body.result
  }
}

type Paid = Pick<SeenPayment, 'quantity' | 'sender' | 'recipient' | 'beneficiary'>

function coinIn({ from, to, value, input }: Fields): Paid | NoPayment {
  if (!isAddress(from) || !isAddress(to) || !isQuantity(value))
    return { wrong: 'The transaction pays nobody' }
  return {
    quantity: BigInt(value),
    sender: spelled(from),
    recipient: spelled(to),
    ...beneficiaryOf(textOf(input, 2)),
  }
}

/** A transfer of a token: the call of its contract, with the beneficiary's text behind. */
function tokenIn({ from, to, input }: Fields, contract: string): Paid | NoPayment {
  const isCall = isAddress(to) && to.toLowerCase() === contract.toLowerCase() && typeof input === 'string'
  if (!isCall || !isAddress(from) || !input.startsWith(transferCall) || input.length < callChars)
    return { wrong: 'The transaction is no transfer of this token' }
  const recipient = `0x${input.slice(34, 74)}`
  const amount = `0x${input.slice(74, 138)}`
  if (!isAddress(recipient) || !isQuantity(amount))
    return { wrong: 'The transaction is no transfer of this token' }
  const facts = { quantity: BigInt(amount), sender: spelled(from), recipient: spelled(recipient) }
  return { ...facts, ...beneficiaryOf(textOf(input, callChars)) }
}

/** The log of the contract must confirm the transfer that the call requested. */
function isLogged({ logs }: Fields, contract: string, { sender, recipient, quantity }: Paid): boolean {
  const topic = (address: string): string => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
  const wanted = [transferTopic, topic(sender), topic(recipient)].join()
  return (Array.isArray(logs) ? logs.map(fieldsOf) : []).some(({ address, topics, data }) => {
    const isWanted = Array.isArray(topics) && topics.join().toLowerCase() === wanted
    const isToken = String(address).toLowerCase() === contract.toLowerCase()
    return isToken && isWanted && isQuantity(data) && BigInt(data) === quantity
  })
}

function beneficiaryOf(text: string): Pick<SeenPayment, 'beneficiary'> {
  const beneficiary = beneficiaryIn(text)
  return beneficiary === undefined ? {} : { beneficiary }
}

function textOf(input: unknown, start: number): string {
  return typeof input === 'string' ? Buffer.from(input.slice(start, start + 1000), 'hex').toString() : ''
}

function isAddress(value: unknown): value is string {
  return typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value)
}

function isQuantity(value: unknown): value is string {
  return typeof value === 'string' && quantityShape.test(value)
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
