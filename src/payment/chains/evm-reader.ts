import type { Clock } from '../../actor/clock.js'
import { JsonPeer } from '../../admission/json-peer.js'
import { authorizationUsedTopic, transferTopic } from '../../admission/usdc.js'
import { type JsonFields, jsonFields } from '../../format/json.js'
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
  /** The wallet that is paid. */
  readonly wallet: string
  /** Words for the chain's own coin. */
  readonly coins: readonly TokenName[]
  /** Contracts of ERC-20 tokens, by their names. */
  readonly contracts: Readonly<Partial<Record<TokenName, string>>>
  readonly confirmations: number
  readonly limitMs: number
}

const hashShape = /^0x[0-9a-fA-F]{64}$/
const quantityShape = /^0x[0-9a-fA-F]{1,64}$/
/** transfer(address,uint256) of ERC-20. */
const transferCall = '0xa9059cbb'
const nobody = `0x${'0'.repeat(40)}`
/** A transaction with thousands of transfers. */
const receiptMaxBytes = 8 * 2 ** 20
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
    this.#peer = new JsonPeer({ url: options.url, connectionsMax: 8, answerMaxBytes: receiptMaxBytes }, clock)
  }

  async find(
    token: TokenName,
    id: string,
    wallet = this.options.wallet,
  ): Promise<SeenPayment | NoPayment | 'absent' | Refusal> {
    if (!hashShape.test(id)) return 'absent'
    const found = await this.#ask('eth_getTransactionByHash', [id])
    if (found === undefined) return this.#silent()
    if (found === null) return 'absent'
    const transaction = jsonFields(found)
    if (String(transaction.hash).toLowerCase() !== id.toLowerCase()) return this.#silent()
    const receipt = await this.#ask('eth_getTransactionReceipt', [id])
    const tip = await this.#ask('eth_blockNumber', [])
    if (receipt === undefined || !isQuantity(tip)) return this.#silent()
    const contract = this.options.contracts[token]
    const called = contract === undefined ? coinIn(transaction) : tokenIn(transaction, contract)
    const mined = jsonFields(receipt)
    if (receipt === null || !isQuantity(mined.blockNumber)) {
      // What the call of another contract will transfer is known when it is in a block.
      if ('wrong' in called) return contract === undefined ? called : 'absent'
      return { ...called, id, ...depthsOf(0, 1) }
    }
    if (mined.status !== '0x1') return { wrong: 'The transaction has failed on its chain' }
    const paid = contract === undefined ? called : loggedIn(mined, contract, wallet, called)
    if ('wrong' in paid) return paid
    const isOwnCall = !('wrong' in called) && called.sender === paid.sender
    const hasKey = isOwnCall || (await this.#hasKey(paid.sender))
    if (hasKey === undefined) return this.#silent()
    if (!hasKey) return { wrong: 'A contract has paid, and has no key to use credits with', isUnclear: true }
    const height = Number(mined.blockNumber)
    const confirmations = Number(tip) - height + 1
    return { ...paid, id, ...depthsOf(confirmations, this.options.confirmations), height }
  }

  close(): Promise<void> {
    return this.#peer.close()
  }

  /** Whether an address has a key: no code, or that of a delegation (EIP-7702). Undefined: the node does not answer. */
  async #hasKey(address: string): Promise<boolean | undefined> {
    const code = await this.#ask('eth_getCode', [address, 'latest'])
    return typeof code === 'string' ? code === '0x' || code.startsWith('0xef0100') : undefined
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

function coinIn({ from, to, value, input }: JsonFields): Paid | NoPayment {
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
function tokenIn({ from, to, input }: JsonFields, contract: string): Paid | NoPayment {
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

/**
 * Who has paid, and how much, by the log of the token's contract. The transaction may call the contract of a smart account, and
 * others may send it, so only the call of a plain transfer (`called`) can name a beneficiary: anybody may have written the rest.
 */
function loggedIn(
  { logs }: JsonFields,
  contract: string,
  wallet: string,
  called: Paid | NoPayment,
): Paid | NoPayment {
  const all = (Array.isArray(logs) ? logs.map(jsonFields) : []).map(({ address, topics, data }) => ({
    isOfToken: String(address).toLowerCase() === contract.toLowerCase(),
    topics: (Array.isArray(topics) ? topics : []).map((topic) => String(topic).toLowerCase()),
    data,
  }))
  const events = all.flatMap((event, at) => {
    const before = all[at - 1]
    // The transfer behind this event is one by authorization: a payment by x402, which is credited where it is presented.
    const isAuthorized =
      before?.isOfToken === true &&
      before.topics[0] === authorizationUsedTopic &&
      before.topics[1] === event.topics[1]
    return event.isOfToken ? [{ ...event, isAuthorized }] : []
  })
  const recipient = 'wrong' in called ? spelled(wallet) : called.recipient
  const received = events
    .filter(({ topics }) => topics[0] === transferTopic && addressIn(topics[2]) === recipient)
    .map(({ topics, data, isAuthorized }) => ({
      from: addressIn(topics[1]),
      amount: isQuantity(data) ? BigInt(data) : 0n,
      isAuthorized,
    }))
    .filter(({ from, amount }) => from !== undefined && from !== recipient && amount > 0n)
  const transfers = received.filter(({ isAuthorized }) => !isAuthorized)
  const [sender, ...others] = new Set(transfers.map(({ from }) => from))
  if (sender === undefined)
    return received.length > 0
      ? { wrong: 'The transfer is a payment by x402', isUnclear: true }
      : { wrong: 'The token was not transferred' }
  if (sender === nobody || others.length > 0)
    return { wrong: 'The transaction does not say which wallet has paid', isUnclear: true }
  const quantity = transfers.reduce((sum, { amount }) => sum + amount, 0n)
  const isPlain = !('wrong' in called) && called.sender === sender
  return { ...(isPlain ? called : { sender, recipient }), quantity }
}

/** The address in a topic of a log; undefined where it is none. */
function addressIn(topic: string | undefined): string | undefined {
  return topic !== undefined && /^0x0{24}[0-9a-f]{40}$/.test(topic)
    ? spelled(`0x${topic.slice(26)}`)
    : undefined
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
